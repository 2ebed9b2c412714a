"""The solver behind allocations: whole numbers in, whole numbers out, and standard output left to the command."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ropewalk.tenancy import highs
from ropewalk.tenancy.linear_rows import ConstraintRows


def one_of_three() -> ConstraintRows:
    rows = ConstraintRows(3)
    rows.add([1.0], [1.0], (np.zeros(3), np.arange(3), 1.0))
    return rows


def test_the_cheapest_choice_is_found_and_an_impossible_one_is_said_to_be() -> None:
    cost, upper = np.array([3.0, 1.0, 2.0]), np.ones(3)
    found = highs.solve(cost, upper, one_of_three().constraint(), gap=0.0)
    assert found.status == highs.SOLVED
    assert np.rint(found.x).tolist() == [0, 1, 0]
    assert highs.solve(cost, 0 * upper, one_of_three().constraint(), gap=0.0).status == highs.INFEASIBLE


def test_rows_of_several_blocks_stand_below_each_other() -> None:
    rows = one_of_three()
    rows.add(np.zeros(2), np.inf, ([0, 1], [0, 2], [1.0, 5.0]), ([0, 1], [1, 1], -1.0))
    constraint = rows.constraint()
    assert constraint.A.toarray().tolist() == [[1, 1, 1], [1, -1, 0], [0, -1, 5]]
    assert constraint.lb.tolist() == [1, 0, 0]
    assert constraint.ub.tolist() == [1, np.inf, np.inf]


def test_what_a_solver_prints_never_reaches_standard_output(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def talkative(*given: object, **more: object) -> str:
        os.write(highs.STDOUT, b"written to the descriptor\n")
        ctypes.CDLL(None).printf(b"printed by C, and still in its buffer\n")
        return "answer"

    monkeypatch.setattr("scipy.optimize.milp", talkative)
    print("before")
    assert highs.solve(np.ones(3), np.ones(3), one_of_three().constraint(), gap=0.0) == "answer"
    print("after")
    told = capfd.readouterr()
    assert told.out == "before\nafter\n"
    assert "written to the descriptor" in told.err
    assert "printed by C" in told.err


def test_a_process_without_standard_output_solves_all_the_same() -> None:
    program = (
        "import os, numpy as np; os.close(1)\n"
        "from ropewalk.tenancy import highs\n"
        "with highs.stdout_to_stderr(): os.write(2, b'solved')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "solved")


def test_json_of_a_command_that_asks_the_solver_is_json_and_nothing_else() -> None:
    """A child process whose solver prints through C, as HiGHS does: its output is read as a program would."""
    program = """
import ctypes, json, sys
import scipy.optimize
from ropewalk.tenancy import highs
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import plant
sys.path.insert(0, sys.argv[1])
from leaf_spine_program import solve_leafs
real = scipy.optimize.milp
def talkative(*given, **more):
    ctypes.CDLL(None).puts(b"WARNING: a line of the solver")
    return real(*given, **more)
scipy.optimize.milp = talkative
found = solve_leafs(Occupancy(plant("leaf-spine:4x4x4", gpus_per_server=2)), 2, 4)
print(json.dumps({"leafs": found.leafs}))
"""
    reference = str(Path(__file__).parents[2] / "reference")
    done = subprocess.run([sys.executable, "-c", program, reference], capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)["leafs"]) == 2
    assert "a line of the solver" in done.stderr
