"""Verbs about the project itself: its docs and its tests."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from invoke.context import Context
from invoke.runners import Promise

from bench.cli import exits
from bench.cli.verbs import machines
from bench.console.messages import say
from testbed.resources import HOME, shown

# Tests that judge a rate or a time are marked "alone". None is in tests/unit, which takes long to collect.
# Many wait for clocks and other processes, so that two processors have time for four of them.
SIDE_BY_SIDE = f"-n {max(4, len(os.sched_getaffinity(0)))} --dist worksteal -m"
ALONE = "tests/system -m"


def _run(context: Context, program: str, variables: Mapping[str, str] | None = None) -> None:
    """Run a program of the environment in the checkout, wherever the caller stands."""
    os.chdir(HOME)
    context.run(f".venv/bin/{program}", env=dict(variables or {}))


def docs(context: Context, links: bool, to: str) -> None:
    """Build the site of these docs, with all figures; a warning is an error."""
    site = Path(to).absolute() if to else HOME / "build" / "site"
    page = shown(site / "index.html")
    builder = "linkcheck" if links else "html"
    tag = "" if links else "-t drawn"
    _run(
        context,
        f"python -m sphinx -q -n -W --keep-going -b {builder} {tag} -c docs . {shlex.quote(str(site))}",
    )
    if not links:
        say(f"the site: {page}")


def lint(context: Context) -> None:
    """Check style, types, and which part imports which."""
    os.chdir(HOME)
    # It takes as long as all the others together; of a directory it would have Ansible read each role again.
    named = "playbooks/*.yml playbooks/roles/*/templates/*"
    playbooks = context.run(f".venv/bin/ansible-lint --offline -q {named}", asynchronous=True)
    for tool in (
        "ruff check",
        "ruff format --check",
        "zizmor --offline --quiet .github/workflows action.yml",
        "mypy tasks.py bench testbed edge plugin/build.py benchmarks tests docs",
        "mypy plugin/concorde",
        "mypy concorde_testbed hatch_build.py .github/check.py .github/release.py",
        "lint-imports --no-logo",
    ):
        # The plugin is no package of ours, so the import rules must be told where it is.
        _run(context, tool, {"PYTHONPATH": "plugin"})
    if isinstance(playbooks, Promise):
        playbooks.join()


def set_up_tests(_: Context) -> None:
    """Install the packages that all tests need, and do no more."""
    say("all packages are there")


def test(context: Context) -> None:
    """Check everything the project promises; needs no network and, with user namespaces, no root."""
    lint(context)
    _run(context, f"pytest {SIDE_BY_SIDE} 'not alone'")


def long_tests(context: Context, percent: int, shard: str) -> None:
    """Check at full length what test checks a part of; each count can be set by its variable."""
    _run(context, f"pytest {SIDE_BY_SIDE} 'long and not alone'", _share(percent, shard))


def lone_tests(context: Context, percent: int, shard: str) -> None:
    """Check at full length, one after another, what is judged by a rate or a time; needs an idle machine."""
    _run(context, f"pytest {ALONE} alone", _share(percent, shard))


def _share(percent: int, shard: str) -> dict[str, str]:
    """Return the variables that tests/cases.py reads."""
    return {"CONCORDE_LONG": str(percent), "CONCORDE_SHARD": shard}


def e2e_tests(context: Context, alone: bool, beside: bool) -> None:
    """Check real Kubernetes, from its programs - built, if there are none - to both scenarios; needs root."""
    exits.must(machines.get_kubernetes, "", "", False, False, "")
    if alone or not beside:
        _run(context, "pytest tests/e2e -m alone")
    if beside or not alone:
        _run(context, "pytest tests/e2e -m 'not alone' -n 3 --dist loadfile")


def test_vm(context: Context) -> None:
    """Check virtual machines from their box - built, if there is none - to their end; needs root and time."""
    _run(context, "pytest tests/vm")
