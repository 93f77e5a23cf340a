"""The state's directories and files: this plugin's alone, whatever the umask, and never behind a symlink.

Whoever can write there takes bandwidth and addresses, and has root follow a link of theirs. So everything
below the directory that holds `stateDir` (/run by default, which is root's) is looked at before it is used. A
mode that is too wide is narrowed; an owner or a kind that is not ours is refused, in words with what to do.
"""

from __future__ import annotations

import os
import stat

from . import names
from .cni import IO_FAILURE, UNTRUSTED, UNUSABLE, CniError

# What lies in a directory of ours, and so tells that it is one.
LEDGER = "ledger.sqlite"
STORE = "leases.sqlite"  # a version before had one in each network's directory
ATTACHMENTS_LOCK, NODE_LOCK = "lock", "ledger.lock"
MARKS = (ATTACHMENTS_LOCK, NODE_LOCK, STORE, LEDGER)
AGENT_LOCK, REFUSALS = "agent.lock", "refusals"  # the agent's, beside them
FABRIC_KEY = "fabric.key"  # of the cluster that a network is of
FABRIC_LOCK, FABRIC_STATE = (
    "fabric.lock",
    "fabric.json",
)  # of the agent's loop, and what it tells, in the node's directory
ORDER = "order"  # of the time of the youngest list when ADD found the network's right
LEDGER_VERSION = 12  # of its tables; with an older one there are stores
_VERSION_AT = 60  # of SQLite's file, big-endian (sqlite.org/fileformat2.html)
BESIDE = ("-journal", "-wal", "-shm")  # what SQLite puts beside a database

DAMAGED = ".damaged-"  # and a number: what `rebuild` put aside
NEW = ".new"  # what it has not finished

_DIRECTORY, _FILE = 0o700, 0o600


class WhereWhole:
    """A block `with WhereWhole():` ends, without an error, at a file that cannot be trusted.

    For what gives something back: it must do without such a file.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: object, __: object) -> bool:
        return isinstance(error, CniError) and error.code in UNTRUSTED


def directory(path: str) -> None:
    """Make a directory of `stateDir`, and that, or see to it that both are ours. Raises CniError 108."""
    for one in (os.path.dirname(path), path):
        _directory(one)


def look(path: str) -> None:
    """See to it that a directory is ours, if it is there; nothing is changed. Raises CniError 108."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    _require_directory(path, found)


def opened(path: str) -> int:
    """A descriptor of a file of ours, which is made if it is missing. Raises CniError 108."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, _FILE)
    except OSError as error:
        if os.path.lexists(path):
            _require_file(path, os.lstat(path))
        raise CniError(IO_FAILURE, f"{path}: {error.strerror}") from error
    try:
        found = os.fstat(descriptor)
        _require_file(path, found)
        if stat.S_IMODE(found.st_mode) != _FILE:
            os.fchmod(descriptor, _FILE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def touch(path: str) -> None:
    """Make a file of ours if it is missing. Raises CniError 108."""
    os.close(opened(path))


def database(path: str) -> None:
    """Make an SQLite file, or see to it that it and what SQLite put beside it are ours alone.

    One that exists is not opened: to close it again would end the locks that another connection of this
    process has on it. Raises CniError 108.
    """
    for suffix in ("", *BESIDE):
        try:
            found = os.lstat(path + suffix)
        except FileNotFoundError:
            if not suffix:
                touch(path)
            continue
        _require_file(path + suffix, found)
        if stat.S_IMODE(found.st_mode) != _FILE:
            os.chmod(path + suffix, _FILE)


def set_aside(path: str) -> str:
    """Give a file or directory, whatever it is, another name beside it, and return that."""
    number = 1
    while os.path.lexists(f"{path}{DAMAGED}{number}"):
        number += 1
    os.rename(path, f"{path}{DAMAGED}{number}")
    return f"{path}{DAMAGED}{number}"


def is_ours(name: str) -> bool:
    """Whether a file of that name, in a directory of ours, is of this plugin."""
    if name.startswith(f".{FABRIC_STATE}."):
        return name.rpartition(".")[2].isdigit()  # an agent was killed while it wrote (`files.replace`)
    whole, aside, number = name.partition(DAMAGED)
    if aside and not number.isdigit():
        return False
    for suffix in BESIDE:
        whole = whole.removesuffix(suffix)
    return whole in (
        *MARKS,
        AGENT_LOCK,
        REFUSALS,
        FABRIC_KEY,
        FABRIC_LOCK,
        FABRIC_STATE,
        ORDER,
        STORE + NEW,
        LEDGER + NEW,
    )


def former_stores(state: str) -> list[tuple[str, str]]:
    """Each network of a state directory for which a version before has left a store, and where that lies."""
    try:
        found = sorted(filter(names.is_identifier, os.listdir(state)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    # What `rebuild` put aside whole is no network.
    stores = [(network, f"{state}/{network}/{STORE}") for network in found if DAMAGED not in network]
    return [(network, path) for network, path in stores if os.path.lexists(path)]


def are_former(state: str) -> bool:
    """Whether a version before has left a ledger, or stores and none, as far as a glance can tell."""
    try:
        descriptor = os.open(
            f"{state}/node/{LEDGER}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        )
    except FileNotFoundError:
        return bool(former_stores(state))
    except OSError:
        return False  # who opens it says why
    try:
        version = int.from_bytes(os.pread(descriptor, 4, _VERSION_AT), "big")
        return version < LEDGER_VERSION and (version > 0 or bool(former_stores(state)))
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _directory(path: str) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        if _made(path):
            return
        found = os.lstat(path)
    _require_directory(path, found)
    if stat.S_IMODE(found.st_mode) != _DIRECTORY:
        os.chmod(path, _DIRECTORY)


def _made(path: str) -> bool:
    """Make it; False if another call has made it meanwhile."""
    if not os.path.isdir(os.path.dirname(path)):
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    try:
        os.mkdir(path, _DIRECTORY)
    except FileExistsError:
        return False
    os.chmod(path, _DIRECTORY)  # the umask may have taken from it
    return True


def _require_directory(path: str, found: os.stat_result) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise _unusable(path, f"is a {_kind(found.st_mode)}, not a directory")
    _require_owner(path, found)
    # /etc or /tmp must not become this plugin's because somebody wrote them down as stateDir.
    if stat.S_IMODE(found.st_mode) & ~_DIRECTORY and not _is_ours(path, found.st_mode):
        raise _unusable(
            path, "is open to others and holds what is not this plugin's", "name another stateDir"
        )


def _require_file(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _unusable(path, f"is a {_kind(found.st_mode)}, not a file")
    _require_owner(path, found)
    if found.st_nlink > 1:
        raise _unusable(path, "has a second name elsewhere")


def _require_owner(path: str, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise _unusable(
            path, f"belongs to user {found.st_uid}, not to {os.geteuid()}, as which this plugin runs"
        )


def _is_ours(path: str, mode: int) -> bool:
    """Whether a directory is empty, or has something of ours in it or one below."""
    names = os.listdir(path)
    if mode & stat.S_ISVTX:
        return False
    below = [f"{name}/" for name in names]
    return not names or any(_is_mark(f"{path}/{place}{mark}") for place in ("", *below) for mark in MARKS)


def _is_mark(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "symbolic link"
    if stat.S_ISDIR(mode):
        return "directory"
    return "file" if stat.S_ISREG(mode) else "special file"


def _unusable(path: str, problem: str, remedy: str = "") -> CniError:
    remedy = remedy or "remove it, then run concorde rebuild"
    return CniError(UNUSABLE, f"{path} {problem}: {remedy}")
