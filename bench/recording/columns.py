"""Files of text as one: the text without its numbers, and the numbers in columns, which xz packs to a third.

A program prints the same lines again and again with other numbers. Numbers of the same place in a line are
put into one column; of a column differences are kept where that is shorter; and what iperf3 computes of other
numbers is left out and computed again, as are the digests that a run has of its files. Any bytes come back
exactly: what would not is kept as hexadecimal digits.

The form: a line of JSON, with how each file is kept, how long it is and its path, and what each column is;
then the files' text, a null character for each number; then the numbers, as LEB128 of their zigzag.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np

FORM = "columns 1"
# How a file is kept; of gzip what follows are the ten bytes of its header, and DIGESTS is a text without what
# follows from other files.
TEXT, GZIP, HEX, DIGESTS = "t", "g", "h", "d"
VALUES, STEPS, CHANGES, BESIDE = range(4)  # what a column keeps; BESIDE: steps, less a multiple of the next's
_NUMBER = re.compile(r"(?<=[\[,:\t\n ])(?:-(?=[\d.]*[1-9]))?(?:0|[1-9]\d*)(?:\.\d+)?(?=[,\]}\n])")
_MOST_DECIMALS, _MOST = 15, 2**58  # of a number with its decimals; so nothing exceeds 64 bits
# A row of iperf3: its stream, if it is not the sum, and when, how long, how much, how fast, how often again.
_ROW = re.compile(
    r'((?:"socket":\t\d+,\s*)?)"start":\t([^,]*)(,\s*"end":\t)([^,]*)(,\s*"seconds":\t)([^,]*)'
    r'(,\s*"bytes":\t)([^,]*)(,\s*"bits_per_second":\t)([^,\s]*)((?:,\s*"retransmits":\t)?)(\d*)'
)
# Which file says the others' digests, of the directory that it is in; and one of them, or where it was.
_RUN = "raw/run.json"
_DIGEST = re.compile(r'("([^"\n]+)": ")([0-9a-f]{64}|)(?=")')
# How numbers are printed, given their decimals: by cJSON, by Python, and by its formats.
_STYLES: tuple[Callable[[int, int], str], ...] = (
    lambda value, decimals: f"{value / 10**decimals:.15g}" if decimals else str(value),
    lambda value, decimals: repr(value / 10**decimals),
    lambda value, decimals: f"{value / 10**decimals:.{decimals}f}",
)
_Key = tuple[str, str, int]  # the kind of the file, what was written before, and how many numbers came since
_Choice = Callable[[str, str], str]  # between what is written and what follows
_Column = Any  # an array of 64-bit integers


def encode(contents: Mapping[str, bytes]) -> bytes:
    """Return files, by path, as one."""
    columns: dict[_Key, list[str]] = {}
    files, texts = [], []
    for path in sorted(contents, key=_alike):
        how, text = _kept(contents[path], path.endswith(".gz"))
        if path.endswith(_RUN) and how == TEXT:
            how, text = _undigested(path, text, contents)
        texts.append((_taken(path, text, columns) if how != HEX else text).encode())
        files.append([how, len(texts[-1]), path])
    described, numbers = _described(columns)
    head = json.dumps([FORM, files, described], separators=(",", ":"))
    return b"".join([head.encode(), b"\n", *texts, *numbers])


def decode(packed: bytes, most_bytes: int) -> dict[str, bytes]:
    """Return the files. Raises ValueError for what ``encode`` does not return, and for more bytes."""
    try:
        return _decoded(packed, most_bytes)
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error) as error:
        raise ValueError(f"damaged: {error!r}") from None


def is_encoded(packed: bytes) -> bool:
    """Tell whether bytes begin as ``encode`` writes them."""
    return packed.startswith(f'["{FORM}",'.encode())


def _decoded(packed: bytes, most_bytes: int) -> dict[str, bytes]:
    line, _, _ = packed.partition(b"\n")
    _, files, described = json.loads(line)
    at = len(line) + 1
    end = at + sum(size for _, size, _ in files)
    if any(size < 0 for _, size, _ in files) or (len(packed) - end) * 8 > most_bytes:
        raise ValueError("it holds too much")
    if end > len(packed):
        raise ValueError("it is cut off")
    columns = _Columns(described, packed[end:])
    contents: dict[str, bytes] = {}
    without: list[str] = []  # digests
    room = most_bytes
    for how, size, path in files:
        if path in contents:
            raise ValueError(f"{path!r} is there twice")
        text = packed[at : at + size].decode()
        at += size
        contents[path] = _restored(how, text if how == HEX else _filled(path, text, columns, room))
        room -= len(contents[path])
        if how == DIGESTS:
            without.append(path)
    for path in without:
        short = contents[path]
        contents[path] = _digested(path, short.decode(), contents, _derived_if_absent).encode()
        room -= len(contents[path]) - len(short)
    if room < 0:
        raise ValueError(f"it holds more than {most_bytes} bytes")
    return contents


def _alike(path: str) -> tuple[str, str]:
    """Sort files of one kind together."""
    name = path.rpartition("/")[2]
    kind = name.partition(".")[2]
    return ("queues" if name.startswith("queues-") else kind if "." in kind else name), path


def _kept(content: bytes, zipped: bool) -> tuple[str, str]:
    """Return how a file is kept, and its text without what is derived."""
    try:
        text = (gzip.decompress(content) if zipped else content).decode()
        how = GZIP + content[:10].hex() if zipped else TEXT
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return HEX, content.hex()
    for choose in (_without, lambda written, _: written):
        try:
            shorter = _rows(text, choose)
            if "\0" not in text and _restored(how, shorter) == content:
                return how, shorter
        except (ValueError, OverflowError):  # no row of iperf3
            pass
    return HEX, content.hex()


def _without(written: str, derived: str) -> str:
    return "" if written == derived else written


def _derived_if_absent(written: str, derived: str) -> str:
    return written or derived


def _undigested(path: str, text: str, contents: Mapping[str, bytes]) -> tuple[str, str]:
    """Return how a run's record is kept, and its text without the digests that the other files have."""
    shorter = _digested(path, text, contents, _without)
    whole = _digested(path, shorter, contents, _derived_if_absent) == text
    return (DIGESTS, shorter) if whole and shorter != text else (TEXT, text)


