"""JSON too long to hold, one object at a time with the line it begins on: an array, or objects one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ropewalk.documents.bounds import check_depth, syntax_mistake, too_deep
from ropewalk.documents.opening import Problem, read_pieces
from ropewalk.errors import InputError

LONGEST = 1 << 26
"""Characters of one object; a longer one is a file that lost its brackets."""
_SPACE = " \t\r\n"


def read_json_array(path: Path, subject: str, error: Problem, most: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, object) for every element of the array that the file is."""
    window = _Window(subject, error, read_pieces(path, subject, error, most))
    window.take("[", "the file does not begin with '[': give a JSON array of objects")
    first = True
    while window.peek() != "]":
        if not first:
            window.take(",", "there is neither ',' nor ']' after an object: fix the JSON there")
        if window.peek() != "{":
            raise window.mistake("an element is not an object: fix the JSON there")
        line = window.line
        yield line, window.decode()
        first = False
    window.take("]", "the array does not end: complete the file")
    if window.peek():
        raise window.mistake("something follows the array: remove it")


def json_objects(text: str, subject: str, error: Problem) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, object) for objects one after the other, on one line each or on several, or in one list."""
    window = _Window(subject, error, iter((text,)))
    while window.peek(",[]"):
        if window.peek() != "{":
            raise window.mistake("there is something between objects: fix the JSON there")
        line = window.line
        yield line, window.decode()


class _Window:
    """The part of a text that is being read, with the line of its beginning."""

    def __init__(self, subject: str, error: Problem, pieces: Iterator[str]) -> None:
        self.line = 1
        self._subject, self._error = subject, error
        self._pieces = pieces
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._at = 0

    def mistake(self, message: str) -> InputError:
        return self._error(f"{self._subject}: line {self.line}: {message}")

    def peek(self, skipped: str = "") -> str:
        """The next character that is no space and none that is skipped; nothing at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE + skipped:
                self.line += self._text[self._at] == "\n"
                self._at += 1
            if self._at < len(self._text) or not self._more(1):
                return self._text[self._at : self._at + 1]

    def take(self, character: str, otherwise: str) -> None:
        if self.peek() != character:
            raise self.mistake(otherwise)
        self._at += 1

    def decode(self) -> dict[str, Any]:
        """The object that begins here; the window grows until it is whole, twice as much each time."""
        wanted = 1
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
                break
            except json.JSONDecodeError as problem:
                if len(self._text) - self._at > LONGEST or not self._more(wanted):
                    self.line += self._text.count("\n", self._at, problem.pos)
                    raise self.mistake(f"{syntax_mistake(problem)}: fix the JSON there") from None
                wanted *= 2
            except ValueError:
                raise self.mistake("a number has thousands of digits: fix the JSON there") from None
            except RecursionError:
                raise self._error(too_deep(f"{self._subject}: line {self.line}")) from None
        check_depth(value, f"{self._subject}: line {self.line}", self._error)
        self.line += self._text.count("\n", self._at, end)
        self._at = end
        found: dict[str, Any] = value
        return found

    def _more(self, pieces: int) -> bool:
        more = "".join(piece for _, piece in zip(range(pieces), self._pieces, strict=False))
        self._text, self._at = self._text[self._at :] + more, 0
        return bool(more)
