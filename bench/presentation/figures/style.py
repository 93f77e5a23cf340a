"""How all figures look, which colour stands for what, and how one becomes files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from bench.analysis import excuses, phases
from bench.analysis.excuses import Moments
from bench.analysis.phases import Span
from bench.presentation.figures.sheet import PAGE, TEXT, Sheet
from bench.recording.records import RunRecord
from testbed.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    Entry = tuple[str, Line2D | Patch]  # of a key: what is said of what
    Entries = list[Entry]


# A role has one colour everywhere, in figures and pages: those of Okabe and Ito, "Color Universal Design"
# (2008), which colour-blind people can tell apart, without the yellow that vanishes on white paper and
# without black, in which promises are drawn. Markers tell lines apart in grey, too.

# Of flows, then of requests, in the scenario's order. They begin again after the last one, with other
# markers: there are as many of either as have no divisor in common.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

DISTURBANCE = "#7A7A7A"  # of every disturbance, in any scenario
# Of the time of the disturbances; what disturbs in other company has the other one.
SHADES = ("#EEEEEE", "#DDDDDD")

# Of what lies in a cluster, in the order of the clusters: the colours above and their yellow, lightened to be
# written on. And of what lies outside of every one.
CLUSTERS = ("#9AD1F3", "#F3CB7A", "#7FCFB5", "#E3B6D0", "#F5EE9E", "#E9A577")
OUTSIDE = "#E4E4E4"

INK, MUTED, GRID = "#000000", "#595959", "#DDDDDD"
# Of the machine's bad moments, and of verdicts: as on pages of light paper (templates/style.css).
STALL, SATURATED = "#b00020", "#b86e00"
VERDICTS = {"held": "#00664a", "violated": "#a33c00", "invalid": "#5a4a00"}

STYLE: dict[Any, Any] = {
    # The first comes with matplotlib; an SVG is shown with whatever there is.
    "font.family": ["DejaVu Sans", "sans-serif"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.titley": 1.0,  # nothing is above a panel that a title could stand on, and looking for it takes long
    "grid.color": GRID,
    "svg.hashsalt": "throughput",
    "svg.fonttype": "none",  # text stays text: it can be searched, selected and read aloud
    "pdf.fonttype": 42,
}
# Points beside text of 8, in which lines and ticks grow with the text.
SIZES = {
    "font.size": TEXT,
    "axes.linewidth": 0.6,
    "axes.labelpad": 4,
    "axes.titlepad": 3,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    **{
        f"{axis}tick.{which}.{what}": points
        for axis in "xy"
        for which, sizes in {"major": (0.6, 3.0, 3.0), "minor": (0.4, 1.7, 3.0)}.items()
        for what, points in zip(("width", "size", "pad"), sizes, strict=True)
    },
}

METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}

LAYOUT = {"GDEF", "GPOS", "GSUB", "MATH", "kern"}  # tables of an OpenType font

# Of the height of a panel, from its top: where the machine's bad moments are marked.
STALL_HEIGHT, SATURATED_HEIGHT = 0.07, 0.035
SHORTEST = 0.006  # share of the time shown that the mark of a moment has at least: it must be seen
FAINT = 0.15  # of a mark all the way down


def files(draw: Callable[[], Figure], sheet: Sheet = PAGE, every_point: bool = False) -> dict[str, bytes]:
    """Draw a figure once, in the project's style and nobody else's, and return its files by format.

    ``every_point``: lines have all their points. Which of them matplotlib leaves out hangs on the last bit
    of where they are, and the logarithms of one processor differ in that from those of another.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(parameters(sheet) | {"path.simplify": not every_point})
        figure = draw()
        return {kind: _save(figure, kind, sheet.dpi) for kind in sheet.formats}


def parameters(sheet: Sheet) -> dict[Any, Any]:
    """Return matplotlib's parameters for a sheet."""
    return STYLE | {name: sheet.points(size) for name, size in SIZES.items()}


def _save(figure: Figure, kind: str, dpi: int) -> bytes:
    buffer = io.BytesIO()
    with _fonts_without_layout():
        figure.savefig(buffer, format=kind, metadata=METADATA[kind], dpi=dpi)
    return _with_palette(buffer) if kind == "png" else buffer.getvalue()


