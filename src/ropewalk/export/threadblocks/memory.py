"""The memory of all ranks as cells, each of which remembers who touched it last, so that races are seen.

A cell is a chunk of the input, output or scratch buffer of a rank. In place, chunks of input and output are the same
cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ProofError
from ropewalk.export.threadblocks.values import RUBBISH, Value, symbol

if TYPE_CHECKING:
    from ropewalk.export.threadblocks.machine import Agent, Machine

MOST_CHUNKS = 1 << 20
"""Of one buffer: a file that speaks of more is damaged, and its memory would not fit."""


@dataclass
class Buffers:
    """The buffers of one rank: the cell of each chunk."""

    rank: int
    cells: dict[str, list[int]]

    def span(self, buffer: str, index: int, count: int, where: str) -> list[int]:
        """The cells of neighbouring chunks; refuses those that the buffer does not have."""
        have = self.cells[buffer]
        if index < 0 or count < 0 or index + count > len(have):
            raise ProofError(
                f"{where} uses chunks {index}…{index + count - 1} of buffer {buffer!r} of rank {self.rank}, "
                f"which has {len(have)}"
            )
        return have[index : index + count]


@dataclass
class CellMemory:
    """Cells with their values and last touches; a touch is (agent, its time)."""

    values: list[Value] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    name: list[str] = field(default_factory=list)
    written: list[tuple[int, int]] = field(default_factory=list)
    read_by: list[dict[int, int]] = field(default_factory=list)

    def buffers(self, rank: int, inputs: int, outputs: int, scratch: int, shift: int | None) -> Buffers:
        """The buffers of a rank; with a shift, its input begins `shift` chunks behind its output, or before it."""
        cells: dict[str, list[int]] = {"i": [], "o": [], "s": [self._new(rank, f"s[{k}]") for k in range(scratch)]}
        if shift is None:
            cells["o"] = [self._new(rank, f"o[{k}]") for k in range(outputs)]
            cells["i"] = [self._new(rank, f"i[{k}]") for k in range(inputs)]
        else:
            low, high = min(0, shift), max(outputs, shift + inputs)
            shared = [self._new(rank, f"o[{k}]") for k in range(low, high)]
            cells["o"] = shared[-low : outputs - low]
            cells["i"] = shared[shift - low : shift - low + inputs]
        for position, cell in enumerate(cells["i"]):
            self.values[cell] = symbol(rank, position)
        return Buffers(rank, cells)

    def _new(self, rank: int, name: str) -> int:
        self.values.append(RUBBISH)
        self.rank.append(rank)
        self.name.append(name)
        # The host that launches the rank touches its memory first, at its time 1.
        self.written.append((rank, 1))
        self.read_by.append({})
        return len(self.values) - 1

    def read(self, cell: int, agent: Agent, machine: Machine) -> Value:
        writer, time = self.written[cell]
        if agent.clock[writer] < time:
            raise self._race(cell, f"{agent.where} reads", "writes", writer, machine)
        self.read_by[cell][agent.number] = int(agent.clock[agent.number])
        return self.values[cell]

    def write(self, cell: int, value: Value, agent: Agent, machine: Machine) -> None:
        writer, time = self.written[cell]
        if agent.clock[writer] < time:
            raise self._race(cell, f"{agent.where} writes", "writes", writer, machine)
        for reader, when in self.read_by[cell].items():
            if agent.clock[reader] < when:
                raise self._race(cell, f"{agent.where} writes", "reads", reader, machine)
        self.read_by[cell].clear()
        self.written[cell] = (agent.number, int(agent.clock[agent.number]))
        self.values[cell] = value

    def refuse_unfinished(self, known: list[NDArray[np.int32]], machine: Machine) -> None:
        """Everything that touched the memory of a rank must be over, to the rank's knowledge, when it ends."""
        for cell, rank in enumerate(self.rank):
            for agent, time in (self.written[cell], *self.read_by[cell].items()):
                if known[rank][agent] < time:
                    raise machine.refuse(
                        f"rank {rank} may end while {machine.name_of(agent)} still uses its {self.name[cell]}"
                    )

    def _race(self, cell: int, this: str, other: str, agent: int, machine: Machine) -> ProofError:
        place = f"{self.name[cell]} of rank {self.rank[cell]}"
        return machine.refuse(f"race: {this} {place} while {machine.name_of(agent)} {other} it: nothing orders them")
