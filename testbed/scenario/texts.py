"""Text from outside: is it text at all, and may it be shown as it is?

Nothing here knows what a text says. What reads files reads them whole, and never waits for one: a FIFO would
let it hang, and a device might never end.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 256 * 2**20
# What terminals take for orders, what hides or turns other characters, and what no character is: general
# categories C (control, format, surrogate, private, unassigned), Zl and Zp of the Unicode standard.
_UNSHOWN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


class TextError(ValueError):
    """A file that holds no text, or not as it should; the message says what it is, but not which file."""


def read(file: Path, most_bytes: int = MOST_BYTES) -> str:
    """Return what a file holds, UTF-8. Raises TextError."""
    content = read_bytes(file, most_bytes)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextError(f"not UTF-8 text: {error.reason} at byte {error.start}") from None


def read_bytes(file: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return what a file holds, if it is one of at most so many bytes. Raises TextError."""
    try:
        # To open a FIFO waits for who writes into it, but not like this.
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise TextError("not a regular file")
            content = stream.read(most_bytes + 1)
    except IsADirectoryError:
        raise TextError("not a file, but a directory") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        if isinstance(error, TextError):
            raise
        raise TextError(getattr(error, "strerror", None) or str(error)) from None
    if len(content) > most_bytes:
        raise TextError(f"more than {most_bytes:,} bytes")
    return content


def is_file(path: Path) -> bool:
    """Tell whether there is a file; of what is no name for the system there is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def escaped(text: str) -> str:
    """Return the text with all that cannot be shown as Python writes it: ``\\x1b``. Lines stay lines."""
    return "".join(
        char if char in "\n\t" or shown(char) else char.encode("unicode_escape").decode() for char in text
    )


def unshown(text: str) -> Iterator[str]:
    """Return the characters of a text that cannot be shown."""
    return (char for char in text if not shown(char))


def shown(char: str) -> bool:
    """Tell whether a character is one that can be seen, or a space."""
    return unicodedata.category(char) not in _UNSHOWN


def shortened(text: str, most: int = 80) -> str:
    """Return the text with its middle left out if it has more characters than that."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"
