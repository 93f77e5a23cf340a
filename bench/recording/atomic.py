"""Files of results: written whole or not at all, and read whole or not at all.

Whoever looks sees the old content or the new. What cannot be written or read is named, and what is wrong,
also where the system names nothing, as when a disk is full.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from testbed.scenario import reading, texts
from testbed.scenario.faults import explained, render_path

Model = TypeVar("Model", bound=BaseModel)


class StoredError(LookupError):
    """A file that is missing, or not as it was written; the message names it, and says what is wrong."""

    def __init__(self, file: Path, *problems: str) -> None:
        super().__init__("\n".join(f"{file}: {problem}" for problem in problems))


@contextmanager
def remedy(text: str) -> Iterator[None]:
    """Let whoever is told of bad input that is met here be told what to do about it, too."""
    try:
        yield
    except LookupError as error:
        error.add_note(text)
        raise


def write(file: Path, content: bytes) -> None:
    """Write a file at once, and make its directory. Raises OSError with the file's name."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                os.fchmod(stream.fileno(), 0o644)
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None


def write_model(file: Path, model: BaseModel) -> None:
    """Write a model as JSON; see ``write``."""
    write(file, model_bytes(model))


def model_bytes(model: BaseModel) -> bytes:
    """Return what ``write_model`` writes."""
    return (model.model_dump_json(indent=1) + "\n").encode()


def write_json(file: Path, data: object) -> None:
    """Write data as JSON; see ``write``."""
    write(file, (json.dumps(data, indent=1) + "\n").encode())


def read(file: Path, kind: type[Model]) -> Model:
    """Return what ``write_model`` wrote. Raises StoredError."""
    try:
        return kind.model_validate_json(_text(file))
    except ValidationError as error:
        raise _invalid(file, error) from None


def read_yaml(file: Path, kind: type[Model]) -> Model:
    """Return what people wrote as YAML; a file of comments alone holds nothing. Raises StoredError."""
    try:
        data = reading.parse(texts.read(file, reading.MOST_BYTES))
        return kind.model_validate({} if data is None else data)
    except (texts.TextError, reading.ReadingError) as error:
        raise StoredError(file, str(error)) from None
    except ValidationError as error:
        raise _invalid(file, error) from None


def read_json(file: Path) -> Any:
    """Return what ``write_json`` wrote. Raises StoredError."""
    text = _text(file)
    try:
        data = json.loads(text)
        if "\\ud" in text.lower():  # the half of a character, which no text may hold
            json.dumps(data, ensure_ascii=False).encode()
        return data
    except (ValueError, RecursionError) as error:  # RecursionError: [[[[...
        raise StoredError(file, f"not JSON: {error}") from None


def _invalid(file: Path, error: ValidationError) -> StoredError:
    problems = (": ".join(filter(None, (render_path(path), text))) for path, text in explained(error))
    return StoredError(file, *problems)


def _text(file: Path) -> str:
    try:
        return texts.read(file)
    except texts.TextError as error:
        raise StoredError(file, str(error)) from None
