"""Links to directories: on GitHub they are pages, on a site there are none."""

from __future__ import annotations

import os
import re
from pathlib import Path

CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#:]+)\)")


def resolved(page: str, file: Path, home: Path) -> str:
    """Return a page on which links to recordings lead to the gallery, and others to directories to nothing.

    ``file`` is the page's. A directory that does not exist is left, for Sphinx to complain about.
    """
    kept, gallery = home / "reports" / "reference", home / "docs" / "gallery.md"

    def resolve(link: re.Match[str]) -> str:
        words, target = link.groups()
        found = (file.parent / target).resolve()
        if not found.is_dir():
            return link[0]
        if not found.is_relative_to(kept):
            return words
        name = (found.relative_to(kept).parts or ("recordings",))[0]
        return f"[{words}]({os.path.relpath(gallery, file.parent)}#{name})"

    # Code may have links within brackets, as in [`words`](target): it is put back after all links are found.
    codes: list[str] = []

    def hide(code: re.Match[str]) -> str:
        codes.append(code[0])
        return f"\0{len(codes) - 1}\0"

    hidden = CODE.sub(hide, page)
    return re.sub(r"\0(\d+)\0", lambda at: codes[int(at[1])], LINK.sub(resolve, hidden))
