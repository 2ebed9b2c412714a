"""Blocks of code that the manual shows, with the reason where one cannot run in a test."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")))
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```", re.M | re.S
)


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str
    reason: str | None
    """Why it does not run in a test; None where it does."""

    @property
    def commands(self) -> list[list[str]]:
        """The command lines of a console block, without prompts, comments, printed answers and what follows a pipe."""
        found = []
        for line in self.text.replace("\\\n", " ").splitlines():
            if line.startswith("$ ") or re.match(r"(\.venv/bin/)?(ropewalk|torchrun|python) ", line):
                for part in re.split(r" && | > ", line.removeprefix("$ ")):
                    words = shlex.split(part, comments=True)
                    found.append([words[0].removeprefix(".venv/bin/"), *words[1:]])
        return found


def blocks(page: str, language: str) -> list[Block]:
    """The blocks of a page in one language, in order."""
    text = (ROOT / page).read_text()
    return [
        Block(page, text[: found.start()].count("\n") + 1, language, found["text"], found["reason"])
        for found in _BLOCK.finditer(text)
        if found["language"] == language
    ]
