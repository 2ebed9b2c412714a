"""A plan run on buffers of symbols: proves what it computes, whatever program it came from.

Memory channels are written through by the thread block itself. Behind a port channel works an adapter: a put only
orders a copy, which the adapter makes some time later, in the order in which it was asked to copy and to signal.
"""

from __future__ import annotations

from collections.abc import Callable

from ropewalk.errors import ProofError
from ropewalk.export.mscclpp.plan import MEMORY, PORT, ChunkSpan, MscclppPlan, Operation, ThreadBlock
from ropewalk.export.mscclpp.threads import Threads
from ropewalk.export.threadblocks.contract import aliases, require
from ropewalk.export.threadblocks.machine import Agent, Machine, add, load, meet, post, store, take
from ropewalk.export.threadblocks.memory import Buffers, CellMemory

Cells = list[int]


def prove_plan(plan: MscclppPlan, root: int | None = None) -> None:
    """Raise `ProofError` unless every order in which the plan can run ends with what its collective promises."""
    subject = f"plan {plan.name!r}"
    memory = CellMemory()
    buffers = []
    for rank, gpu in enumerate(plan.gpus):
        shift = aliases(plan.collective, rank, gpu.inputs, gpu.outputs) if plan.inplace else None
        buffers.append(memory.buffers(rank, gpu.inputs, gpu.outputs, gpu.scratch, shift))
    machine = Machine(subject, len(plan.gpus), memory)
    ends = _other_ends(plan)
    for rank, gpu in enumerate(plan.gpus):
        for kind, peers in gpu.channels.items():
            for number, peer in enumerate(peers):
                name = f"{kind} channel {number} of rank {rank} to rank {peer}"
                machine.counter(("heard", rank, kind, number), f"the signal of {name}")
                machine.counter(("order", rank, kind, number), f"the orders to the adapter of {name}")
                machine.counter(("done", rank, kind, number), f"the flush of {name}")
        for number, initial in enumerate(gpu.semaphores):
            machine.counter(("semaphore", rank, number), f"semaphore {number} of rank {rank}", initial)
    adapters: dict[tuple[int, int], Agent] = {}
    for rank, gpu in enumerate(plan.gpus):
        for number, block in enumerate(gpu.blocks):
            name = f"rank {rank}, thread block {number}"
            agent = machine.agent(name, rank)
            _Block(plan, rank, block, agent, machine, buffers, ends, adapters).compile()
    machine.run()
    sizes = [(gpu.inputs, gpu.outputs) for gpu in plan.gpus]
    outputs = [[memory.values[cell] for cell in own.cells["o"]] for own in buffers]
    require(plan.collective, len(plan.gpus), sizes, outputs, subject, root)


def _other_ends(plan: MscclppPlan) -> dict[tuple[int, str, int], tuple[int, str, int]]:
    """(rank, type, channel) -> the same of its other end: the k-th to a peer meets the k-th that the peer has here."""
    between: dict[tuple[int, int, str], list[int]] = {}
    for rank, gpu in enumerate(plan.gpus):
        for kind, peers in gpu.channels.items():
            for number, peer in enumerate(peers):
                between.setdefault((rank, peer, kind), []).append(number)
    ends = {}
    for (rank, peer, kind), numbers in between.items():
        for here, there in zip(numbers, between.get((peer, rank, kind), []), strict=False):
            ends[rank, kind, here] = (peer, kind, there)
    return ends


