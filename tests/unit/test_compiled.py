"""Kernels that a wheel brings are taken where they fit, and compiled where they do not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ropewalk import compiled
from ropewalk.compiled import KernelTarget

KERNEL = """
from ropewalk.compiled import kernel

@kernel
def total(numbers):
    found = 0.0
    for number in numbers:
        found += number
    return found
"""
CALL = """
import sys
from pathlib import Path
from ropewalk import compiled
brought = sys.argv[1:]
if brought:
    compiled.BROUGHT = Path(brought[0])
import numpy as np
import summing
print(summing.total(np.arange(4.0)), len(summing.total.stats.cache_hits))
"""


@pytest.fixture
def call(tmp_path):
    """Calls a kernel in a process of its own: its answer, and how many signatures came from disk."""

    def called(place, *arguments, **settings):
        folder = tmp_path / place
        folder.mkdir(exist_ok=True)
        (folder / "summing.py").write_text(KERNEL)
        paths = os.pathsep.join([str(folder), str(Path(compiled.__file__).parents[1])])
        cache = {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": paths}
        command = [sys.executable, "-c", CALL, *map(str, arguments)]
        ran = subprocess.run(
            command, env={**os.environ, **cache, **settings}, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        answer, hits = ran.stdout.split()
        return float(answer), int(hits)

    return called


@pytest.fixture
def brought(tmp_path, call):
    """A folder of kernels as a wheel has them, made where the source lay elsewhere."""
    folder = tmp_path / "kernels"
    settings = compiled.settings_for_wheels(folder)
    assert call("built", **settings) == (6.0, 0)
    script = [sys.executable, "-m", "ropewalk.compiled", str(folder)]
    subprocess.run(script, env={**os.environ, **settings}, check=True)
    return folder


def test_kernels_of_a_wheel_are_taken_wherever_it_is_installed(brought, call):
    assert call("installed", brought) == (6.0, 1)
    assert not list((brought.parent / "installed" / "cache").rglob("*.nbc"))


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("numba", "0.1", "they are for Python 3."),
        ("python", "2.7", "they are for Python 2.7"),
        ("llvm", ["pdp11-unknown-none", "pdp11", ""], "they are for pdp11-unknown-none"),
    ],
)
def test_kernels_for_something_else_are_left_alone_and_compiled_as_usual(brought, call, field, value, why):
    found = json.loads((brought / "target.json").read_text())
    (brought / "target.json").write_text(json.dumps({**found, field: value}))
    assert why in KernelTarget.read(brought).why_not_here()
    assert call("installed", brought) == (6.0, 0)
    assert call("installed", brought) == (6.0, 1)


def test_a_cpu_without_an_instruction_that_kernels_need_is_named():
    triple = KernelTarget.here().llvm[0]
    target = KernelTarget.here()._replace(llvm=(triple, "z80", "+avx9000"))
    assert target.why_not_here() == "they are for CPUs like z80, and this one lacks avx9000"


def test_kernels_that_were_made_for_this_very_cpu_can_be_taken():
    assert KernelTarget.here().why_not_here() is None


def test_where_no_wheel_brought_kernels_there_is_no_target(tmp_path):
    assert KernelTarget.read(tmp_path) is None


def test_kernels_of_another_source_are_not_taken(brought, call):
    assert call("installed", brought) == (6.0, 1)
    source = brought.parent / "installed" / "summing.py"
    changed = KERNEL.replace("0.0", "1.00")  # of another length: Python itself tells sources apart by second and length
    assert changed != KERNEL
    command = [sys.executable, "-c", CALL, str(brought)]
    source.write_text(changed)
    paths = os.pathsep.join([str(source.parent), str(Path(compiled.__file__).parents[1])])
    settings = {**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(source.parent / "cache")}
    ran = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["7.0", "0"]


def test_every_kernel_is_made_by_the_one_decorator():
    package = Path(compiled.__file__).parent
    others = [path for path in package.rglob("*.py") if "njit" in path.read_text() and path.name != "compiled.py"]
    assert others == [], "use `kernel` of ropewalk.compiled: what njit compiles, wheels do not bring"