def _digested(path: str, text: str, contents: Mapping[str, bytes], choose: _Choice) -> str:
    """Return the text with a choice between each digest as it is written, and what the file has."""
    directory = path.removesuffix(_RUN)

    def chosen(match: re.Match[str]) -> str:
        before, name, written = match.groups()
        content = contents.get(directory + name)
        if content is None or name.endswith(_RUN):  # one of these could need the other
            return match[0]
        return before + choose(written, hashlib.sha256(content).hexdigest())

    return _DIGEST.sub(chosen, text)


def _restored(how: str, text: str) -> bytes:
    if how == HEX:
        return bytes.fromhex(text)
    content = _rows(text, _derived_if_absent).encode()
    if how in (TEXT, DIGESTS):
        return content
    if not how.startswith(GZIP):
        raise ValueError(f"{how!r} is no way to keep a file")
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    end = struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFFFFFF)
    return bytes.fromhex(how.removeprefix(GZIP)) + deflate.compress(content) + deflate.flush() + end


def _places(kind: str, gaps: Sequence[str]) -> Iterator[_Key]:
    """Yield the place of each number that follows one of these texts: that on its line before it."""
    place, count = "", 0
    for gap in gaps:
        if len(gap) > 1:
            place, count = gap[gap.rfind("\n") + 1 :], 0
        else:
            count += 1
        yield kind, place, count


def _taken(path: str, text: str, columns: dict[_Key, list[str]]) -> str:
    """Take the numbers out of a text, and put each into its column."""
    gaps, end = [], 0
    numbers = list(_NUMBER.finditer(text))
    for number in numbers:
        gaps.append(text[end : number.start()])
        end = number.end()
    for key, number in zip(_places(_alike(path)[0], gaps), numbers, strict=True):
        columns.setdefault(key, []).append(number[0])
    return "\0".join([*gaps, text[end:]])


