"""The verbs of the command line: one thin task for each. Run ``./invokew --list``.

Each imports what does it when it is run, so that a list or a mistake costs none of it.
"""

from __future__ import annotations

import os
from pathlib import Path

from invoke.context import Context
from invoke.tasks import task

from bench.cli import exits

# What options mean that several verbs have.
SCENARIO = "a scenario's name or file, or a recording of one"
CHANGES = {
    "set_": "override one field, as in flows[0].duration=5; may be repeated",
    "scale": "multiply every rate, as in 0.1",
}
PROVIDER = {
    "provider": "where nodes come from: netns, ssh:INVENTORY, ssh with addresses in the scenario, or vagrant"
}
ORCHESTRATOR = {"orchestrator": "what runs the pods: cni, kubernetes"}
REPORTS = {"reports": "directory of the recordings"}
JSON = {"json": "one JSON document on standard output; what people are told goes to standard error"}
RUN = {**CHANGES, **PROVIDER, **ORCHESTRATOR, **REPORTS}
STUDY = {
    **RUN,
    **JSON,
    "resume": "go on with an interrupted study, as it was begun: its directory or name",
}
NAME = {"name": "which testbed, if several are up side by side"}
KEPT = {
    **NAME,
    "provider": "what else is meant than a testbed by its name: ssh:INVENTORY, ssh with addresses in the "
    "scenario, vagrant",
    "scenario": "with --provider: the scenario that has the machines, or their addresses",
}

# Verbs of which a word alone is an option's value; there may be none.
WORDS = {"figures": "run", "reproduce": "claim"}

# These run alone: they are judged by how much gets through, or keep it from others.
ALONE = (
    "tests/system/plugin/test_attacks.py",
    "tests/system/bench/test_starved.py",
    "tests/system/bench/test_backends.py",
    "tests/system/bench/test_ways.py",
    "tests/system/bench/test_zones.py",
    "tests/system/edge/test_expiry.py",
)
# How often tests marked "long" do what they do; without these variables they do a part of it.
LONG = {
    "CONCORDE_CHURN_STEPS": 3000,
    "CONCORDE_FRAMES": 5000,
    "CONCORDE_DAMAGES": 1000,
    "CONCORDE_PLUGIN_INPUTS": 50000,
    "CONCORDE_SCENARIO_INPUTS": 50000,
    "CONCORDE_ATTACK_ROUNDS": 5,
    "CONCORDE_HISTORIES": 200,
    "CONCORDE_KILLS": 50,
    "CONCORDE_AT_ONCE": 8,
    "CONCORDE_STARVED_RUNS": 3,
    "CONCORDE_OVERLAY_INPUTS": 100_000,
    "CONCORDE_OVERLAY_EVENTS": 20_000,
    "CONCORDE_OVERLAY_DATAGRAMS": 100_000,
    "CONCORDE_BACKEND_RUNS": 2,
    "CONCORDE_CASES": 100,  # percent of those of which a part is run
}


@task(
    iterable=["scenario", "set_", "kubeconfig"],
    help={
        **RUN,
        **JSON,
        "scenario": f"{SCENARIO}; may be repeated (default: the paper's two)",
        "kubeconfig": "run on a cluster that exists: FILE, or a=FILE for cluster a; one for each cluster",
        "enforcement": "how guarantees are kept: none, pod, node, bandwidth",
        "repetitions": "how often each scenario's traffic runs",
        "resume": "go on with an interrupted run, as it was begun: its directory or run id",
    },
)
def bench(
    _context: Context,
    scenario: list[str],
    set_: list[str],
    kubeconfig: list[str],
    scale: float = 1.0,
    enforcement: str = "",
    repetitions: str | None = None,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
    resume: str = "",
    json: bool = False,
) -> None:
    """Run experiments and judge them: does every pod get the bandwidth it was promised?"""
    from bench.cli.verbs import asked, experiments

    def run() -> int:
        overrides = [*set_, *asked.overrides(enforcement, repetitions)]
        return experiments.bench(
            scenario, kubeconfig, resume, json,
            overrides=overrides, scale=scale, provider=provider, orchestrator=orchestrator, reports=reports,
        )  # fmt: skip

    exits.ends_with_status(run)()


