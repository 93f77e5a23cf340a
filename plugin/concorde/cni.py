"""The words of the CNI specification: versions, error codes and the error object.

Source: CNI specification 1.1.0, sections 2 (Execution Protocol) and 5 (Result Types).
"""

from __future__ import annotations

import os

VERSIONS = ("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
LATEST = VERSIONS[-1]
TYPE = "concorde"  # what a list of plugins calls this one

VERB_SINCE = {"ADD": "0.3.0", "DEL": "0.3.0", "CHECK": "0.4.0", "GC": "1.1.0", "STATUS": "1.1.0"}

# Codes the specification gives (section 5, "Error").
INCOMPATIBLE_VERSION = 1
UNKNOWN_CONTAINER = 3
INVALID_ENVIRONMENT = 4
IO_FAILURE = 5
UNDECODABLE = 6
INVALID_CONFIGURATION = 7
TRY_AGAIN = 11
NOT_AVAILABLE = 50

# Codes of this plugin (the specification leaves 100 and above to plugins).
INTERNAL = 100
COMMAND_FAILED = 101
NO_FREE_ADDRESS = 102
ALREADY_ATTACHED = 103
CHECK_FAILED = 104
NO_BANDWIDTH = 105
UPLINK_CONFLICT = 106
DAMAGED = 107
UNUSABLE = 108
UNSUITABLE = 109
UNTRUSTED = (DAMAGED, UNUSABLE)  # what a call that gives something back must do without


class CniError(Exception):
    """An outcome to be told to the runtime as the specification's error object."""

    def __init__(self, code: int, msg: str, details: str = "") -> None:
        super().__init__(msg)
        self.code = code
        self.msg = msg
        self.details = details


def at_least(version: str, other: str) -> bool:
    """Whether one supported version is another or newer."""
    return VERSIONS.index(version) >= VERSIONS.index(other)


def require_version(verb: str, version: str) -> None:
    """Refuse a version this plugin does not speak, and a verb the version does not know.

    Raises CniError 1.
    """
    if version not in VERSIONS:
        raise CniError(
            INCOMPATIBLE_VERSION,
            f"cniVersion {shown(version)} is not supported",
            "supported versions: " + ", ".join(VERSIONS),
        )
    if not at_least(version, VERB_SINCE[verb]):
        raise CniError(
            INCOMPATIBLE_VERSION, f"{verb} needs cniVersion {VERB_SINCE[verb]} or newer, not {version}"
        )


def write(descriptor: int, content: bytes) -> None:
    """Write all of it. Raises OSError."""
    while content:
        content = content[os.write(descriptor, content) :]


def say(text: str, descriptor: int = 1) -> None:
    """Say what is no part of an answer; nobody has to hear it."""
    try:  # noqa: SIM105 - importing contextlib costs a millisecond
        write(descriptor, f"{text}\n".encode(errors="replace"))
    except OSError:
        pass


def warn(text: str) -> None:
    """Say it on standard error, beside an answer."""
    say(text, 2)


def in_words(error: Exception) -> str:
    """An error, of the system without Python's decoration."""
    text, file = getattr(error, "strerror", None) or str(error), getattr(error, "filename", None)
    return f"{file}: {text}" if file else text


def shown(value: object) -> str:
    """Any value from outside as it may appear in a message: one line, not too long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
