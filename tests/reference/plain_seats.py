"""The step of a seating, written server by server in plain Python: what the lowering of seats is compared with.

The rules:

- A server computes its layers one after the other in the order of the workload, micro-batch by micro-batch, and all of
  them backwards after that, as kernels on one stream do. It waits for what a layer reads, not for anybody else.
- What moves between two seats is the overlap of samples (`strategy.between`): activations forward, their gradients back
  along the same pairs. A sender sends when its own part is computed.
- Samples travel to experts and back as an all-to-all over the seat, between the stretches of the layer; results of a
  layer that Megatron splits are summed over it, gradients of its inputs on the way back.
- Gradients are summed over the servers of a layer's seat as soon as all of them have done its backward pass of the last
  micro-batch, while the rest of the backward pass goes on. Sums of one group run in order. `bucket_bytes` joins
  neighbouring sums of a group until they are this large.
- A server updates its weights at the end, when all its sums are done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ropewalk.strategy.between import gradients_between, parts_between
from ropewalk.strategy.seating import Seat, Seating
from ropewalk.task.lower.moves import Move
from ropewalk.task.lower.seat_pricer import SeatPricer
from ropewalk.task.step import Act, Step, StepSketch

STREAMS = ("compute", "activations", "gradients", "expert", "data", "tensor")
ACTIVATIONS, GRADIENTS, EXPERTS, SUMS, TENSOR = range(1, 6)


def plain_step(pricer: SeatPricer, seating: Seating, bucket_bytes: float = 0.0) -> Step:
    """One step of a seating."""
    lowering = _Lowering(pricer, seating, bucket_bytes)
    for micro_batch in range(pricer.micro_batches):
        for layer in range(len(seating.seats)):
            lowering.forward(layer, micro_batch)
    for micro_batch in range(pricer.micro_batches):
        for layer in reversed(range(len(seating.seats))):
            lowering.backward(layer, micro_batch)
    lowering.update()
    return lowering.sketch.step()


def bucketed(sums: Sequence[tuple[int, Seat, float]], bucket_bytes: float) -> Iterator[tuple[int, Seat, float]]:
    """Sums in the order in which they become ready, joined within a group: (layer that completes it, seat, bytes)."""
    left: dict[tuple[int, ...], int] = {}
    for _, seat, _ in sums:
        left[seat.servers] = left.get(seat.servers, 0) + 1
    full: dict[tuple[int, ...], float] = {}
    for layer, seat, size in sums:
        group = seat.servers
        left[group] -= 1
        full[group] = full.get(group, 0.0) + size
        if full[group] >= bucket_bytes or not left[group]:
            yield layer, seat, full.pop(group)


@dataclass
class _Lowering:
    pricer: SeatPricer
    seating: Seating
    bucket_bytes: float
    sketch: StepSketch = field(init=False)

    def __post_init__(self) -> None:
        layers, servers = self.pricer.workload.layers, self.seating.servers
        self.sketch = StepSketch(servers, STREAMS)
        self.names = [layer.name for layer in layers]
        self.last: list[list[int]] = [[] for _ in range(servers)]
        """The last computation of every server."""
        self.arrived: dict[tuple[str, int, int], dict[int, list[int]]] = {}
        """By pass, layer and micro-batch: what each server has to wait for before it starts."""
        self.readers: list[list[int]] = [[] for _ in layers]
        for reader, layer in enumerate(layers):
            for source in dict.fromkeys(layer.inputs):
                self.readers[source].append(reader)
        works = [self.pricer.work(at, seat) for at, seat in enumerate(self.seating.seats)]
        self.works = works
        ready = [
            (at, self.seating.seats[at], works[at].sum_bytes)
            for at in reversed(range(len(layers)))
            if works[at].sum_bytes
        ]
        self.sum_after = {layer: (seat, size) for layer, seat, size in bucketed(ready, self.bucket_bytes)}
        self.last_sum: dict[tuple[int, ...], int] = {}
        self.owed: dict[tuple[int, ...], list[int]] = {}
        """By group: backward passes whose sums have not begun."""

    def forward(self, layer: int, micro_batch: int) -> None:
        done = self._computed("forward", layer, micro_batch, self.works[layer].forward)
        for reader in self.readers[layer]:
            self._send("forward", layer, reader, micro_batch, done)

    def backward(self, layer: int, micro_batch: int) -> None:
        done = self._computed("backward", layer, micro_batch, self.works[layer].backward)
        for source in dict.fromkeys(self.pricer.workload.layers[layer].inputs):
            self._send("backward", layer, source, micro_batch, done)
        if micro_batch == self.pricer.micro_batches - 1:
            self._sum(layer, done)

    def _computed(self, way: str, layer: int, micro_batch: int, moves: Sequence[Move]) -> dict[int, int]:
        """Run a layer on all its servers: the operation with which each of them is done."""
        servers = self.seating.seats[layer].servers
        arrived = self.arrived.pop((way, layer, micro_batch), {})
        done = {server: [*self.last[server], *arrived.get(server, [])] for server in servers}
        for move in moves:
            if move.act is Act.COMPUTE:
                done = {
                    server: [self.sketch.compute(server, move.amount, after=done[server], label=move.label)]
                    for server in servers
                }
                continue
            stream = TENSOR if move.act is Act.ALL_REDUCE else EXPERTS
            after = [at for server in servers for at in done[server]]
            met = self.sketch.collective(move.act, servers, move.amount, after=after, stream=stream, label=move.label)
            done = {server: [met] for server in servers}
        for server in servers:
            self.last[server] = done[server]
        return {server: done[server][0] for server in servers}

    def _send(self, way: str, source: int, reader: int, micro_batch: int, done: dict[int, int]) -> None:
        """Hand what a layer has computed to another one: its output, or the gradient of what it had read."""
        seats = self.seating.seats
        if way == "forward":
            parts, tensor, stream = parts_between(seats[source], seats[reader]), source, ACTIVATIONS
        else:
            parts, tensor, stream = gradients_between(seats[source], seats[reader]), reader, GRADIENTS
        sizes = parts.bytes_of(self.pricer.output_bytes(tensor) / self.pricer.micro_batches)
        waiting = self.arrived.setdefault((way, reader, micro_batch), {})
        label = f"{self.names[source]} to {self.names[reader]}"
        for a, b, size in zip(parts.src.tolist(), parts.dst.tolist(), sizes.tolist(), strict=True):
            sent = self.sketch.send(a, b, size, after=[done[a]], stream=stream, label=label)
            waiting.setdefault(b, []).append(sent)

    def _sum(self, layer: int, done: dict[int, int]) -> None:
        if not self.works[layer].sum_bytes:
            return
        group = self.seating.seats[layer].servers
        self.owed.setdefault(group, []).extend(done.values())
        if layer not in self.sum_after:
            return
        _, size = self.sum_after[layer]
        before = [self.last_sum[group]] if group in self.last_sum else []
        self.last_sum[group] = self.sketch.collective(
            Act.ALL_REDUCE, group, size, after=[*self.owed.pop(group), *before], stream=SUMS,
            label=f"{self.names[layer]} sum",
        )  # fmt: skip

    def update(self) -> None:
        """Every server waits for the last sum of each of its groups: sums of a group run in order."""
        seconds = [0.0] * self.seating.servers
        for work, seat in zip(self.works, self.seating.seats, strict=True):
            for server in seat.servers:
                seconds[server] += work.update_s
        for server, spent in enumerate(seconds):
            sums = [summed for group, summed in self.last_sum.items() if server in group]
            if self.last[server] or sums:
                self.sketch.compute(server, spent, after=[*self.last[server], *sums], label="update")
