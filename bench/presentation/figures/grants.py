"""``figures/grants``: what each receiving node granted to others, round by round.

A panel a node whose link was divided: what was reserved there for promises, what came that nobody had
reported, and each sender's ceilings. Of several repetitions the first is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.presentation.figures import style
from bench.presentation.figures.head import EDGE, Key, above
from bench.presentation.figures.sheet import Sheet, Subject
from bench.presentation.figures.style import COLOURS, INK, MUTED, bands, files
from bench.recording.rounds import Round
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing
from testbed.scenario.units import Unit, unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bench.presentation.figures.style import Entries

TITLE = "What each receiving node granted to others, against time"
# Units.
LEFT, RIGHT, BOTTOM, GAP, HEIGHT = 0.55, 0.12, 0.42, 0.24, 1.1
# Of a link's rate: who never granted more is not shown, for acknowledgements are sent to everybody.
LEAST = 0.1
PEERS = range(0x7000, 0x8000)  # classes of what a node sends to another without a promise
RESERVED, FOREIGN = "reserved for promises", "came, and nobody had reported it"


def caption(_scenario: Scenario) -> str:
    """Return what stands below the figure."""
    return (
        "Ceilings that each receiving node gave to others' classes, by its agent's rounds (of the first "
        "repetition), and what of its link was reserved for promises in use. A class with a promise never "
        "has less than that."
    )


def render(subject: Subject, sheet: Sheet) -> dict[str, bytes]:
    """Return the figure by format; nothing if no agent granted anything worth showing."""
    return files(lambda: draw(subject, sheet), sheet) if shown(subject) else {}


def shown(subject: Subject) -> dict[str, Sequence[Round]]:
    """Return the nodes that granted much to any class, with their rounds."""
    rate = subject.scenario.underlay.rate or 0
    return {
        node: found
        for node, found in subject.rounds.items()
        if any(ceiling > LEAST * rate for one in found for ceiling in one.granted.values())
        and any(one.reserved_bps for one in found)
    }


def draw(subject: Subject, sheet: Sheet) -> Figure:
    """Return the figure; ``style.files`` makes files of it."""
    scenario, found = subject.scenario, shown(subject)
    names = _names(scenario)
    classes = sorted({key for rounds in found.values() for one in rounds for key in one.granted})
    colours = {key: COLOURS[at % len(COLOURS)] for at, key in enumerate(classes)}
    unit = unit_for([float(scenario.underlay.rate or 1)])
    head = above(subject, Key(sheet, _entries(classes, colours, names), EDGE))
    heights = sheet.fitted([HEIGHT] * len(found), head.height + BOTTOM + GAP * len(found))
    figure = sheet.figure(head.height + sum(heights) + GAP * len(found) + BOTTOM)
    top, inner = head.height, sheet.room - LEFT - RIGHT
    for index, ((node, rounds), height) in enumerate(zip(found.items(), heights, strict=True)):
        axes = sheet.panel(figure, LEFT, top + GAP, inner, height)
        top += height + GAP
        axes.set_title(f"granted by {node}", loc="left", fontsize=sheet.points(7), color=MUTED)
        bands(axes, scenario)
        _panel(axes, rounds, colours, unit, sheet)
        axes.set_xlim(0, max(traffic.end for traffic in scenario.traffic))
        axes.set_ylim(0, float(scenario.underlay.rate or 1) / unit.bits_per_second * 1.05)
        axes.set_ylabel(unit.name)
        if index < len(found) - 1:
            axes.tick_params(labelbottom=False)
        else:
            axes.set_xlabel("time in s")
    head.draw(figure)
    return figure


def _panel(
    axes: Axes,
    rounds: Sequence[Round],
    colours: Mapping[tuple[str, str], str],
    unit: Unit,
    sheet: Sheet,
) -> None:
    at = [one.at_s for one in rounds]
    scale = unit.bits_per_second
    axes.fill_between(
        at, [one.reserved_bps / scale for one in rounds], step="post", color=style.GRID, linewidth=0
    )
    if any(one.foreign_bps for one in rounds):
        axes.plot(
            at, [one.foreign_bps / scale for one in rounds], ":", color=INK, linewidth=sheet.points(0.7)
        )
    for key, colour in colours.items():
        if any(key in one.granted for one in rounds):
            ceilings = [one.granted.get(key, float("nan")) / scale for one in rounds]
            axes.plot(at, ceilings, color=colour, linewidth=sheet.points(0.8), drawstyle="steps-post")


def _names(scenario: Scenario) -> dict[str, str]:
    """Return nodes' names by their addresses."""
    addressing = Addressing(scenario)
    return {str(addressing.address(name)): name for name in scenario.nodes}


def _entries(
    classes: Sequence[tuple[str, str]], colours: Mapping[tuple[str, str], str], names: Mapping[str, str]
) -> Entries:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: Entries = [
        (RESERVED, Patch(color=style.GRID)),
        (FOREIGN, Line2D([], [], color=INK, linestyle=":")),
    ]
    for address, minor in classes:
        of = "best effort" if int(minor, 16) in PEERS or minor == "fffb" else f"promise {minor}"
        entries.append(
            (f"{names.get(address, address)}, {of}", Line2D([], [], color=colours[address, minor]))
        )
    return entries
