"""Schedule files of PyTorch back into timetables, strictly."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice

from ropewalk.errors import Findings, ProofError, StrategyError
from ropewalk.export.torch_pipeline.cells import Action, Deed, Slot, parse
from ropewalk.export.torch_pipeline.messages import check_messages
from ropewalk.timetable.passes import Entry
from ropewalk.timetable.table import Timetable, from_rows

MOST_LISTED = 20
"""Stages without a pass that are named."""
Items = list[list[Slot | Action]]


def read_compute_only(content: str, name: str = "schedule") -> Timetable:
    """A timetable from a file of passes; empty cells are time steps in which a rank does nothing.

    >>> print(read_compute_only("0F0,,0B0\\n,1F0,1B0\\n"))
    schedule: 2 devices, 2 pieces, 1 micro-batches
    0  0F0 0B0
    1  1F0 1B0
    """
    rows = _items(content, name, empty_cells=True)
    findings = Findings(StrategyError, f"schedule file {name}")
    for rank, row in enumerate(rows):
        if any(isinstance(item, Action) for item in row):
            findings.add(f"rank {rank} communicates in a file of passes only: read it as compute_comms")
    findings.raise_if_any()
    return _timetable(rows, name)


def read_compute_comms(content: str, name: str = "schedule") -> Timetable:
    """A timetable from a file that spells communication out, after making sure that messages and parameters fit it."""
    rows = _items(content, name, empty_cells=False)
    table = _timetable(rows, name)
    check_messages(rows, table)
    _check_parameters(rows, table)
    return table


def _items(content: str, name: str, *, empty_cells: bool) -> Items:
    findings = Findings(StrategyError, f"schedule file {name}")
    rows: Items = []
    for rank, line in enumerate(content.splitlines()):
        row = []
        for column, written in enumerate(line.split(",")):
            if not written.strip():
                if not empty_cells:
                    findings.add(f"rank {rank}, cell {column} is empty: only files of passes may idle")
                continue
            item = parse(written)
            if item is None:
                findings.add(f"rank {rank}, cell {column} says {written!r}: write stage, action, micro-batch as in 2F0")
            else:
                row.append(item)
        rows.append(row)
    if not rows:
        findings.add("it is empty: give one row for each rank")
    findings.raise_if_any()
    return rows


def _timetable(rows: Items, name: str) -> Timetable:
    """Homes of stages and numbers of stages and micro-batches are those that come up."""
    findings = Findings(StrategyError, f"schedule file {name}")
    passes: list[list[Entry]] = [
        [entry for item in row if not isinstance(item, Action) for entry in item] for row in rows
    ]
    ranks_of: defaultdict[int, set[int]] = defaultdict(set)
    for rank, row in enumerate(passes):
        for entry in row:
            ranks_of[entry.piece].add(rank)
    for stage, ranks in sorted(ranks_of.items()):
        if len(ranks) > 1:
            findings.add(f"stage {stage} is on ranks {sorted(ranks)}: a stage belongs to one rank")
    stages = max(ranks_of, default=-1) + 1
    missing = (stage for stage in range(stages) if stage not in ranks_of)
    for stage in islice(missing, MOST_LISTED):
        findings.add(f"stage {stage} of {stages} has no pass: number stages without gaps")
    if not stages:
        findings.add("no rank has a pass to run")
    findings.raise_if_any()
    batches = 1 + max(entry.micro_batch for row in passes for entry in row)
    table = from_rows(name, passes, [min(ranks_of[stage]) for stage in range(stages)], batches)
    try:
        table.check()
    except ProofError as wrong:
        raise StrategyError(f"schedule file {name}: {wrong}: correct the file") from wrong
    return table


def _check_parameters(rows: Items, table: Timetable) -> None:
    """A stage computes while its parameters are gathered, and reduces gradients once, behind its last backward pass."""
    findings = Findings(StrategyError, f"schedule file {table.name}")
    # Files for models that are not sharded have none of these cells, and need none.
    sharded = any(isinstance(item, Action) and item.deed == Deed.UNSHARD for row in rows for item in row)
    for rank, row in enumerate(rows):
        gathered: set[int] = set()
        reduced: set[int] = set()
        for item in row:
            if not isinstance(item, Action):
                for entry in item:
                    if sharded and entry.piece not in gathered:
                        findings.add(f"rank {rank} computes stage {entry.piece} without its parameters: add UNSHARD")
                    if entry.piece in reduced:
                        findings.add(f"rank {rank} computes stage {entry.piece} after REDUCE_GRAD: move it to the end")
            elif item.deed in (Deed.UNSHARD, Deed.RESHARD, Deed.REDUCE_GRAD):
                if item.stage >= table.pieces or table.device_of_piece[item.stage] != rank:
                    findings.add(f"rank {rank} has {item.deed} of stage {item.stage}, which is not its own")
                if item.deed == Deed.REDUCE_GRAD:
                    if item.stage in reduced:
                        findings.add(f"rank {rank} reduces gradients of stage {item.stage} twice: leave one")
                    reduced.add(item.stage)
                elif (item.deed == Deed.UNSHARD) == (item.stage in gathered):
                    findings.add(f"rank {rank} has {item.deed} of stage {item.stage} where it has no effect")
                else:
                    gathered ^= {item.stage}
    findings.raise_if_any()
