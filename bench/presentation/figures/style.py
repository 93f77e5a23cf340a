"""How all figures look, and how one becomes files."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bench.analysis import phases
from testbed.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    Entries = dict[str, Line2D | Patch]  # of a key: by what is said of each

FORMATS = ("svg", "pdf", "png")

# Okabe & Ito, "Color Universal Design" (2008), without the yellow that vanishes on white paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")

# Of the time of the disturbances; what disturbs in other company has the other one.
SHADES = ("#EEEEEE", "#DDDDDD")

STYLE: dict[Any, Any] = {
    # The first comes with matplotlib; an SVG is shown with whatever there is.
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.3,
    "svg.hashsalt": "throughput",
    "svg.fonttype": "none",  # text stays text: it can be searched, selected and read aloud
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
}

METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


def files(draw: Callable[[], Figure], every_point: bool = False) -> dict[str, bytes]:
    """Draw a figure once, in the project's style and nobody else's, and return its files by format.

    ``every_point``: lines have all their points. Which of them matplotlib leaves out hangs on the last bit
    of where they are, and the logarithms of one processor differ in that from those of another.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE | {"path.simplify": not every_point})
        figure = draw()
        return {kind: _save(figure, kind) for kind in FORMATS}


def _save(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=METADATA[kind])
    return buffer.getvalue()


def line(**look: Any) -> Line2D:
    """Return a line as it stands in a key; black, if its look does not say otherwise."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **{"color": "black", **look})


def bands(axes: Axes, scenario: Scenario) -> None:
    """Shade the time of the disturbances, each phase by its own shade beside its neighbours."""
    stretches = phases.planned(scenario)
    names = list(dict.fromkeys(stretch.phase for stretch in stretches))
    for stretch in stretches:
        shade = SHADES[names.index(stretch.phase) % len(SHADES)]
        axes.axvspan(stretch.start, stretch.end, color=shade, linewidth=0, zorder=0)


def shade() -> Patch:
    """Return what stands in a key for the time of the disturbances."""
    from matplotlib.patches import Patch

    return Patch(color=SHADES[0])


def small_key(figure: Figure, entries: Entries, columns: int) -> None:
    """Say what lines mean, above many small panels."""
    place = (0.01, 1 - 0.03 / figure.get_figheight())
    key(figure, entries, place, columns, fontsize=6.5, handlelength=1.8, columnspacing=1.2)


def key(figure: Figure, entries: Entries, place: tuple[float, float], columns: int, **sizes: float) -> None:
    """Say what lines mean, without a frame; ``place`` is that of the upper left corner."""
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="upper left",
        bbox_to_anchor=place,
        ncols=columns,
        frameon=False,
        borderaxespad=0,
        borderpad=0,
        **sizes,
    )