@task(
    iterable=["scenario", "enforcement", "set_"],
    help={
        **STUDY,
        "scenario": f"{SCENARIO}; may be repeated (default: contmec, congested and latency)",
        "enforcement": "none, bandwidth, pod, node; may be repeated (default: all)",
        "repetitions": "of each cell, in blocks: every cell once, in a random order",
        "seed": "of that order (default: 0)",
        "gate": "exit status 1 if a case that shall hold is violated, 3 if one of them is invalid, else 0",
    },
)
def matrix(
    _context: Context,
    scenario: list[str],
    enforcement: list[str],
    set_: list[str],
    repetitions: int = 1,
    seed: int = 0,
    scale: float = 1.0,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
    resume: str = "",
    gate: bool = False,
    json: bool = False,
) -> None:
    """Compare enforcements: the same scenarios with each of them, in one table, figure and page."""
    from bench.cli.verbs import studies

    choices = {"scenario": scenario, "enforcement": enforcement}
    for name, number, default in (("repetitions", repetitions, 1), ("seed", seed, 0)):
        choices[name] = [] if number == default else [str(number)]
    exits.ends_with_status(studies.run)(
        "matrix", choices, resume, json, gate,
        overrides=set_, scale=scale, provider=provider, orchestrator=orchestrator, reports=reports,
    )  # fmt: skip


@task(
    iterable=["place", "set_"],
    help={
        **STUDY,
        "place": "physical, vtep, bridge, bridge-veth, eth0, node; may be repeated (default: all)",
    },
)
def places(
    _context: Context,
    place: list[str],
    set_: list[str],
    scale: float = 1.0,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
    resume: str = "",
    json: bool = False,
) -> None:
    """Measure at which interface bandwidth can be guaranteed: what the paper's section 3.2 argues."""
    from bench.cli.verbs import studies

    exits.ends_with_status(studies.run)(
        "places", {"place": place}, resume, json,
        overrides=set_, scale=scale, provider=provider, orchestrator=orchestrator, reports=reports,
    )  # fmt: skip


@task(
    iterable=["backend", "part", "nodes", "set_"],
    help={
        **STUDY,
        "backend": "one backend, or one of its settings; may be repeated (default: all that there are)",
        "part": "guarantee, round-trip, throughput, cost, first, nodes; may be repeated (default: all)",
        "nodes": "how many nodes a cluster has in the last part; may be repeated (default: 3, 10, 30, 60)",
        "repetitions": "how often each is measured but the nodes (default: 12 throughput, 5 cost and first)",
        "seed": "of the order in which backends take turns (default: 0)",
    },
)
def backends(
    _context: Context,
    backend: list[str],
    part: list[str],
    nodes: list[str],
    set_: list[str],
    repetitions: str = "",
    seed: str = "",
    scale: float = 1.0,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
    resume: str = "",
    json: bool = False,
) -> None:
    """Measure every backend that this machine can run: what it costs, and how soon it knows of a change."""
    from bench.cli.verbs import studies

    choices = {"backend": backend, "part": part, "nodes": nodes}
    single = {"repetitions": repetitions, "seed": seed}
    exits.ends_with_status(studies.run)(
        "backends", {**choices, **{name: [word] for name, word in single.items() if word}}, resume, json,
        overrides=set_, scale=scale, provider=provider, orchestrator=orchestrator, reports=reports,
    )  # fmt: skip


@task(
    positional=["name"],
    iterable=["choose", "set_"],
    help={
        **STUDY,
        "name": "which study: matrix, places, backends, or one that CONCORDE_EXTENSIONS=FILE brings",
        "choose": "what the study alone may be asked for, as KEY=VALUE; may be repeated",
    },
)
def study(
    _context: Context,
    name: str,
    choose: list[str],
    set_: list[str],
    scale: float = 1.0,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
    resume: str = "",
    json: bool = False,
) -> None:
    """Run several experiments that answer one question together."""
    from bench.cli.verbs import studies

    def run() -> int:
        return studies.run(
            name, studies.chosen(choose), resume, json,
            overrides=set_, scale=scale, provider=provider, orchestrator=orchestrator, reports=reports,
        )  # fmt: skip

    exits.ends_with_status(run)()


