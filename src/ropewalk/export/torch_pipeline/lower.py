"""A timetable as a schedule file with everything that ranks do: passes, sends, receives, parameters, gradients."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.export.torch_pipeline.cells import Action, Deed, Slot, cell, slots
from ropewalk.export.torch_pipeline.write import check_expressible
from ropewalk.timetable.passes import Entry, Pass
from ropewalk.timetable.table import Timetable

WINDOW = 3
"""So many stages of a rank have their parameters gathered at a time: those that it works on next."""

Item = Slot | Action


def compute_comms(table: Timetable) -> str:
    """The file for `_load_csv(path, format="compute_comms")`, which PyTorch takes word for word.

    It says what PyTorch makes of the same passes when it is left to add communication, lines ended as it ends them.
    """
    check_expressible(table)
    rows = [_with_reductions(_with_parameters(list(slots(table, rank))), table) for rank in range(table.devices)]
    return "".join(",".join(cell(item) for item in row) + "\r\n" for row in _with_messages(rows, table))


def _with_parameters(row: Sequence[Slot]) -> list[Item]:
    """Gather parameters of the stages that come next, let go of those that do not."""
    windows: list[list[int]] = []
    coming: list[int] = []  # stages of the rest of the row in the order in which they come up
    for slot in reversed(row):
        for entry in reversed(slot):
            coming = [entry.piece, *(stage for stage in coming if stage != entry.piece)]
        windows.append(coming[:WINDOW])
    gathered: set[int] = set()
    items: list[Item] = []
    for slot, window in zip(row, reversed(windows), strict=True):
        items += [Action(Deed.RESHARD, stage) for stage in sorted(gathered.difference(window))]
        items += [Action(Deed.UNSHARD, stage) for stage in window if stage not in gathered]
        gathered = set(window)
        items.append(slot)
    return items + [Action(Deed.RESHARD, stage) for stage in sorted(gathered)]


def _with_reductions(row: Sequence[Item], table: Timetable) -> list[Item]:
    """Reduce the gradients of a stage over its replicas right behind the last pass that adds to them."""
    left = {int(piece): table.micro_batches for piece in set(table.piece.tolist())}
    items: list[Item] = []
    for item in row:
        items.append(item)
        if isinstance(item, Action):
            continue
        for entry in item:
            if entry.kind in (Pass.BACKWARD, Pass.WEIGHT):
                left[entry.piece] -= 1
                if not left[entry.piece]:
                    items.append(Action(Deed.REDUCE_GRAD, entry.piece))
    return items


def _with_messages(rows: Sequence[Sequence[Item]], table: Timetable) -> list[list[Item]]:
    """Send right behind the pass; the receiver starts to listen at that very point of its own row.

    Ranks take turns, one item each, so that all of them list messages between two ranks in the same order.
    """
    out: list[list[Item]] = [[] for _ in rows]
    at = [0] * len(rows)
    there: set[tuple[bool, int, int]] = set()  # forward?, stage that takes it in, micro-batch
    while any(at[rank] < len(row) for rank, row in enumerate(rows)):
        for rank, row in enumerate(rows):
            if at[rank] == len(row):
                continue
            item = row[at[rank]]
            entries = () if isinstance(item, Action) else item
            if not all(_has_input(entry, table, there) for entry in entries):
                continue
            at[rank] += 1
            out[rank].append(item)
            for entry in entries:
                taker = target(entry, table)
                if taker is None:
                    continue
                forward = entry.kind == Pass.FORWARD
                there.add((forward, taker, entry.micro_batch))
                peer = int(table.device_of_piece[taker])
                if peer != rank:
                    send, receive = (Deed.SEND_F, Deed.RECV_F) if forward else (Deed.SEND_B, Deed.RECV_B)
                    out[rank].append(Action(send, entry.piece, entry.micro_batch))
                    out[peer].append(Action(receive, taker, entry.micro_batch))
    return out


def target(entry: Entry, table: Timetable) -> int | None:
    """The stage that takes in the output of a pass."""
    if entry.kind == Pass.FORWARD:
        return entry.piece + 1 if entry.piece + 1 < table.pieces else None
    if entry.kind == Pass.WEIGHT or entry.piece == 0:
        return None
    return entry.piece - 1


def _has_input(entry: Entry, table: Timetable, there: set[tuple[bool, int, int]]) -> bool:
    forward = entry.kind == Pass.FORWARD
    starts = entry.kind == Pass.WEIGHT or entry.piece == (0 if forward else table.pieces - 1)
    return starts or (forward, entry.piece, entry.micro_batch) in there
