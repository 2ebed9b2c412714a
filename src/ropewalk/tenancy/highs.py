"""HiGHS through SciPy, with a clean standard output: what commands print there is read by other programs.

HiGHS is told to be silent and mostly is; some of its messages are printed all the same, by C code that knows nothing of
`sys.stdout`. So while it runs the process's standard output is its standard error, down to the file descriptor.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

STDOUT, STDERR = 1, 2
SOLVED, INFEASIBLE = 0, 2
"""What SciPy's `milp` calls an optimum, and a proof that there is nothing."""


def solve(
    cost: NDArray[Any], upper: NDArray[Any], constraint: LinearConstraint, *, gap: float, node_limit: int | None = None
) -> Any:
    """Whole numbers from 0 to `upper` at the least cost: SciPy's result, and nothing on standard output.

    The limit is a number of nodes, never of seconds: the same program gives the same answer on every machine.
    """
    from scipy.optimize import Bounds, milp

    options: dict[str, Any] = {"mip_rel_gap": gap}
    if node_limit is not None:
        options["node_limit"] = node_limit
    with stdout_to_stderr():
        return milp(
            cost,
            integrality=np.ones(len(cost), np.int64),
            bounds=Bounds(0, upper),
            constraints=constraint,
            options=options,  # type: ignore[arg-type]  # SciPy's stubs want a literal
        )


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Whatever the process writes to its standard output, also from C, goes to standard error meanwhile."""
    try:
        kept = os.dup(STDOUT)
    except OSError:  # there is no standard output that could be spoiled
        yield
        return
    _flush()
    try:
        os.dup2(STDERR, STDOUT)
        yield
    finally:
        _flush()  # what C still holds belongs to this side
        os.dup2(kept, STDOUT)
        os.close(kept)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError, OSError, AttributeError):
            stream.flush()
    with suppress(OSError, AttributeError, TypeError):  # only where Python shares its C library by name
        ctypes.CDLL(None).fflush(None)