@task(
    positional=["one", "other"],
    help={
        **REPORTS,
        **JSON,
        "one": "a recording, a matrix, or a directory of them, packed or not: its path or name",
        "other": "the same of what is compared with it",
        "across_machines": "compare what was measured on different machines, too",
    },
)
def compare(
    _context: Context,
    one: str,
    other: str,
    across_machines: bool = False,
    json: bool = False,
    reports: str = "reports",
) -> None:
    """Compare two runs: is each flow's mean the same, better or worse?"""
    from bench.cli.verbs import compare as verb

    exits.ends_with_status(verb.compare)(one, other, across_machines, json, Path(reports))


@task(
    iterable=["scenario", "set_", "replay"],
    help={
        **RUN,
        "scenario": f"{SCENARIO}; may be repeated (default: the paper's two)",
        "repetitions": "how often each scenario's traffic runs",
        "history": "the directory of the machines' histories",
        "to": "the directory of nightly.md, junit.xml, bigger.json, smaller.json and trend.html",
        "acknowledged": "the file of changes that are as they should be (default: nightly.yaml)",
        "replay": "do all but run, from a recording: its directory, run id, or packed file; may be repeated",
        "machine": "print which machine this is, as its history is called, and nothing else",
    },
)
def nightly(
    _context: Context,
    scenario: list[str],
    set_: list[str],
    replay: list[str],
    scale: float = 0.1,
    repetitions: int = 5,
    history: str = "reports/history",
    to: str = "reports/nightly",
    acknowledged: str = "",
    machine: bool = False,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
) -> None:
    """Do the guarantees still hold, and as well as in the nights before? What changed is told once."""
    from bench.cli.verbs import nightly as verb

    def run() -> int:
        if machine:
            return verb.identify()
        places = verb.places(history, to, acknowledged)
        if replay:
            return verb.replay(replay, repetitions, places, Path(reports))
        return verb.run(
            scenario, repetitions, places,
            overrides=set_, scale=scale, provider=provider, orchestrator=orchestrator, reports=reports,
        )  # fmt: skip

    exits.ends_with_status(run)()


@task(
    help={
        **REPORTS,
        **JSON,
        "run": "a recording or a study: its directory, run id, packed file, or latest",
        "all_": "those of every recording and study, packed or not",
        "check": "with --all: write nothing, and name each file that is not what follows from its recording",
    },
)
def figures(
    _context: Context,
    run: str = "",
    all_: bool = False,
    check: bool = False,
    reports: str = "reports",
    json: bool = False,
) -> None:
    """Make samples, summary, figures and report again from a recording alone."""
    from bench.cli.verbs import reproduction

    exits.ends_with_status(reproduction.figures)(run, all_, check, Path(reports), json)


@task(
    iterable=["claim"],
    help={
        **REPORTS,
        "claim": "which; may be repeated (default: all that need no machines of their own)",
        "recorded": "from the recordings that are kept, in seconds and without root",
        "quick": "at a tenth of the rates, in five minutes",
        "list_": "list the claims, with the commands that measure them",
        "seed": "of the order in which experiments are made",
    },
)
def reproduce(
    _context: Context,
    claim: list[str],
    recorded: bool = False,
    quick: bool = False,
    list_: bool = False,
    seed: int = 1,
    reports: str = "reports",
) -> None:
    """Do the docs' claims come out again? Print what is expected beside what is observed."""
    from bench.cli.verbs import reproduction

    run = exits.ends_with_status(reproduction.reproduce)
    run(claim, recorded, quick, list_, seed, Path(reports))


@task(
    positional=["run"],
    help={
        **REPORTS,
        "run": "a recording's directory or run id",
        "to": "the directory that gets recording.tar.xz and summary.json",
    },
)
def pack(_context: Context, run: str, to: str, reports: str = "reports") -> None:
    """Pack a recording into one file, without names of machines and people, to be kept or given away."""
    from bench.cli.verbs import experiments

    exits.ends_with_status(experiments.pack)(run, to, Path(reports))