class _Block:
    """One thread block turned into instructions of the machine, and of the adapters it gives orders to."""

    def __init__(
        self,
        plan: MscclppPlan,
        rank: int,
        block: ThreadBlock,
        agent: Agent,
        machine: Machine,
        buffers: list[Buffers],
        ends: dict[tuple[int, str, int], tuple[int, str, int]],
        adapters: dict[tuple[int, int], Agent],
    ) -> None:
        self.plan, self.rank, self.block, self.agent, self.machine = plan, rank, block, agent, machine
        self.buffers, self.ends, self.adapters = buffers, ends, adapters
        self.gpu = plan.gpus[rank]
        self.threads = Threads()
        self.where = ""

    def compile(self) -> None:
        for number, operation in enumerate(self.block.operations):
            self.where = f"operation {number} ({operation.name})"
            OPERATIONS[operation.name](self, operation)

    def wrong(self, fact: str) -> ProofError:
        return self.machine.refuse(f"{self.agent.name}, {self.where} {fact}")

    def channels(self, operation: Operation) -> list[tuple[int, str, int]]:
        kind = operation.channel_type
        if kind is None or not operation.channels:
            raise self.wrong("names no channel")
        return [(self.rank, kind, self.block.channels[kind][local]) for local in operation.channels]

    def cells(self, span: ChunkSpan, kind: str | None) -> Cells:
        where = f"{self.machine.subject}: {self.agent.name}, {self.where}"
        if span.remote is None:
            return self.buffers[self.rank].span(span.buffer or "", span.index, span.size, where)
        remote = self.gpu.remote_buffers[self.block.remote_buffers[kind or ""][span.remote]]
        return self.buffers[remote.rank].span(remote.buffer, span.index, span.size, where)

    def adapter(self, channel: tuple[int, str, int]) -> Agent:
        key = (channel[0], channel[2])
        if key not in self.adapters:
            name = f"the adapter of port channel {channel[2]} of rank {channel[0]}"
            self.adapters[key] = self.machine.agent(name, channel[0], owned=False)
        return self.adapters[key]

    def synchronise(self, _: Operation) -> None:
        self.threads.synchronise()

    def barrier(self, operation: Operation) -> None:
        self.threads.synchronise()
        if operation.barrier is None:
            raise self.wrong("names no barrier")
        self.agent.does(self.where, meet(("of rank", self.rank, operation.barrier), operation.parties))

    def signal(self, operation: Operation, relaxed: bool = False) -> None:
        if not relaxed:
            self._may_announce()
        for channel in self.channels(operation):
            self._raise(channel, relaxed)

    def relaxed_signal(self, operation: Operation) -> None:
        self.signal(operation, relaxed=True)

    def _raise(self, channel: tuple[int, str, int], relaxed: bool = False) -> None:
        if channel not in self.ends:
            raise self.wrong(f"signals over {channel[1]} channel {channel[2]}, which has no other end")
        heard = ("heard", *self.ends[channel])
        if channel[1] == MEMORY:
            self.agent.does(self.where, post(heard, relaxed))
        else:
            self._order(channel)
            self.adapter(channel).does(self.where, post(heard, relaxed))

    def _order(self, channel: tuple[int, str, int]) -> None:
        self.agent.does(self.where, post(("order", *channel)))
        self.adapter(channel).does(self.where, take(("order", *channel)))

    def wait(self, operation: Operation, relaxed: bool = False) -> None:
        self.threads.wait()
        for channel in self.channels(operation):
            self.agent.does(self.where, take(("heard", *channel), relaxed))

    def relaxed_wait(self, operation: Operation) -> None:
        self.wait(operation, relaxed=True)

    def acquire(self, operation: Operation) -> None:
        self.threads.wait()
        for semaphore in operation.semaphores:
            self.agent.does(self.where, take(("semaphore", self.rank, semaphore)))

    def release(self, operation: Operation) -> None:
        self._may_announce()
        for semaphore in operation.semaphores:
            self.agent.does(self.where, post(("semaphore", self.rank, semaphore)))

    def flush(self, operation: Operation) -> None:
        for channel in self.channels(operation):
            self._flush(channel)

    def _flush(self, channel: tuple[int, str, int]) -> None:
        self._order(channel)
        self.adapter(channel).does(self.where, post(("done", *channel)))
        self.agent.does(self.where, take(("done", *channel)))
        self.threads.wait()

    def put(self, operation: Operation, signals: bool = False, flushes: bool = False) -> None:
        pairs = self._pairs(operation)
        if operation.channel_type == MEMORY:
            if signals:
                raise self.wrong("signals by itself, which only port channels do: add a signal")
            if len({span.buffer for span in operation.src}) > 1:
                raise self.wrong("reads from several local buffers at once, but a put has one: split it")
            self._touch([cell for source, _ in pairs for cell in source], [])
            for source, target in pairs:
                self.agent.does(self.where, load(source), store(target))
            return
        channels = self.channels(operation)
        if len(channels) != len(pairs):
            raise self.wrong(f"has {len(pairs)} copies for {len(channels)} channels: give each copy its channel")
        self._touch([cell for source, _ in pairs for cell in source], [])
        for channel, (source, target) in zip(channels, pairs, strict=True):
            self._order(channel)
            self.adapter(channel).does(self.where, load(source), store(target))
            if signals:
                self._raise(channel)
            if flushes:
                self._flush(channel)

    def put_and_signal(self, operation: Operation) -> None:
        self.put(operation, signals=True)

    def put_signal_flush(self, operation: Operation) -> None:
        self.put(operation, signals=True, flushes=True)

    def get(self, operation: Operation) -> None:
        if operation.channel_type == PORT:
            raise self.wrong("reads through a port channel, which can only be written through: put from the other side")
        pairs = self._pairs(operation)
        self._touch([], [cell for _, target in pairs for cell in target])
        for source, target in pairs:
            self.agent.does(self.where, load(source), store(target))

    def copy(self, operation: Operation) -> None:
        pairs = self._pairs(operation)
        reads = [cell for source, _ in pairs for cell in source]
        self._touch(reads, [cell for _, target in pairs for cell in target])
        for source, target in pairs:
            self.agent.does(self.where, load(source), store(target))

    def reduce(self, operation: Operation) -> None:
        """Add up all sources, store the sum in all targets; those that are remote are reached through memory."""
        if operation.channel_type == PORT:
            raise self.wrong("reaches remote memory through a port channel: use a memory channel")
        sources = [self.cells(span, operation.channel_type) for span in operation.src]
        targets = [self.cells(span, operation.channel_type) for span in operation.dst]
        if not sources or not targets or len({len(cells) for cells in (*sources, *targets)}) != 1:
            raise self.wrong("adds spans of different sizes")
        own = self.buffers[self.rank].rank
        local = [[c for c in cells if self.machine.memory.rank[c] == own] for cells in (*sources, *targets)]
        reads = [cell for cells in local[: len(sources)] for cell in cells]
        self._touch(reads, [cell for cells in local[len(sources) :] for cell in cells])
        self.agent.does(self.where, load(sources[0]), *(add(cells) for cells in sources[1:]), *map(store, targets))

    def _pairs(self, operation: Operation) -> list[tuple[Cells, Cells]]:
        kind = operation.channel_type
        sources = [self.cells(span, kind) for span in operation.src]
        targets = [self.cells(span, kind) for span in operation.dst]
        if not sources or [len(cells) for cells in sources] != [len(cells) for cells in targets]:
            raise self.wrong("copies between spans of different sizes")
        return list(zip(sources, targets, strict=True))

    def _touch(self, reads: Cells, writes: Cells) -> None:
        problem = self.threads.copy(reads, writes)
        if problem is not None:
            raise self.wrong(f"{problem}: put a nop before it")

    def _may_announce(self) -> None:
        problem = self.threads.announce()
        if problem is not None:
            raise self.wrong(f"{problem}: put a nop before it")


OPERATIONS: dict[str, Callable[[_Block, Operation], None]] = {
    "nop": _Block.synchronise,
    "barrier": _Block.barrier,
    "signal": _Block.signal,
    "rlxsignal": _Block.relaxed_signal,
    "wait": _Block.wait,
    "rlxwait": _Block.relaxed_wait,
    "flush": _Block.flush,
    "put": _Block.put,
    "pws": _Block.put_and_signal,
    "pwsf": _Block.put_signal_flush,
    "get": _Block.get,
    "copy": _Block.copy,
    "re": _Block.reduce,
    "res": _Block.reduce,
    "rre": _Block.reduce,
    "rres": _Block.reduce,
    "sem_acquire": _Block.acquire,
    "sem_release": _Block.release,
}
