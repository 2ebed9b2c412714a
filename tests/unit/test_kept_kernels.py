"""What is kept is found wherever the same code lies, and compiled anew when what a kernel is made of has changed."""

import os
import subprocess
import sys

import pytest

from ropewalk import compiled

CALLER = """
from callee import Pair, one_more
from ropewalk.compiled import kernel

@kernel
def answer(pair):
    return one_more(pair.first) + pair[1]

if __name__ == "__main__":
    print(answer(Pair(1, 2)), len(answer.stats.cache_hits))
"""
CALLEE = """
from typing import NamedTuple
from ropewalk.compiled import kernel

class {pair}(NamedTuple):
    first: int
    second: int

Pair = {pair}

@kernel
def one_more(number):
    return number + {more}
"""


CONSTANT = """
import sizes
from sizes import BASE
from ropewalk.compiled import kernel

@kernel
def answer():
    return BASE + sizes.STEP

if __name__ == "__main__":
    print(answer(), len(answer.stats.cache_hits))
"""


@pytest.fixture
def ask(tmp_path):
    """Runs a script in a process of its own, for a user with nothing kept at first: what it prints."""

    def asked(folder, script="caller.py", **settings):
        beside = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        environment = {**beside, "XDG_CACHE_HOME": str(tmp_path / "cache"), **settings}
        command = [sys.executable, "-B", str(folder / script)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return asked


def write(folder, pair="Two", more=1):
    folder.mkdir(exist_ok=True)
    (folder / "caller.py").write_text(CALLER)
    (folder / "callee.py").write_text(CALLEE.format(pair=pair, more=more))
    return folder


def test_checkouts_share_kernels_and_leave_those_of_others_that_differ_alone(tmp_path, ask):
    first, second = write(tmp_path / "first"), write(tmp_path / "second")
    assert ask(first) == ["4", "0"]
    assert list((tmp_path / "cache" / "ropewalk" / "kernels" / "__main__").glob("*.nbc"))
    assert ask(second) == ["4", "1"]
    assert ask(write(second, more=10)) == ["13", "0"]
    assert [ask(first), ask(second)] == [["4", "1"], ["13", "1"]]


def test_a_kernel_notices_that_a_constant_in_another_file_has_changed(tmp_path, ask):
    (tmp_path / "caller.py").write_text(CONSTANT)
    for base, step, answer in ((1, 1, "2"), (2, 1, "3"), (2, 2, "4")):
        (tmp_path / "sizes.py").write_text(f"BASE = {base}\nSTEP = {step}\n")
        assert ask(tmp_path) == [answer, "0"]
    assert ask(tmp_path) == ["4", "1"]


def test_kept_kernels_with_types_that_are_gone_are_compiled_anew(tmp_path, ask):
    assert ask(write(tmp_path / "code")) == ["4", "0"]
    assert ask(write(tmp_path / "code", pair="Both")) == ["4", "0"]


def test_the_latest_versions_of_a_kernel_stay(tmp_path):
    for at in range(compiled.VERSIONS + 2):
        for name in (f"one-{at}.nbi", f"one-{at}.1.nbc", f"one-{at}.2.nbc"):
            (tmp_path / name).write_text("")
            os.utime(tmp_path / name, (at, at))
    (tmp_path / "other-0.nbi").write_text("")
    compiled.forget_old(tmp_path, "one")
    assert {path.name.partition(".")[0] for path in tmp_path.iterdir()} == {
        "other-0", *(f"one-{at}" for at in range(2, compiled.VERSIONS + 2))
    }  # fmt: skip


def test_where_the_home_cannot_be_written_to_kernels_are_kept_beside_their_source(tmp_path, ask):
    (tmp_path / "file").write_text("no folder")
    folder = write(tmp_path / "code")
    assert ask(folder, XDG_CACHE_HOME=str(tmp_path / "file")) == ["4", "0"]
    assert list((folder / "__pycache__").glob("*.nbi"))
