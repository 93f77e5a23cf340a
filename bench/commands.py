"""What the command line does, verb by verb; ``tasks.py`` only names the verbs and their options."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from bench.command_line import BAD_INPUT, FAILED, HELD, INVALID, VIOLATED
from testbed.quantities import format_rate
from testbed.scenario import Scenario, load, render_schema
from testbed.testbed import ENTRIES, EXISTING

if TYPE_CHECKING:
    from bench.live import Display
    from bench.recording import Recording
    from testbed.providers.ssh.inventory import Machine

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "scenarios"
SCHEMA_FILE = SCENARIOS / "scenario.schema.json"
PAPER = ("contmec", "kubernetes")  # figs. 13 and 14
COMPARED = ("contmec", "congested")
MACHINES = "contmec"  # whose machines are meant if none is said
VAGRANT = "vagrant"
NO_FLANNELD = "none"  # instead of a file
STATUS_OF_VERDICT = {"held": HELD, "violated": VIOLATED, "invalid": INVALID}


def scenario_file(name: str) -> Path:
    """Return the file of a scenario given by path or by its name in ``scenarios/``. Raises LookupError."""
    for candidate in (Path(name), SCENARIOS / f"{name}.yaml"):
        if candidate.is_file():
            here = Path.cwd()
            return candidate.relative_to(here) if candidate.is_relative_to(here) else candidate
    known = ", ".join(sorted(file.stem for file in SCENARIOS.glob("*.yaml")))
    raise LookupError(f"--scenario: no scenario {name!r} (a file, or one of: {known})")


def run_bench(
    names: Sequence[str],
    overrides: Sequence[str],
    scale: float,
    provider: str,
    orchestrator: str,
    reports: Path,
    kubeconfigs: Sequence[str] = (),
) -> int:
    """Run scenarios one after another, judge them, and return the worst exit status.

    With kubeconfigs the clusters exist already, and what runs the pods is Kubernetes.
    """
    if kubeconfigs:
        provider, orchestrator = f"{EXISTING}:{','.join(kubeconfigs)}", "kubernetes"
    # All are read before the first is started: a mistake in the second is no reason to lose the first.
    scenarios = [load(scenario_file(name), overrides, scale) for name in names or PAPER]
    statuses = [_run_one(scenario, provider, orchestrator, reports) for scenario in scenarios]
    return next((bad for bad in (VIOLATED, INVALID) if bad in statuses), HELD)


def resume_bench(run: str, reports: Path, others: Sequence[object]) -> int:
    """Make what an interrupted run lacks, judge it, and return the exit status.

    It goes on as it was begun, so whatever ``others`` holds is refused.
    """
    from bench import experiment, recording
    from bench.live import Display

    if any(others):
        raise LookupError("--resume: the run goes on as it was begun; leave out all but --reports")
    found = recording.find_unfinished(run, reports)
    display = Display(Console(), found.scenario().name)
    return _judge(experiment.resume(found, display), display)


def _run_one(scenario: Scenario, provider: str, orchestrator: str, reports: Path) -> int:
    from bench import experiment
    from bench.live import Display

    display = Display(Console(), scenario.name)
    recording = experiment.run(
        scenario, provider=provider, orchestrator=orchestrator, reports=reports, display=display
    )
    return _judge(recording, display)


def _judge(recording: Recording, display: Display) -> int:
    """Analyse a recording, give it its final name, and show what it says."""
    display.stage("analysis")
    # Imported only now: half a second of pandas and matplotlib that would otherwise delay the traffic.
    from bench import analysis, tables

    summary = analysis.analyse(recording)
    tables.show(Console(), summary, recording.finish())
    return STATUS_OF_VERDICT[summary.verdict]


def run_matrix(
    names: Sequence[str],
    enforcements: Sequence[str],
    overrides: Sequence[str],
    scale: float,
    provider: str,
    orchestrator: str,
    reports: Path,
) -> int:
    """Run scenarios under one enforcement after another, and show them side by side."""
    from bench import matrix

    files = [scenario_file(name) for name in names or COMPARED]
    plan = matrix.Plan(files, enforcements or matrix.ENFORCEMENTS, overrides, scale)
    directory = matrix.run(plan, provider, orchestrator, reports, Console())
    return show_matrix(directory)


def show_matrix(directory: Path) -> int:
    """Show a matrix's tables, and where its figure and page are."""
    from bench import matrix, tables

    console = Console()
    index, summaries = matrix.read(directory)
    for scenario in index.scenarios:
        console.print(tables.compare(index, summaries, scenario))
        console.print()
    console.print(f"recordings: {directory}", soft_wrap=True, highlight=False)
    console.print(f"figure:     {directory / 'figures'}", soft_wrap=True, highlight=False)
    console.print(f"page:       {directory / 'matrix.html'}", soft_wrap=True, highlight=False)
    return INVALID if any(each.verdict == "invalid" for each in summaries.values()) else HELD


