"""What ropewalk writes into the AdminComment of a Slurm job: the token that ties it to a job of the controller.

A job has no number yet when `job_submit.lua` asks for nodes, so a token made by the controller goes with it instead.
Users can read an AdminComment and cannot change it. The nodes stand in rank order, which Slurm itself does not keep.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ropewalk.errors import FabricError
from ropewalk.tenancy.imports.hostlist import compress, expand

WORD = "ropewalk"
LONGEST_NOTE = 200
_TOKEN = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Mark:
    """One comment.

    >>> Mark("00c0ffee00c0ffee", ("server9", "server3"), hold=True).text()
    'ropewalk token=00c0ffee00c0ffee nodes=server[9,3] hold'
    >>> Mark(note="the controller did not answer").text()
    'ropewalk: the controller did not answer'
    >>> read_mark("ropewalk token=00c0ffee00c0ffee nodes=server[9,3] hold").nodes
    ('server9', 'server3')
    """

    token: str = ""
    """Empty for a job that the controller does not know."""
    nodes: tuple[str, ...] = ()
    """In rank order, once there are any."""
    hold: bool = False
    """Ropewalk holds the job, and ropewalk releases it."""
    left: bool = False
    """Left to Slurm for good: the controller is not asked again before it runs."""
    note: str = ""
    """Why the controller does not place it, for whoever reads it."""

    def text(self) -> str:
        words = [WORD]
        if self.token:
            words.append(f"token={self.token}")
        if self.nodes:
            words.append(f"nodes={compress(self.nodes)}")
        if self.hold:
            words.append("hold")
        if self.left:
            words.append("left")
        return " ".join(words) + (f": {printable(self.note, LONGEST_NOTE)}" if self.note else "")


NOTHING = Mark()
"""Of a job that ropewalk never touched."""


def read_mark(comment: str) -> Mark:
    """The mark in a comment; a comment that is not ropewalk's, or was damaged, says nothing."""
    head, _, note = comment.partition(": ")
    words = head.split()
    if not words or words[0].rstrip(":") != WORD:
        return NOTHING
    values = dict(word.split("=", 1) for word in words[1:] if "=" in word)
    token = values.get("token", "")
    if token and not _TOKEN.fullmatch(token):
        return NOTHING
    try:
        nodes = tuple(expand(values["nodes"])) if "nodes" in values else ()
    except FabricError:
        return NOTHING
    return Mark(token, nodes, "hold" in words[1:], "left" in words[1:], note)


def printable(text: str, longest: int) -> str:
    """Text of a stranger as one short line: whatever does not print is a question mark.

    >>> printable("line\\nbreak", 20)
    'line?break'
    """
    line = "".join(letter if letter.isprintable() else "?" for letter in text[: longest + 1])
    return line if len(line) <= longest else line[: longest - 1] + "…"