@task(
    iterable=["run"],
    help={
        **REPORTS,
        "to": "the archive, as in bundle.tar.xz",
        "run": "a recording or a study of yours to put in besides: its directory or run id; may be repeated",
    },
)
def bundle(_context: Context, to: str, run: list[str], reports: str = "reports") -> None:
    """Make one archive to deposit: the source at its commit, the recordings, what they are, and digests."""
    from bench.cli.verbs import reproduction

    exits.ends_with_status(reproduction.bundle)(to, run, Path(reports))


@task(
    iterable=["set_", "kubeconfig"],
    help={
        **CHANGES,
        **ORCHESTRATOR,
        "name": "what it is called; several may be up side by side",
        "scenario": SCENARIO,
        "provider": "netns, or vagrant: virtual machines, made or started",
        "kubeconfig": "in a cluster that exists: FILE, or a=FILE for cluster a; one for each cluster",
    },
)
def up(
    _context: Context,
    set_: list[str],
    kubeconfig: list[str],
    scenario: str = "contmec",
    name: str | None = None,
    scale: float = 1.0,
    provider: str = "netns",
    orchestrator: str = "cni",
) -> None:
    """Bring up a testbed that lasts, to look around in; or virtual machines, to measure on."""
    from bench.cli.verbs import testbeds

    run = exits.ends_with_status(testbeds.bring_up)
    run(name, scenario, set_, scale, provider, orchestrator, kubeconfig)


@task(positional=["cluster"], help={**NAME, "cluster": "a cluster of the scenario"})
def kubeconfig(_context: Context, cluster: str, name: str = "") -> None:
    """Print a kubeconfig for a cluster of a testbed that is up with --orchestrator kubernetes."""
    from bench.cli.verbs import testbeds

    exits.ends_with_status(testbeds.show_kubeconfig)(name, cluster)


@task(help={**NAME, **JSON})
def status(_context: Context, name: str = "", json: bool = False) -> None:
    """Show the testbeds that are up."""
    from bench.cli.verbs import testbeds

    exits.ends_with_status(testbeds.show_status)(name or None, json)


@task(name="exec", positional=["place"], help={**KEPT, "place": "a pod, container or node"})
def execute(_context: Context, place: str, name: str = "", provider: str = "", scenario: str = "") -> None:
    """Run a command in a pod, container or node: exec A-1 -- ip address."""
    from bench.cli.verbs import testbeds

    exits.ends_with_status(testbeds.execute)(name, place, provider, scenario, exits.after_dashes())


@task(
    positional=["place"],
    help={**KEPT, "place": "a pod, container or node", "interface": "one of its network interfaces"},
)
def capture(
    _context: Context,
    place: str,
    name: str = "",
    interface: str = "eth0",
    provider: str = "",
    scenario: str = "",
) -> None:
    """Show the packets of a pod, container or node: capture A-1 -- tcp port 5201."""
    from bench.cli.verbs import testbeds

    run = exits.ends_with_status(testbeds.capture)
    run(name, place, interface, provider, scenario, exits.after_dashes())


@task(
    positional=["node"],
    help={**KEPT, "node": "a node of the testbed"},
)
def ssh(_context: Context, node: str, name: str = "", provider: str = "", scenario: str = "") -> None:
    """Open a shell on a node, or run a command there: ssh worker-01 -- ip route."""
    from bench.cli.verbs import testbeds

    run = exits.ends_with_status(testbeds.log_in)
    run(name, node, provider, scenario, exits.after_dashes())


@task(
    help={
        **NAME,
        "provider": "ssh:INVENTORY takes away what runs have left there; vagrant switches machines off",
        "scenario": "with ssh the scenario that has the machines' addresses, with vagrant the machines' own",
        "destroy": "with vagrant: remove the machines, with all that is on them",
    }
)
def down(
    _context: Context,
    name: str = "",
    provider: str = "",
    scenario: str = "",
    destroy: bool = False,
) -> None:
    """Take a testbed down."""
    from bench.cli.verbs import testbeds

    exits.ends_with_status(testbeds.take_down)(name, provider, scenario, destroy)