def _filled(path: str, text: str, columns: _Columns, room: int) -> str:
    """Put the numbers back into a text, of so many bytes at most."""
    texts = text.split("\0")
    numbers = list(map(next, [columns[key] for key in _places(_alike(path)[0], texts[:-1])]))
    if len(numbers) < len(texts) - 1:  # the first of them that has no more ends them all
        raise ValueError(f"{path!r} has more places for numbers than there are numbers")
    if sum(map(len, numbers)) + len(text) - len(numbers) > room:
        raise ValueError("it holds too much")
    parts = texts + numbers
    parts[::2], parts[1::2] = texts, numbers
    return "".join(parts)


class _Columns(dict[_Key, Iterator[str]]):
    """The numbers of each place, as text; the columns are in the order in which they are first asked for."""

    def __init__(self, described: Sequence[Any], numbers: bytes) -> None:
        counts = [0 if isinstance(one, str) else one[0] for one in described]
        values = _integers(numbers)
        if min(counts, default=0) < 0 or sum(counts) != len(values):
            raise ValueError("the numbers are not as many as they should be")
        parts = np.split(values, np.cumsum(counts)[:-1]) if counts else []
        later: _Column = values[:0]
        printed = []
        for one, part in zip(reversed(described), reversed(parts), strict=True):
            later = part if isinstance(one, str) else _integrated(part, one[3], one[4], later)
            printed.append(one.split(",") if isinstance(one, str) else _printed(later, *one[1:3]))
        super().__init__()
        self._unused = printed  # the last one first

    def __missing__(self, key: _Key) -> Iterator[str]:
        self[key] = iter(self._unused.pop())
        return self[key]


def _printed(values: _Column, decimals: int, style: int) -> Iterator[str]:
    if not 0 <= decimals <= _MOST_DECIMALS:
        raise ValueError(f"{decimals} decimals")
    if not style and not decimals:
        return map(str, values.tolist())
    return map(_STYLES[style], values.tolist(), repeat(decimals))


def _described(columns: Mapping[_Key, list[str]]) -> tuple[list[Any], list[bytes]]:
    """Return what each column is, its text where nothing prints its numbers so, and the others' numbers."""
    read = [(key, *_read(column)) for key, column in columns.items()]
    described: list[Any] = []
    numbers = []
    for (key, column, decimals, style), after in zip(read, [*read[1:], None], strict=False):
        if column is None:
            described.append(",".join(columns[key]))
            continue
        beside = after[1] if after and after[0] == (*key[:2], key[2] + 1) else None
        ways = [(_varints(kept), way, factor) for kept, way, factor in _ways(column, beside)]
        kept, way, factor = min(ways, key=lambda one: len(zlib.compress(one[0])))
        described.append([len(column), decimals, style, way, factor])
        numbers.append(kept)
    return described, numbers


def _read(column: Sequence[str]) -> tuple[_Column | None, int, int]:
    """Return a column's numbers without their point, their decimals and their style; None: it has none."""
    decimals = max(len(number.partition(".")[2]) for number in column)
    if decimals <= _MOST_DECIMALS:
        values = [round(float(number) * 10**decimals) if decimals else int(number) for number in column]
        for style, printed in enumerate(_STYLES):
            if max(map(abs, values)) < _MOST and [printed(each, decimals) for each in values] == list(column):
                return np.array(values, dtype=np.int64), decimals, style
    return None, 0, 0


def _ways(column: _Column, beside: _Column | None) -> Iterator[tuple[_Column, int, int]]:
    """Yield what may be kept of a column, how, and of which multiple."""
    steps = np.diff(column, prepend=0)
    yield column, VALUES, 0
    yield steps, STEPS, 0
    yield np.diff(steps, prepend=0), CHANGES, 0
    if beside is None or len(beside) != len(column):
        return
    others = np.diff(beside, prepend=0)
    moved = others != 0
    factors, counts = np.unique(np.round(steps[moved] / others[moved]), return_counts=True)
    for factor in map(int, factors[np.argsort(-counts, kind="stable")][:3]):
        if factor and abs(factor) * int(np.abs(others).max()) < _MOST:
            yield steps - factor * others, BESIDE, factor


