"""This machine and others: what they need."""

from __future__ import annotations

from invoke.context import Context

from bench.cli import exits
from bench.cli.commands.options import CHANGES, JSON, task


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


@task(name="image.build")
def build_image(_context: Context) -> None:
    """Assemble the container image in which bench runs, from what is installed here."""
    from bench.cli.verbs import supplies

    exits.ends_with_status(supplies.provide_runner)()


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


@task(positional=["shell"], help={"shell": "bash, zsh or fish"})
def completion(_context: Context, shell: str) -> None:
    """Print what lets your shell complete lines: source <(./invokew completion bash)."""
    from bench.cli.verbs import shells

    exits.ends_with_status(shells.show)(shell)
