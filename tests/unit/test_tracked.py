"""What git keeps of this tree, and what it is told not to."""

from __future__ import annotations

import subprocess

import pytest

from tests.paths import ROOT


def test_nothing_tracked_is_ignored() -> None:
    """Whatever adds the tree anew, a copy or another history, would leave it out without a word."""
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of git")
    both = ["git", "-C", str(ROOT), "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(both, capture_output=True, text=True, check=True).stdout == ""