@task(help=JSON)
def doctor(_context: Context, json: bool = False) -> None:
    """Say what this machine lacks, and what to do about it."""
    from bench.cli.verbs import supplies

    exits.ends_with_status(supplies.examine)(json)


@task(
    iterable=["set_"],
    help={
        **CHANGES,
        "scenario": "the scenario whose nodes and clusters they become",
        "provider": "ssh:INVENTORY, ssh with addresses in the scenario, or vagrant",
        "from_": "a directory made by kubernetes.bundle; without one programs are kept ones, or downloaded",
        "version": "which Kubernetes, if not that of the directory, or a current one",
        "reset": "take away what provisioning has made",
    },
)
def provision(
    _context: Context,
    set_: list[str],
    provider: str,
    scenario: str = "contmec",
    scale: float = 1.0,
    from_: str = "",
    version: str = "",
    reset: bool = False,
) -> None:
    """Turn machines into a scenario's Kubernetes clusters; again, to go on or to make sure."""
    from bench.cli.verbs import machines

    if reset:
        exits.ends_with_status(machines.reset)(provider, scenario)
    run = exits.ends_with_status(machines.provision)
    run(provider, scenario, set_, scale, from_, version)


@task(
    name="kubernetes.bundle",
    help={"to": "the directory", "version": "which of the kept versions (default: 1.20.2)"},
)
def make_bundle(_context: Context, to: str, version: str = "") -> None:
    """Put what machines need of a kept Kubernetes version into a directory, for provision --from."""
    from bench.cli.verbs import supplies

    exits.ends_with_status(supplies.make_bundle)(to, version)


@task(
    name="kubernetes.get",
    help={
        "version": "which Kubernetes (default: 1.20.2)",
        "from_": "a directory that has the programs already",
        "download": "download the official release, checked by its published checksums",
        "build": "build it from Debian's source package, in some 5 minutes",
        "flannel": "a flanneld program, for the overlays from now on; none: the testbed makes them again",
    },
)
def get_kubernetes(
    _context: Context,
    version: str = "",
    from_: str = "",
    download: bool = False,
    build: bool = False,
    flannel: str = "",
) -> None:
    """Provide the programs of a Kubernetes version and the pods' images, checked and cached."""
    from bench.cli.verbs import supplies

    run = exits.ends_with_status(supplies.get_kubernetes)
    run(version, from_, download, build, flannel)


@task(name="programs.get")
def get_programs(_context: Context) -> None:
    """Provide the programs that backends run on nodes: Debian's packages, unpacked and not installed."""
    from bench.cli.verbs import supplies

    exits.ends_with_status(supplies.get_programs)()


@task(name="deploy.images")
def deploy_images(_context: Context) -> None:
    """Assemble the images for clusters that exist: the installer's and those of bench's pods."""
    from bench.cli.verbs import supplies

    exits.ends_with_status(supplies.provide_images)()


@task(
    name="box.build",
    help={
        "to": "the directory of the box (default: in the cache)",
        "version": "its version, as in 12.0.1 (default: the time)",
        "upgrade": "take the packages that the mirror has now, and pin those",
        "mirror": "URL of a mirror of Debian (default: this machine's, as its apt sources say)",
        "security": "URL of a mirror of Debian's security updates (default: this machine's)",
    },
)
def build_box(
    _context: Context,
    to: str = "",
    version: str = "",
    upgrade: bool = False,
    mirror: str = "",
    security: str = "",
) -> None:
    """Build the virtual machines' box from Debian's packages, as they are pinned."""
    from bench.cli.verbs import machines

    exits.ends_with_status(machines.build_box)(to, version, upgrade, mirror, security)


@task
def schema(_context: Context) -> None:
    """Write the JSON Schema of scenarios, for editors."""
    from bench.cli.verbs import scenarios

    exits.ends_with_status(scenarios.write_schema)()


@task
def lint(context: Context) -> None:
    """Check style, types, and which part imports which."""
    for tool in (
        "ruff check",
        "ruff format --check",
        "ansible-lint --offline -q playbooks",
        "zizmor --offline --quiet .github/workflows",
        "mypy tasks.py bench testbed edge plugin/build.py benchmarks tests docs/examples",
        "mypy plugin/concorde",
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
