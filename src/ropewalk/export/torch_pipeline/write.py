"""A timetable as a schedule file of passes alone."""

from __future__ import annotations

from ropewalk.errors import StrategyError
from ropewalk.export.torch_pipeline.cells import cell, slots
from ropewalk.timetable.passes import Pass
from ropewalk.timetable.table import Timetable


def compute_only(table: Timetable) -> str:
    """The file for `_load_csv(path, format="compute_only")`: PyTorch adds communication itself.

    >>> from ropewalk.timetable import early_backward
    >>> print(compute_only(early_backward(2, 2)), end="")
    0F0,0F1,0B0,0B1
    1F0,1B0,1F1,1B1
    """
    check_expressible(table)
    return "".join(",".join(cell(slot) for slot in slots(table, rank)) + "\n" for rank in range(table.devices))


def check_expressible(table: Timetable) -> None:
    """Is it a timetable at all, and one that a rank of PyTorch can follow?"""
    table.check()
    if table.copies > 1:
        raise StrategyError(
            f"timetable {table.name} keeps {table.copies} copies of the model, but PyTorch's schedules support "
            "one: use dualpipev, which runs the same order in a V"
        )
    beside = table.kind[1:][table.paired[:-1]], table.kind[:-1][table.paired[:-1]]
    if any((kinds == Pass.INPUT).any() or (kinds == Pass.WEIGHT).any() for kinds in beside):
        raise StrategyError(
            f"timetable {table.name} overlaps a part of a backward pass with a forward pass: "
            "PyTorch pairs whole backward passes only"
        )
