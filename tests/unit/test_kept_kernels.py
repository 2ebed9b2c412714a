"""What Numba keeps on disk is compiled anew when anything that a kernel is made of has changed."""

import subprocess
import sys

CALLER = """
from callee import Pair, one_more
from ropewalk.compiled import kernel

@kernel
def answer(pair):
    return one_more(pair.first) + pair[1]

if __name__ == "__main__":
    print(answer(Pair(1, 2)), answer.stats.cache_hits)
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


def run(folder, pair, more):
    (folder / "callee.py").write_text(CALLEE.format(pair=pair, more=more))
    command = [sys.executable, "-B", str(folder / "caller.py")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[0]


def test_a_kernel_notices_that_a_kernel_in_another_file_has_changed(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    assert run(tmp_path, "Two", 1) == "4"
    assert list((tmp_path / "__pycache__").glob("*.nbi"))
    assert run(tmp_path, "Two", 10) == "13"


def test_kept_kernels_with_types_that_are_gone_are_compiled_anew(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    assert run(tmp_path, "Two", 1) == "4"
    assert run(tmp_path, "Both", 1) == "4"
