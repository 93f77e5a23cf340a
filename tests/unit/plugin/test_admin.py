from __future__ import annotations

from concorde import admin


def test_the_command_line() -> None:
    assert admin.parse(["ledger"]) == ("ledger", False, "/run/concorde")
    assert admin.parse(["ledger", "--json", "--state-dir=/x"]) == ("ledger", True, "/x")
    assert admin.parse(["reconcile", "--state-dir", "/x"]) == ("reconcile", False, "/x")
    arguments = ["rebuild", "--cache", "/a", "--state-dir=/x", "--cache=/b"]
    assert admin.split(arguments) == (["/a", "/b"], ["rebuild", "--state-dir=/x"])