def run_places(
    names: Sequence[str],
    overrides: Sequence[str],
    scale: float,
    provider: str,
    orchestrator: str,
    reports: Path,
) -> int:
    """Measure at which of the paper's places bandwidth can be guaranteed; see bench.places."""
    from bench import places

    known = list(dict.fromkeys(case.place for case in places.CASES))
    for name in names:
        if name not in known:
            raise LookupError(f"--place: no place {name!r} (places: {', '.join(known)})")
    wanted = {places.UNSHAPED, *(names or known)}
    directory = SCENARIOS / "places"
    cases = [(c, c.load(directory, overrides, scale)) for c in places.CASES if c.place in wanted]
    return show_places(places.run(cases, provider, orchestrator, reports, Console()))


def show_places(directory: Path) -> int:
    """Show a study of places; it is invalid if any of its runs is."""
    from bench import places, places_table

    console = Console()
    study = places.read(directory)
    for table in (places_table.rates(study), places_table.answers(study)):
        console.print(table)
        console.print()
    for row in study.rows:
        if row.reason:
            text = f"not run: {row.place}, {row.classes}: {row.reason}"
            console.print(text, soft_wrap=True, markup=False, highlight=False)
    console.print(f"recordings: {directory}", soft_wrap=True, highlight=False)
    console.print(f"figure:     {directory / 'figures'}", soft_wrap=True, highlight=False)
    return INVALID if any(row.verdict in (None, "invalid") for row in study.rows) else HELD


def draw_figures(run: str, reports: Path) -> int:
    """Make everything that follows from a recording, a matrix or a study of places again, and show it."""
    from bench import analysis, matrix, places, recording, tables

    for directory in (Path(run), reports / run):
        if (directory / matrix.INDEX).is_file():
            matrix.analyse(directory)
            return show_matrix(directory)
        if (directory / places.INDEX).is_file():
            places.analyse(directory)
            return show_places(directory)
    found = recording.find(run, reports)
    summary = analysis.analyse(found)
    tables.show(Console(), summary, found)
    return STATUS_OF_VERDICT[summary.verdict]


def bring_up(
    name: str, file: str, overrides: Sequence[str], scale: float, provider: str, orchestrator: str
) -> int:
    """Bring up a lasting testbed of one scenario."""
    from bench.live import Display
    from testbed import lasting

    if provider != "netns":
        raise LookupError(f"--provider {provider}: what stays up is made of namespaces or by vagrant")
    scenario = load(scenario_file(file), overrides, scale)
    lasting.up(scenario, name, orchestrator, Display(Console(), name).stage)
    return show_status(name)


def bring_up_machines(file: str, overrides: Sequence[str], scale: float) -> int:
    """Bring up a scenario's virtual machines, to be measured on, or to look around on."""
    from bench.live import Display
    from testbed.providers import vagrant

    scenario = load(scenario_file(file), overrides, scale)
    machines = vagrant.usable(scenario)
    machines.up(Display(Console(), scenario.name).stage)
    words = f"machines of scenario {scenario.name} are up; inventory: {machines.inventory()}"
    Console().print(words, markup=False, highlight=False, soft_wrap=True)
    return HELD


def show_kubeconfig(name: str, cluster: str) -> int:
    """Print a kubeconfig with which this machine's programs reach a cluster of real Kubernetes."""
    from testbed import lasting

    Console().print(lasting.kubeconfig(name, cluster), end="", markup=False, highlight=False, soft_wrap=True)
    return HELD


