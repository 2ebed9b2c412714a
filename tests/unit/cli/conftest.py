"""Commands from outside, in this very process."""

import json
import sys
from typing import NamedTuple

import pytest

from ropewalk.cli import main


class Answer(NamedTuple):
    code: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)


@pytest.fixture
def ropewalk(monkeypatch, capsys):
    """The whole command line: its exit code and what it printed."""

    def ran(*arguments):
        monkeypatch.setattr(sys, "argv", ["ropewalk", *map(str, arguments)])
        with pytest.raises(SystemExit) as leaving:
            main()
        return Answer(leaving.value.code or 0, *capsys.readouterr())

    return ran