def _with_palette(png: io.BytesIO) -> bytes:
    """Return a picture in 256 colours: what is drawn has a dozen, and others only where two meet."""
    from PIL import Image

    picture, buffer = Image.open(png), io.BytesIO()
    few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(buffer, "PNG", dpi=picture.info["dpi"], optimize=True)
    return buffer.getvalue()


@contextmanager
def _fonts_without_layout() -> Iterator[None]:
    """Let the fonts in a PDF have glyphs alone, and nothing that says how to lay them out.

    A page places each glyph itself, so no reader ever looks at the rest; cutting that down to the glyphs
    of one figure took longer than drawing it. matplotlib has no setting for it: it loads the font by
    fontTools, which is made to forget these tables here.
    """
    from fontTools import subset  # type: ignore[import-untyped]

    load = subset.load_font

    def load_font(*arguments: Any, **options: Any) -> Any:
        font = load(*arguments, **options)
        for table in LAYOUT & set(font.keys()):
            del font[table]
        return font

    with patch.object(subset, "load_font", load_font):
        yield


def line(**look: Any) -> Line2D:
    """Return a line as it stands in a key beside text of 8 points; black, if its look says nothing else."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **{"color": INK, "linewidth": SIZES["lines.linewidth"], **look})


def shade(colour: str = SHADES[0]) -> Patch:
    """Return what stands in a key for some time: without a colour, for that of the disturbances."""
    from matplotlib.patches import Patch

    return Patch(color=colour, linewidth=0)


def bands(axes: Axes, scenario: Scenario) -> None:
    """Shade the time of the disturbances, each phase by its own shade beside its neighbours."""
    stretches = phases.planned(scenario)
    names = list(dict.fromkeys(stretch.phase for stretch in stretches))
    for stretch in stretches:
        shade = SHADES[names.index(stretch.phase) % len(SHADES)]
        axes.axvspan(stretch.start, stretch.end, color=shade, linewidth=0, zorder=0)


def moments(record: RunRecord) -> Moments:
    """Return the machine's bad moments in any repetition."""
    return excuses.together(excuses.moments(repetition) for repetition in record.repetitions)


def mark(axes: Axes, found: Moments) -> None:
    """Mark the machine's bad moments at the top of a panel; where it stood still, all the way down."""
    _, duration = axes.get_xlim()
    for start, end in _seen(found.saturated, duration):
        axes.axvspan(start, end, 1 - SATURATED_HEIGHT, 1, color=SATURATED, linewidth=0, zorder=4)
    for start, end in _seen(found.stalls, duration):
        axes.axvspan(start, end, color=STALL, alpha=FAINT, linewidth=0, zorder=1)
        axes.axvspan(start, end, 1 - STALL_HEIGHT, 1, color=STALL, linewidth=0, zorder=5)


def _seen(spans: Iterable[Span], duration: float) -> Iterator[Span]:
    """Yield the spans that begin in the time shown, each long enough to be seen, and none beyond its end."""
    least = SHORTEST * duration
    for span in spans:
        if span.start < duration:
            end = min(max(span.end, span.start + least), duration)
            yield Span(min(span.start, end - least), end)


def of_moments(found: Moments) -> Entries:
    """Return what stands in a key for the machine's bad moments, if it had any."""
    entries: Entries = [("machine stood still", shade(STALL))] if found.stalls else []
    return [*entries, *([("processor saturated", shade(SATURATED))] if found.saturated else [])]


class Look(NamedTuple):
    """What a line looks like."""

    colour: str
    marker: str


def look(place: int) -> Look:
    """Return the look of the one at a place, from 0, in the order of its kind."""
    return Look(COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)])


def looks(scenario: Scenario) -> dict[str, Look]:
    """Return the look of everything that a scenario sends, by label."""
    own = [transfer.label for transfer in chain(scenario.flows, scenario.requests)]
    others = [disturbance.label for disturbance in scenario.disturbances]
    return {
        **{label: look(place) for place, label in enumerate(own)},
        **{
            label: Look(DISTURBANCE, MARKERS[(len(own) + place) % len(MARKERS)])
            for place, label in enumerate(others)
        },
    }
