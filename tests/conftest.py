"""Makes the plain-Python references and the recipes importable from every test, and commands callable in this very
process; time never decides a test."""

import json
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "reference"), str(HERE.parent / "recipes"), str(HERE)]

# At home every run tries other examples; in CI all runs try the same ones.
# How long it takes to draw an example says how busy the machine is.
TIMED = [HealthCheck.too_slow]
settings.register_profile("ropewalk", deadline=None, derandomize="CI" in os.environ, suppress_health_check=TIMED)
settings.load_profile("ropewalk")


class Answer(NamedTuple):
    code: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)


def pytest_addoption(parser):
    parser.addoption("--until", type=float, help="skip tests that have not begun by then, in seconds since 1970")


def pytest_runtest_setup(item):
    until = item.config.getoption("--until")
    if until and time.time() > until:
        pytest.skip("no time is left: run it by itself")


@pytest.fixture
def ropewalk(monkeypatch, capsys):
    """The whole command line: its exit code and what it printed."""

    def ran(*arguments):
        from ropewalk.cli import main

        monkeypatch.setattr(sys, "argv", ["ropewalk", *map(str, arguments)])
        with pytest.raises(SystemExit) as leaving:
            main()
        return Answer(leaving.value.code or 0, *capsys.readouterr())

    return ran
