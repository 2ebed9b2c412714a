"""A JSON array too long to hold, one object at a time with the line it begins on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ropewalk.errors import ClusterError
from ropewalk.tenancy.traces.sheet import open_text

PIECE = 1 << 18
LONGEST = 1 << 26
"""Characters of one object; a longer one is a file that lost its brackets."""
_SPACE = " \t\r\n"


def objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, object) for every element of the array that the file is."""
    decoder = json.JSONDecoder()
    with open_text(path) as stream:
        window = _Window(path, stream)
        window.take("[", "the file does not begin with '[': give a JSON array of jobs")
        first = True
        while window.peek() != "]":
            if not first:
                window.take(",", "there is neither ',' nor ']' after a job: fix the JSON there")
            if window.peek() != "{":
                raise window.mistake("a job is not an object: fix the JSON there")
            line = window.line
            yield line, window.decode(decoder)
            first = False
        window.take("]", "the array does not end: complete the file")
        if window.peek():
            raise window.mistake("something follows the array: remove it")


class _Window:
    """The part of a file that is being read, with the line of its beginning."""

    def __init__(self, path: Path, stream: Any) -> None:
        self.path = path
        self.line = 1
        self._stream = stream
        self._text = ""
        self._at = 0

    def mistake(self, message: str) -> ClusterError:
        return ClusterError(f"trace {self.path}: line {self.line}: {message}")

    def peek(self) -> str:
        """The next character that is no space; nothing at the end of the file."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self.line += self._text[self._at] == "\n"
                self._at += 1
            if self._at < len(self._text) or not self._more(PIECE):
                return self._text[self._at : self._at + 1]

    def take(self, character: str, otherwise: str) -> None:
        if self.peek() != character:
            raise self.mistake(otherwise)
        self._at += 1

    def decode(self, decoder: json.JSONDecoder) -> dict[str, Any]:
        """The object that begins here; the window grows until it is whole, twice as much each time."""
        wanted = PIECE
        while True:
            try:
                value, end = decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as problem:
                if len(self._text) - self._at > LONGEST or not self._more(wanted):
                    line = self.line + self._text.count("\n", self._at, problem.pos)
                    raise ClusterError(f"trace {self.path}: line {line}: {problem.msg}: fix the JSON there") from None
                wanted *= 2
                continue
            except RecursionError:
                raise self.mistake("the JSON is nested too deeply: write flat lists") from None
            self.line += self._text.count("\n", self._at, end)
            self._at = end
            found: dict[str, Any] = value
            return found

    def _more(self, characters: int) -> bool:
        try:
            piece = self._stream.read(characters)
        except UnicodeDecodeError:
            raise self.mistake("the file is not UTF-8 text: save it as UTF-8") from None
        self._text, self._at = self._text[self._at :] + piece, 0
        return bool(piece)
