"""OpenMetrics text, as far as node_exporter's textfile collector reads it too.

That reads Prometheus' own format, which knows of OpenMetrics' types only counter and gauge, and takes `# EOF`
for a comment; a timestamp, or another type, would have it refuse the file (prometheus/common,
expfmt/text_parse.go). So these two are all there is here.

Source: OpenMetrics 1.0, sections "ABNF" and "Text format".
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Labels = tuple[tuple[str, str], ...]

GAUGE, COUNTER = "gauge", "counter"
END = "# EOF\n"


class Family:
    """A metric with all its samples; a counter's name is without `_total`."""

    def __init__(self, name: str, kind: str, says: str) -> None:
        self.name = name
        self.kind = kind
        self.says = says
        self.samples: list[tuple[str, int]] = []

    def add(self, labels: str, value: int) -> None:
        """One more sample; the labels as labelled() writes them."""
        self.samples.append((labels, value))


def labelled(labels: Labels) -> str:
    """Labels as they stand behind a name; those that are empty are left out, which means the same."""
    written = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels if value)
    return f"{{{written}}}" if written else ""


def text(families: Iterable[Family]) -> str:
    """All of it; families without a sample are left out."""
    lines = []
    for family in families:
        if not family.samples:
            continue
        lines.append(f"# TYPE {family.name} {family.kind}\n# HELP {family.name} {_escaped(family.says)}\n")
        name = family.name + ("_total" if family.kind == COUNTER else "")
        lines += [f"{name}{labels} {value}\n" for labels, value in family.samples]
    return "".join(lines) + END


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
