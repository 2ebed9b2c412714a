"""Where files are opened: nothing else in ropewalk opens a file that somebody else wrote.

>>> from ropewalk.errors import InputError
>>> read_text(Path("no-such-file.txt"), "file no-such-file.txt", InputError)
Traceback (most recent call last):
    ...
ropewalk.errors.InputError: file no-such-file.txt does not exist: check the path
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import IO

from ropewalk.documents.inflating import GZIP, PIECE, inflated
from ropewalk.documents.limits import LONGEST_LINE, MOST_BYTES
from ropewalk.errors import InputError
from ropewalk.units import show_size

Problem = type[InputError]


def read_bytes(path: Path, subject: str, error: Problem, most: int = MOST_BYTES) -> bytes:
    """All bytes of a file of at most this size."""
    with _opened(path, subject, error) as stream:
        # Piece by piece: to read at most a gigabyte, Python takes a gigabyte, however small the file is.
        return b"".join(_up_to(most, _all_of(stream.read(PIECE), stream), subject, error))


def read_text(path: Path, subject: str, error: Problem, most: int = MOST_BYTES) -> str:
    """The text of a file, packed with gzip or plain."""
    return decode(unpacked(read_bytes(path, subject, error, most), subject, error, most), subject, error)


def unpacked(content: bytes, subject: str, error: Problem, most: int = MOST_BYTES) -> bytes:
    """What gzip packed; other bytes as they are."""
    return b"".join(inflated(iter((content,)), subject, error, most)) if content[:2] == GZIP else content


def decode(content: bytes, subject: str, error: Problem) -> str:
    """Bytes as text: UTF-8 without NUL."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise error(f"{subject} is not UTF-8 text (byte {problem.start}): save it as UTF-8") from None
    if "\0" in text:
        raise error(f"{subject} is not text (byte {content.index(0)} is NUL): save it as UTF-8")
    return text


def read_lines(path: Path, subject: str, error: Problem, most: int) -> Iterator[str]:
    """The lines of a text file with their ends, one at a time: of tables too long to be held."""
    number, rest = 0, b""
    for piece in _pieces(path, subject, error, most):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            number += 1
            yield _line(line + b"\n", number, subject, error)
        if len(rest) > LONGEST_LINE:
            raise error(f"{subject}: line {number + 1} is longer than {show_size(LONGEST_LINE)}: break it up")
    if rest:
        yield _line(rest, number + 1, subject, error)


def read_pieces(path: Path, subject: str, error: Problem, most: int) -> Iterator[str]:
    """The text of a file, some at a time: of documents too long to be held."""
    decoder = getincrementaldecoder("utf-8")()
    try:
        for piece in _pieces(path, subject, error, most):
            yield decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise error(f"{subject} is not UTF-8 text: save it as UTF-8") from None


def beginning(path: Path, characters: int = 400) -> str:
    """How a file begins, to see what it is; nothing where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(4 * characters).decode("utf-8", "replace")[:characters]
    except (OSError, ValueError):
        return ""


def packaged_text(package: str, name: str) -> str:
    """The text of a file that ropewalk brings along."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


@contextmanager
def _opened(path: Path, subject: str, error: Problem) -> Iterator[IO[bytes]]:
    if "\0" in str(path):
        raise error(f"{str(path)!r} contains a NUL, which file names cannot: check the path")
    try:
        with open(path, "rb") as stream:
            yield stream
    except FileNotFoundError:
        raise error(f"{subject} does not exist: check the path") from None
    except OSError as problem:
        raise error(f"{subject} cannot be read: {problem.strerror or problem}: check the path") from None


def _pieces(path: Path, subject: str, error: Problem, most: int) -> Iterator[bytes]:
    """The bytes of a file, unpacked, some at a time."""
    with _opened(path, subject, error) as stream:
        first = stream.read(PIECE)
        if first[:2] == GZIP:
            yield from inflated(_all_of(first, stream), subject, error, most)
            return
        yield from _up_to(most, _all_of(first, stream), subject, error)


def _up_to(most: int, pieces: Iterator[bytes], subject: str, error: Problem) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise error(f"{subject} is larger than {show_size(most)}, the limit: give a smaller file")
        yield piece


def _all_of(first: bytes, stream: IO[bytes]) -> Iterator[bytes]:
    piece = first
    while piece:
        yield piece
        piece = stream.read(PIECE)


def _line(line: bytes, number: int, subject: str, error: Problem) -> str:
    if len(line) > LONGEST_LINE:
        raise error(f"{subject}: line {number} is longer than {show_size(LONGEST_LINE)}: break it up")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise error(f"{subject} is not UTF-8 text in line {number}: save it as UTF-8") from None
    if "\0" in text:
        raise error(f"{subject} is not text (line {number} has a NUL): save it as UTF-8")
    return text
