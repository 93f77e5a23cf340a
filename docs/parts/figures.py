"""The pages' figures, drawn again of the recordings that are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from bench.studies.reproduction import regeneration
from docs.parts.marks import HERE
from testbed import registry
from testbed.resources import HOME

REFERENCE = HOME / "reports" / "reference"
DRAWN = HOME / "build" / "figures"


def asked_for(pages: str) -> dict[str, str]:
    """Return of which recording or study each figure of pages is, by RECORDING-NAME."""
    wanted = (match[2].split() for match in HERE.finditer(pages) if match[1] == "figure")
    return {f"{recording}-{name}": recording for recording, name in wanted}


def draw(pages: str, into: Path = DRAWN) -> None:
    """Draw all figures of pages that are not kept as pictures. Raises LookupError for what there is not."""
    missing = {key: recording for key, recording in asked_for(pages).items() if kept(key, recording) is None}
    directories = [REFERENCE / recording for recording in sorted(set(missing.values()))]
    made = {known.directory.name: known.files for known in regeneration.again(directories, {}, registry.load)}
    into.mkdir(parents=True, exist_ok=True)
    for key, recording in missing.items():
        name = key.removeprefix(f"{recording}-")
        (into / f"{key}.svg").write_bytes(_figure(made[recording], recording, name))


def kept(key: str, recording: str) -> Path | None:
    """Return the picture that is kept of a figure, where a page shows it already."""
    name = key.removeprefix(f"{recording}-")
    pictures = [REFERENCE / recording / f"{name}.{kind}" for kind in ("svg", "png")]
    return next((picture for picture in pictures if picture.is_file()), None)


def _figure(files: Mapping[str, bytes], recording: str, name: str) -> bytes:
    found = files.get(f"figures/{name}.svg")
    if found is None:
        figures = [path for path in files if re.fullmatch(r"figures/[^/]+\.svg", path)]
        raise LookupError(f"{recording}: there is no figure {name!r} (there are: {', '.join(figures)})")
    return found


def shown(recording: str, name: str, *, drawn: bool) -> str:
    """Return the picture as Markdown. One that is neither kept nor ``drawn`` is said to be missing."""
    key = f"{recording}-{name}"
    picture = kept(key, recording)
    if picture is None and not drawn:
        return f"*This figure of `{recording}` is not drawn in this build.*"
    path = picture or DRAWN / f"{key}.svg"
    return f"![{name} of {recording}](/{path.relative_to(HOME).as_posix()})"