def show_status(name: str | None) -> int:
    """Show one lasting testbed, or all of them."""
    from testbed import lasting

    console = Console()
    states = {name: lasting.state(name)} if name else lasting.states()
    if not states:
        console.print("no testbed is up")
    for each, state in states.items():
        table = Table(title=f"{each}: scenario {state.scenario}, enforcement {state.enforcement}")
        for heading in ("name", "kind", "node", "address", "guarantee"):
            table.add_column(heading, justify="right" if heading == "guarantee" else "left")
        for place, where in state.places.items():
            promised = format_rate(where.guarantee_bps) if where.guarantee_bps else "-"
            table.add_row(place, where.kind, where.node, where.address, promised)
        console.print(table)
    return HELD


def execute(name: str, place: str, command: Sequence[str]) -> int:
    """Become a command in a pod, container or node of a lasting testbed."""
    from testbed import lasting

    if not command:
        Console(stderr=True).print("no command: write it after --, as in exec A-1 -- ip address", style="red")
        return BAD_INPUT
    lasting.execute(name, place, list(command))
    return HELD


def capture(name: str, place: str, interface: str, expression: Sequence[str]) -> int:
    """Become tcpdump on an interface of a pod, container or node."""
    from testbed import lasting

    lasting.capture(name, place, interface, list(expression))
    return HELD


def log_in(name: str, node: str, provider: str, file: str, command: Sequence[str]) -> int:
    """Become a shell, or a command, on a node: a lasting testbed's, or a machine."""
    from testbed import lasting

    if provider == "netns":
        lasting.execute(name, node, list(command) or [lasting.SHELL])
    else:
        from testbed.providers.ssh import client

        client.replace_self(_machines(provider, file), node, command)
    return HELD


def _machines(provider: str, file: str) -> dict[str, Machine]:
    """Return the machines of ``ssh:INVENTORY``, or of a scenario with addresses, or those Vagrant has made.

    Raises LookupError.
    """
    from testbed.providers.ssh import inventory

    if provider == VAGRANT:
        from testbed.providers import vagrant

        scenario = load(scenario_file(file or MACHINES))
        return inventory.machines(scenario, vagrant.inventory_file(scenario))
    kind, _, source = provider.partition(":")
    if kind != "ssh":
        raise LookupError(f"--provider: {provider!r} has no machines (ssh:INVENTORY, vagrant)")
    given = load(scenario_file(file)) if file else None
    return inventory.chosen(Path(source) if source else None, given)


def provision(
    provider: str, file: str, overrides: Sequence[str], scale: float, directory: str, version: str
) -> int:
    """Turn machines into the clusters of a scenario, and say what that has changed."""
    from testbed.provisioning import provision

    scenario = load(scenario_file(file), overrides, scale)
    offered = Path(directory) if directory else None
    done = provision.provision(scenario, _machines(provider, file), offered, version, _timed())
    return _show_changes(done.changed, "is as it should be")


def reset_machines(provider: str, file: str) -> int:
    """Take away what provisioning has made on machines, and say what that has changed."""
    from testbed.provisioning import provision

    return _show_changes(provision.reset(_machines(provider, file), _timed()).changed, "is as it was before")


def _show_changes(changed: Mapping[str, int], words: str) -> int:
    for host, count in changed.items():
        tasks = f"{count} tasks changed something" if count else "nothing had to be changed"
        Console().print(f"{host} {words}: {tasks}", markup=False, highlight=False, soft_wrap=True)
    return HELD


def make_bundle(directory: str, version: str) -> int:
    """Put what machines need of a Kubernetes version into a directory, and say what is there."""
    from testbed.kubernetes import binaries, bundle, versions

    if not directory:
        raise LookupError("--to: which directory?")
    say = _timed()
    made = bundle.make(binaries.find(version or versions.DEFAULT), Path(directory))
    say(f"Kubernetes {made.version} is in {made.directory}: {', '.join(made.files)}")
    return HELD


def _timed() -> Callable[[str], None]:
    """Return what says how far something is, and since when it has been going on."""
    console = Console()
    started = time.monotonic()

    def say(stage: str) -> None:
        words = f"{time.monotonic() - started:6.1f} s  {stage}"
        console.print(words, markup=False, highlight=False, soft_wrap=True)

    return say


