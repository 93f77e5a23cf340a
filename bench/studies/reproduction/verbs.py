"""Verbs that ask whether what is said and shown comes out again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from bench.analysis import next_steps
from bench.analysis.next_steps import NextStep, where
from bench.console import progress
from bench.console.documents import Document
from bench.console.messages import lead, say
from bench.console.statuses import HELD, INVALID, VIOLATED
from bench.presentation import commands
from bench.recording import archive, atomic
from bench.recording.directory import begin_directory, finish_directory
from bench.studies.backends import sheets as backends
from bench.studies.devices import page as devices
from bench.studies.devices.index import INDEX as DEVICES
from bench.studies.promise import report as promises
from bench.studies.promise.index import INDEX, Promise
from bench.studies.reproduction import bundle as bundles
from bench.studies.reproduction import claims, pages, regeneration
from bench.studies.reproduction.claims import Claim, Claims, Trial
from bench.studies.reproduction.regeneration import Kept
from bench.studies.services import page as services
from bench.studies.services.index import INDEX as SERVICES
from testbed import registry
from testbed.resources import HOME


def all_figures(reports: Path, document: Document, check: bool) -> int:
    """Make again all that follows from any recording or study; say which files have changed.

    With ``check`` do it in an unusual environment, write nothing, and name each file that differs.
    """
    directories = regeneration.everything(reports)
    environment = regeneration.UNUSUAL if check else {}
    with progress.counted("made again") as counted:
        made = regeneration.again(directories, environment, registry.load, counted)
    document["recordings"] = len(directories)
    told = f"{len(directories)} recordings and studies below {reports}"
    return _compared(made, reports, document, told) if check else _written(made, reports, document, told)


def _written(made: Sequence[Kept], reports: Path, document: Document, told: str) -> int:
    changed = [file for kept in made for file in regeneration.write(kept)]
    for file, content in _pages(reports, made):
        atomic.write(file, content)
        changed.append(file)
    for file in changed:
        say(f"changed: {file}")
    say(f"{told}; files changed: {len(changed) or 'none'}")
    document["changed"] = [str(file) for file in changed]
    return HELD


def _compared(made: Sequence[Kept], reports: Path, document: Document, told: str) -> int:
    differing = {
        file: "differs" if content is not None else "nothing makes this file"
        for kept in made
        for file, content in kept.differing.items()
    }
    differing |= {file: "differs" for file, _ in _pages(reports, made)}
    for file, how in differing.items():
        say(f"{how}: {file}")
    say(f"{told}; files that differ: {len(differing) or 'none'}")
    document["differing"] = {str(file): how for file, how in differing.items()}
    return VIOLATED if differing else HELD


def _pages(reports: Path, kept: Sequence[Kept]) -> list[tuple[Path, bytes]]:
    """Return the pages of the docs that are made, and not as they should be, with what they should be."""
    if reports.resolve() != claims.REFERENCE.parent:
        return []
    made = {
        pages.FILE: pages.render(claims.read()),
        backends.FILE: backends.render(claims.REFERENCE),
        services.FILE: services.render(_whole_index(reports, kept, "services", SERVICES)),
        devices.FILE: devices.render(_whole_index(reports, kept, "devices", DEVICES)),
        promises.PUBLISHED: promises.published(reports, _promises(reports, kept)),
        pages.VERSIONS_FILE: pages.versions(claims.REFERENCE),
    }
    contents = [(file, text.encode()) for file, text in made.items() if text is not None]
    return [
        (file, content) for file, content in contents if not file.exists() or file.read_bytes() != content
    ]


def _whole_index(reports: Path, kept: Sequence[Kept], study: str, index: str) -> bytes | None:
    """Return the whole index of a study that is kept, if it is."""
    place = reports / claims.REFERENCE.name / study
    return next((one.files.get(index) for one in kept if one.directory == place), None)


def _promises(reports: Path, kept: Sequence[Kept]) -> dict[str, Promise]:
    """Return the studies of promises among what is kept, with their results, by their names."""
    place = reports / promises.KEPT
    own = [one for one in kept if one.directory.parent == place and INDEX in one.files]
    own.sort(key=lambda one: one.directory)
    return {one.directory.name: Promise.model_validate_json(one.files[INDEX]) for one in own}


def bundle(to: str, run: Sequence[str], reports: str | Path) -> int:
    """Write one archive to deposit: the source at the last commit, its recordings and these runs."""
    if not to.endswith(bundles.SUFFIX):
        raise LookupError(f"--to: must name an archive, as in bundle{bundles.SUFFIX}, not {to or 'nothing'}")
    source = bundles.source(HOME)
    own = bundles.packed(archive.to_pack(one, Path(reports)) for one in run)
    atomic.write(Path(to), bundles.render(source.commit, {**source.members, **own}))
    if source.changed:
        say("note: what is not committed is not in it")
    say(f"commit {source.commit}: {to}")
    return HELD


def reproduce(
    claim: Sequence[str], recorded: bool, quick: bool, list_: bool, seed: int, reports: str | Path
) -> int:
    """Try claims on recordings, kept ones or new ones; print what is expected beside what is observed."""
    if recorded + quick + list_ > 1:
        raise LookupError("--recorded, --quick and --list are mutually exclusive")
    known = claims.read()
    wanted = known.named(claim)
    if list_:
        return _list(wanted)
    if recorded:
        if not claim:
            wanted = _recorded(known)
        status, doubted = _read_again(wanted)
        quick = not claim or all(one.quick for one in wanted)
    else:
        if not claim:  # all that anyone can
            ordinary = [one for one in wanted if known.machines[one.machine].ordinary]
            wanted = [one for one in ordinary if one.quick or not quick]
        status, doubted = _measured_again(wanted, quick, seed, Path(reports))
    if doubted is None:
        step = _next_step(claim, recorded, quick, str(reports))
    else:
        step = next_steps.of_recording(str(doubted), str(reports))
    lead(commands.of_step(step))
    return status


def _next_step(names: Sequence[str], recorded: bool, quick: bool, reports: str) -> NextStep:
    """Return what to run after claims were confirmed: by recordings, then by this machine, quickly or not.

    ``quick`` tells whether they were, or, of ``recorded`` ones, whether they can be.
    """
    asked = ("reproduce", *(word for name in names for word in ("--claim", name)))
    if recorded and quick:
        return NextStep((*asked, "--quick", *where(reports)), "whether they come out on this machine, too")
    if recorded or quick:
        return NextStep((*asked, *where(reports)), "whether they come out at the rates that they name")
    return NextStep(("reproduce", "--list"), "which other claims there are, and what machines they need")


def _list(claims: Sequence[Claim]) -> int:
    for one in claims:
        say(f"{one.id:24} {one.minutes:4g} min  {one.machine:10} {one.command}")
    return HELD


def _recorded(known: Claims) -> list[Claim]:
    """Return the claims that there are recordings of; say which recordings are missing."""
    for recording, reason in known.missing.items():
        say(f"not recorded: {recording}: {reason}")
    return [one for one in known.named([]) if one.recording not in known.missing]


def _read_again(wanted: Sequence[Claim]) -> tuple[int, Path | None]:
    """Try claims on the recordings that are kept; see ``_tried``."""
    with progress.counted("read again") as counted:
        tried = list(claims.recorded(wanted, claims.REFERENCE, registry.load, counted))
    return _tried(tried)


def _measured_again(
    wanted: Sequence[Claim], quick: bool, seed: int, reports: Path
) -> tuple[int, Path | None]:
    """Try claims on new recordings; see ``_tried``. Raises LookupError before anything is started."""
    for claim in wanted:
        claims.command_of(claim, quick, seed)
    directory = begin_directory(reports, "reproduction")
    status, doubted = _tried(claims.again(wanted, directory, quick, seed, say))
    finished = finish_directory(directory)
    say(f"recordings: {finished}")
    return status, doubted and finished / doubted.relative_to(directory)


def _tried(trials: Iterable[Trial]) -> tuple[int, Path | None]:
    """Show trials, each as soon as it is there; return the status of all, and the recording that decided."""
    console = Console()
    found: dict[str, list[Trial]] = {name: [] for name in ("confirmed", "outside", "invalid")}
    for tried in trials:
        console.print(pages.table_of(tried))
        found[tried.outcome].append(tried)
    say(", ".join(f"{len(each)} {name}" for name, each in found.items()))
    status = VIOLATED if found["outside"] else INVALID if found["invalid"] else HELD
    return status, next((one.recording for one in (*found["outside"], *found["invalid"])), None)
