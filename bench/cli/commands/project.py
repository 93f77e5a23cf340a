"""The project itself."""

from __future__ import annotations

import os
import shlex

from invoke.context import Context

from bench.cli import exits
from bench.cli.commands.options import task
from bench.cli.terminal import say

# These run alone: they are judged by how much gets through, or keep it from others.
ALONE = (
    "tests/system/plugin/test_attacks.py",
    "tests/system/plugin/test_upgrade.py",
    "tests/system/bench/test_starved.py",
    "tests/system/bench/promise/test_planted_faults.py",
    "tests/system/bench/test_backends.py",
    "tests/system/bench/test_matrix.py",
    "tests/system/bench/test_places.py",
    "tests/system/bench/test_ways.py",
    "tests/system/bench/test_zones.py",
    "tests/system/edge/test_expiry.py",
    "tests/system/docs/test_tutorials.py",
    "tests/system/test_without_the_repository.py",
)
# How often tests marked "long" do what they do; without these variables they do a part of it.
LONG = {
    "CONCORDE_CHURN_STEPS": 3000,
    "CONCORDE_FRAMES": 5000,
    "CONCORDE_DAMAGES": 500,
    "CONCORDE_PLUGIN_INPUTS": 20000,
    "CONCORDE_SCENARIO_INPUTS": 50000,
    "CONCORDE_ATTACK_ROUNDS": 3,
    "CONCORDE_HISTORIES": 200,
    "CONCORDE_KILLS": 50,
    "CONCORDE_AT_ONCE": 8,
    "CONCORDE_STARVED_RUNS": 3,
    "CONCORDE_OVERLAY_INPUTS": 100_000,
    "CONCORDE_OVERLAY_EVENTS": 20_000,
    "CONCORDE_OVERLAY_DATAGRAMS": 100_000,
    "CONCORDE_BACKEND_RUNS": 2,
    "CONCORDE_METRICS_PODS": 250,
    "CONCORDE_CASES": 100,  # percent of those of which a part is run
}


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


@task(pre=[lint])
def test(context: Context) -> None:
    """Check everything the project promises; needs no network and, with user namespaces, no root."""
    context.run(".venv/bin/pytest -n auto --dist worksteal")


@task(name="test.long")
def test_long(context: Context) -> None:
    """Check at full length what test checks a part of; each count can be set by its variable."""
    counts = {name: os.environ.get(name, str(count)) for name, count in LONG.items()}
    ignored = " ".join(f"--ignore {file}" for file in ALONE)
    context.run(f".venv/bin/pytest -m long -n auto --dist worksteal {ignored}", env=counts)
    context.run(f".venv/bin/pytest -m long {' '.join(ALONE)}", env=counts)


@task(name="test.e2e")
def test_e2e(context: Context) -> None:
    """Check real Kubernetes, from its programs - built, if there are none - to both scenarios; needs root."""
    from bench.cli.verbs import supplies

    exits.must(supplies.get_kubernetes, "", "", False, False, "")
    context.run(".venv/bin/pytest tests/e2e/test_verdicts.py")
    # Nothing else is judged by how fast it is, so what is left waits side by side.
    context.run(".venv/bin/pytest tests/e2e --ignore tests/e2e/test_verdicts.py -n 3 --dist loadfile")


@task(name="test.vm")
def test_vm(context: Context) -> None:
    """Check virtual machines from their box - built, if there is none - to their end; needs root and time."""
    context.run(".venv/bin/pytest tests/vm")
