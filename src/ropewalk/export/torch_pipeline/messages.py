"""Do the sends and receives of a schedule file carry exactly what the passes need, without blocking each other?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ropewalk.errors import Findings, StrategyError
from ropewalk.export.torch_pipeline.cells import Action, Deed, Slot
from ropewalk.export.torch_pipeline.lower import target
from ropewalk.timetable.passes import Entry, Pass
from ropewalk.timetable.table import Timetable

Message = tuple[bool, int, int]
"""Forward?, the stage that takes it in, the micro-batch."""
DIRECTION = {Deed.SEND_F: True, Deed.RECV_F: True, Deed.SEND_B: False, Deed.RECV_B: False}
SENDS = (Deed.SEND_F, Deed.SEND_B)


def check_messages(rows: Sequence[Sequence[Slot | Action]], table: Timetable) -> None:
    """Every hand-over between ranks is sent once behind its pass and received once before it is taken in.

    Messages between two ranks match by their order, so both have to list them in the same one.
    """
    findings = Findings(StrategyError, f"schedule file {table.name}")
    sent: defaultdict[tuple[int, int], list[Message]] = defaultdict(list)
    received: defaultdict[tuple[int, int], list[Message]] = defaultdict(list)
    for rank, row in enumerate(rows):
        made: set[Message] = set()
        heard: set[Message] = set()
        for item in row:
            if not isinstance(item, Action):
                for entry in item:
                    _take_in(entry, rank, table, made, heard, findings)
                made.update(filter(None, (_made(entry, table) for entry in item)))
                continue
            if item.deed not in DIRECTION or item.micro_batch is None:
                continue
            message = _message(item)
            source = message[1] - 1 if message[0] else message[1] + 1
            if not (0 <= source < table.pieces and 0 <= message[1] < table.pieces):
                findings.add(f"rank {rank} has {item.deed} of stage {item.stage}, which has no such neighbour")
                continue
            way = int(table.device_of_piece[source]), int(table.device_of_piece[message[1]])
            if item.deed in SENDS:
                if way[0] != rank or message not in made:
                    findings.add(f"rank {rank} sends a result that it has not computed: {_say(message)}")
                sent[way].append(message)
            else:
                if way[1] != rank:
                    findings.add(f"rank {rank} receives data for another rank: {_say(message)}")
                heard.add(message)
                received[way].append(message)
    for way in sorted(sent.keys() | received.keys()):
        if sent[way] != received[way]:
            findings.add(_first_difference(way, sent[way], received[way]))
    findings.raise_if_any()


def _made(entry: Entry, table: Timetable) -> Message | None:
    taker = target(entry, table)
    return None if taker is None else (entry.kind == Pass.FORWARD, taker, entry.micro_batch)


def _take_in(
    entry: Entry, rank: int, table: Timetable, made: set[Message], heard: set[Message], findings: Findings
) -> None:
    """What a pass takes in was made here or has been received."""
    forward = entry.kind == Pass.FORWARD
    if entry.kind == Pass.WEIGHT or entry.piece == (0 if forward else table.pieces - 1):
        return
    message = (forward, entry.piece, entry.micro_batch)
    if message not in made and message not in heard:
        findings.add(f"rank {rank} uses data that it has not received: {_say(message)}")


def _message(item: Action) -> Message:
    forward = DIRECTION[item.deed]
    assert item.micro_batch is not None
    if item.deed in SENDS:
        return forward, item.stage + 1 if forward else item.stage - 1, item.micro_batch
    return forward, item.stage, item.micro_batch


def _say(message: Message) -> str:
    forward, stage, number = message
    return f"{'activations' if forward else 'gradients'} of micro-batch {number} for stage {stage}"


def _first_difference(way: tuple[int, int], sent: list[Message], received: list[Message]) -> str:
    for number, (one, other) in enumerate(zip(sent, received, strict=False)):
        if one != other:
            return (
                f"message {number} from rank {way[0]} to rank {way[1]} is sent as {_say(one)} and received as "
                f"{_say(other)}: list messages in the same order on both"
            )
    return (
        f"rank {way[0]} sends {len(sent)} messages to rank {way[1]}, which receives {len(received)}: "
        "give every send its receive"
    )
