"""``figures/grants``: what each receiving node granted to others, round by round.

A panel for each node on whose link much was reserved for promises: that, what came and nobody had reported,
and what each sender had: promises' ceilings, and that of all it sends without one. Of several repetitions
the first is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.presentation.figures.head import EDGE, Key, above
from bench.presentation.figures.sheet import Sheet, Subject
from bench.presentation.figures.style import CLUSTERS, COLOURS, INK, MUTED, bands, files
from bench.recording.rounds import Ceilings, Round
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
# Of a link's rate: where no more is reserved only acknowledgements come, and nobody is shown there.
LEAST = 0.1
# Classes of what a node sends to another without a promise (plugin/concorde/node/htb.py).
PEERS, SAFE = range(0x7000, 0x8000), "fffb"
HELD = CLUSTERS[0]
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
    """Return the nodes on whose links much was reserved, and their rounds with one best effort a sender."""
    rate = subject.scenario.underlay.rate or 0
    return {
        node: [one._replace(granted=_together(one.granted)) for one in found]
        for node, found in subject.rounds.items()
        if any(one.reserved_bps > LEAST * rate for one in found)
    }


def _together(granted: Ceilings) -> Ceilings:
    """Return ceilings with those of a sender's best effort in one, without a number."""
    found: dict[tuple[str, str], float] = {}
    for (address, minor), rate in granted.items():
        promised = int(minor, 16) not in PEERS and minor != SAFE
        key = address, minor if promised else ""
        found[key] = max(rate, found.get(key, 0.0))
    return found


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
    axes.fill_between(at, [one.reserved_bps / scale for one in rounds], step="post", color=HELD, linewidth=0)
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
        (RESERVED, Patch(color=HELD)),
        (FOREIGN, Line2D([], [], color=INK, linestyle=":")),
    ]
    for address, minor in classes:
        of = f"promise {minor}" if minor else "best effort"
        entries.append(
            (f"{names.get(address, address)}, {of}", Line2D([], [], color=colours[address, minor]))
        )
    return entries