def _integrated(kept: _Column, way: int, factor: int, later: _Column) -> _Column:
    if way == BESIDE:
        return np.cumsum(kept + factor * np.diff(later, prepend=0))
    if way not in (VALUES, STEPS, CHANGES):
        raise ValueError(f"{way!r} is no way to keep a column")
    for _ in range(way):
        kept = np.cumsum(kept)
    return kept


def _varints(values: _Column) -> bytes:
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)[:, None]
    shifts = 7 * np.arange(10, dtype=np.uint64)
    left = zigzag >> shifts
    there = left > 0
    there[:, 0] = True
    more = np.hstack([there[:, 1:], np.zeros_like(there[:, :1])])
    digits = (left & np.uint64(127) | more.astype(np.uint64) << np.uint64(7))[there]
    return bytes(digits.astype(np.uint8))


def _integers(varints: bytes) -> _Column:
    digits = np.frombuffer(varints, dtype=np.uint8)
    ends = np.flatnonzero(digits < 128)
    if not len(digits):
        return np.empty(0, dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if not len(ends) or ends[-1] != len(digits) - 1 or lengths.max() > 10:
        raise ValueError("the numbers are cut off")
    places = (np.arange(len(digits)) - np.repeat(starts, lengths)).astype(np.uint64)
    zigzag = np.add.reduceat((digits & 127).astype(np.uint64) << (7 * places), starts)
    return (zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(np.int64)


def _rows(text: str, choose: _Choice) -> str:
    """Return the text with a choice between what is written in iperf3's rows and what follows for it."""
    return _ROW.sub(_Rows(choose), text) if '"bits_per_second":\t' in text else text


class _Rows:
    """What follows in each row of iperf3 from those before it.

    A stream's row begins where its last one ended, and the sum's is that of the streams before it. Its
    seconds are a float of 32 bits (iperf_api.h of 3.12, ``interval_duration``), its rate follows.
    """

    def __init__(self, choose: _Choice) -> None:
        self._choose = choose
        self._ends: dict[str, str] = {}  # of each stream's last row
        self._streams: list[tuple[str, str, int, int]] = []  # since the last sum

    def __call__(self, match: re.Match[str]) -> str:
        stream, start, to, end, lasting, seconds, sent, size, fast, rate, more, again = match.groups()
        follows = self._follows(stream)
        began, ended, count, lost = (
            start or follows[0],
            end or follows[1],
            size or follows[2],
            again or follows[3],
        )
        self._ends[stream] = ended
        if stream:
            self._streams.append((began, ended, int(count), int(lost or 0)))
        lasted = round((float(ended) - float(began)) * 1e6) / 1e6
        (exact,) = struct.unpack("f", struct.pack("f", lasted))
        took = _cjson(exact)
        exact = exact if seconds in ("", took) else float(seconds)
        speed = _cjson(int(count) * 8 / exact) if exact else "0"
        written = (start, end, seconds, size, rate, again)
        derived = (follows[0], follows[1], took, follows[2], speed, follows[3] if more else "")
        kept = map(self._choose, written, derived)
        between = (f'{stream}"start":\t', to, lasting, sent, fast, more)
        return "".join(part for pair in zip(between, kept, strict=True) for part in pair)

    def _follows(self, stream: str) -> tuple[str, str, str, str]:
        """Return when a row begins and ends, its bytes and its retransmits, as far as that follows."""
        if stream or not self._streams:
            return self._ends.get(stream, "0"), "", "", ""
        (began, ended, *_), *_ = streams = self._streams
        self._streams = []
        return began, ended, str(sum(each[2] for each in streams)), str(sum(each[3] for each in streams))


def _cjson(value: float) -> str:
    """Print a number as cJSON does: 15 digits, or 17 if these differ by more than the last bit (1.7.15)."""
    if value == int(value) and abs(value) < 2**31:
        return str(int(value))
    short = f"{value:.15g}"
    close = abs(float(short) - value) <= max(abs(float(short)), abs(value)) * 2**-52
    return short if close else f"{value:.17g}"
