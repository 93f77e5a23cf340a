#!/usr/bin/env python3
"""Say what is new in the version of a tag; refuse a tag that is not the version, or of which nothing is said.

``release.py v1.2.3`` prints the version's section of CHANGELOG.md, in the form of keepachangelog.com.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def notes(tag: str, version: str, changelog: str) -> str:
    """Return what the changelog says of the version. Raises LookupError if it cannot be released."""
    if tag != f"v{version}":
        raise LookupError(f"tag {tag}: plugin/concorde/__init__.py says {version}, whose tag is v{version}")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$\n(.*?)(?=^## |^\[|\Z)"
    found = re.search(heading, changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise LookupError(f"CHANGELOG.md: write what is new below '## [{version}] - YYYY-MM-DD'")
    return found[1].strip() + "\n"


def main() -> int:
    """Print the notes; 2 if there are none."""
    sys.path.insert(0, str(ROOT))
    from testbed.resources import version

    try:
        print(notes(sys.argv[1], version(), (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")), end="")
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
