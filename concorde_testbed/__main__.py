"""What ``./invokew`` is in a checkout, where it is installed: the same verbs, with nothing to set up.

``concorde-testbed bench`` and ``python -m concorde_testbed bench`` are this.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE / "tree"
# Debian keeps ip, tc and nft where an ordinary user's PATH does not look.
ADMINISTRATORS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def main() -> None:
    """Run the verb that the command line names, from the tree. Does not return."""
    sys.path.insert(0, str(TREE if TREE.is_dir() else HERE.parent))
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *ADMINISTRATORS])
    import_module("tasks").main()


if __name__ == "__main__":
    main()