def clear_machines(machines: Mapping[str, Machine]) -> int:
    """Take away what runs have left on machines."""
    from testbed.providers.ssh import clear

    left = {name: faults for name, faults in clear(machines).items() if faults}
    for name, faults in left.items():
        words = f"{name}: not taken away: {'; '.join(faults)}"
        Console(stderr=True).print(words, style="red", markup=False, highlight=False, soft_wrap=True)
    if not left:
        Console().print(f"nothing of a testbed is left on {', '.join(machines)}", highlight=False)
    return FAILED if left else HELD


def take_down(name: str, provider: str = "netns", file: str = "", destroy: bool = False) -> int:
    """Take a lasting testbed down, or virtual machines, or what runs have left on other machines."""
    if destroy and provider != VAGRANT:
        raise LookupError("--destroy is for machines that the testbed has made: --provider vagrant")
    if provider == VAGRANT:
        return _end_machines(file or MACHINES, destroy)
    if provider != "netns":
        return clear_machines(_machines(provider, file))
    from testbed import lasting

    lasting.down(name)
    Console().print(f"testbed {name!r} is down")
    return HELD


def _end_machines(file: str, destroy: bool) -> int:
    """Switch a scenario's virtual machines off, or remove them."""
    from testbed.providers.vagrant import Machines

    scenario = load(scenario_file(file))
    machines = Machines(scenario)
    if destroy:
        machines.destroy()
    else:
        machines.halt()
    Console().print(
        f"machines of scenario {scenario.name} are {'gone' if destroy else 'off'}", highlight=False
    )
    return HELD


def build_box(directory: str, version: str, upgrade: bool) -> int:
    """Build the machines' box, and let Vagrant have it."""
    from testbed.box import building
    from testbed.kubernetes import cache

    console = Console()

    def say(stage: str) -> None:
        console.print(f"box: {stage}", markup=False, highlight=False, soft_wrap=True)

    where = Path(directory).absolute() if directory else cache.directory() / "boxes"
    found = building.build(where, version or building.of_today(), upgrade, say)
    if shutil.which("vagrant") is None:
        say(f"Vagrant is not installed here; where it is: vagrant box add {found}")
    else:
        building.add(found)
        say(f"Vagrant has it; it is also in {found.with_suffix('.box')}")
    return HELD


def examine() -> int:
    """Say what this machine lacks for a testbed."""
    from testbed import doctor

    console = Console()
    status = HELD
    for finding in doctor.examine():
        mark = "ok     " if finding.fine else "MISSING" if finding.needed else "lacking"
        style = "" if finding.fine else "red" if finding.needed else "yellow"
        console.print(
            f"{mark}  {finding.subject}", style=style, markup=False, highlight=False, soft_wrap=True
        )
        if not finding.fine:
            console.print(f"         {finding.remedy}", markup=False, highlight=False, soft_wrap=True)
            status = FAILED if finding.needed else status
    return status


def get_kubernetes(version: str, directory: str, download: bool, build: bool, flannel: str) -> int:
    """Provide Kubernetes' programs and the pods' images, and say where they are."""
    from testbed.kubernetes import debian, getting, images, release, versions

    if sum([bool(directory), download, build]) > 1:
        raise LookupError("--from, --download and --build: give one of them")
    source: getting.Source | None = None
    if directory:
        source = getting.from_directory(Path(directory))
    elif download:
        source = release.download
    elif build:
        source = debian.build
    without = flannel == NO_FLANNELD
    flanneld = Path(flannel) if flannel and not without else None
    say = _timed()
    got = getting.get(version or versions.DEFAULT, source, flanneld, without, say)
    say(f"Kubernetes {got.version} is in {got.directory}, {got.source}")
    say(f"overlays: by flanneld {got.flanneld}" if got.flanneld else f"overlays: {ENTRIES}")
    for image in images.provide():
        say(f"image {image.name} is in {image.archive}")
    return HELD


def provide_images() -> int:
    """Assemble the images that nodes of clusters which exist need, and say where they are."""
    from testbed.kubernetes import images, installer

    wanted = [installer.provide(), *(image for image in images.provide() if image.name == images.TRAFFIC)]
    for image in wanted:
        words = f"image {image.name} is in {image.archive}"
        Console().print(words, markup=False, highlight=False, soft_wrap=True)
    return HELD


def write_schema() -> int:
    """Write the JSON Schema of scenarios for editors."""
    SCHEMA_FILE.write_text(render_schema(), encoding="utf-8")
    Console().print(f"wrote {SCHEMA_FILE.relative_to(ROOT)}")
    return HELD
