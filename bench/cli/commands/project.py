"""The project itself."""

from __future__ import annotations

import shlex

from invoke.context import Context

from bench.cli import exits
from bench.cli.commands.options import task
from bench.cli.terminal import say

# For tests that do not judge a rate or a time; those that do are marked "alone".
SIDE_BY_SIDE = "-n auto --dist worksteal"


@task
def schema(_context: Context) -> None:
    """Write the JSON Schema of scenarios, for editors."""
    from bench.cli.verbs import scenarios

    exits.ends_with_status(scenarios.write_schema)()


@task(
    help={
        "links": "look whether the links to elsewhere lead somewhere, and build nothing; needs a network",
        "to": "the directory of the site",
    }
)
def docs(context: Context, links: bool = False, to: str = "build/site") -> None:
    """Build the site of these docs, with all figures; a warning is an error."""
    builder = "linkcheck" if links else "html"
    tag = "" if links else "-t drawn"
    context.run(
        f".venv/bin/python -m sphinx -q -n -W --keep-going -b {builder} {tag} -c docs . {shlex.quote(to)}"
    )
    if not links:
        say(f"the site: {to}/index.html")


@task
def lint(context: Context) -> None:
    """Check style, types, and which part imports which."""
    for tool in (
        "ruff check",
        "ruff format --check",
        "ansible-lint --offline -q playbooks",
        "zizmor --offline --quiet .github/workflows action.yml",
        "mypy tasks.py bench testbed edge plugin/build.py benchmarks tests docs",
        "mypy plugin/concorde",
        "mypy concorde_testbed hatch_build.py .github/check.py .github/release.py",
        "lint-imports --no-logo",
    ):
        # The plugin is no package of ours, so the import rules must be told where it is.
        context.run(f".venv/bin/{tool}", env={"PYTHONPATH": "plugin"})


@task(name="test.setup")
def set_up_tests(_context: Context) -> None:
    """Install the packages that all tests need, and do no more."""
    say("all packages are there")


@task(pre=[lint])
def test(context: Context) -> None:
    """Check everything the project promises; needs no network and, with user namespaces, no root."""
    context.run(f".venv/bin/pytest {SIDE_BY_SIDE} -m 'not alone'")
    context.run(".venv/bin/pytest -m alone")


OF_A_SHARE = {
    "percent": "how much of the full counts, and of the cases; CONCORDE_SEED says which cases",
    "shard": "a part of them: 2/4 is the second of four",
}


@task(name="test.long", help=OF_A_SHARE)
def long_tests(context: Context, percent: int = 100, shard: str = "1/1") -> None:
    """Check at full length what test checks a part of; each count can be set by its variable."""
    asked = f"{SIDE_BY_SIDE} -m 'long and not alone'"
    context.run(f".venv/bin/pytest {asked}", env=_share(percent, shard))


@task(name="test.alone", help=OF_A_SHARE)
def lone_tests(context: Context, percent: int = 100, shard: str = "1/1") -> None:
    """Check at full length, one after another, what is judged by a rate or a time; needs an idle machine."""
    context.run(".venv/bin/pytest -m 'long and alone'", env=_share(percent, shard))


def _share(percent: int, shard: str) -> dict[str, str]:
    """Return the variables that tests/cases.py reads."""
    return {"CONCORDE_LONG": str(percent), "CONCORDE_SHARD": shard}


@task(name="test.e2e")
def test_e2e(context: Context) -> None:
    """Check real Kubernetes, from its programs - built, if there are none - to both scenarios; needs root."""
    from bench.cli.verbs import supplies

    exits.must(supplies.get_kubernetes, "", "", False, False, "")
    context.run(".venv/bin/pytest tests/e2e -m alone")
    context.run(".venv/bin/pytest tests/e2e -m 'not alone' -n 3 --dist loadfile")


@task(name="test.vm")
def test_vm(context: Context) -> None:
    """Check virtual machines from their box - built, if there is none - to their end; needs root and time."""
    context.run(".venv/bin/pytest tests/vm")
