"""An algorithm run on buffers of symbols: proves what it computes, whatever program it came from."""

from __future__ import annotations

from collections.abc import Callable

from ropewalk.errors import ProofError
from ropewalk.export.msccl_xml.algo import NOBODY, RECEIVING, SENDING, Algo, XmlGpu, XmlStep
from ropewalk.export.threadblocks.contract import aliases, require
from ropewalk.export.threadblocks.machine import Act, Agent, Machine, add, load, pop, post, push, store, take
from ropewalk.export.threadblocks.memory import CellMemory

Cells = list[int]
Doing = Callable[[Cells, Cells, Act, Act], list[Act]]
"""(source cells, target cells, how to receive, how to send) -> what a step does."""


def _copied(src: Cells, dst: Cells) -> list[Act]:
    # In place, a chunk may be copied onto itself, which changes nothing for whoever reads it meanwhile.
    pairs = [(one, other) for one, other in zip(src, dst, strict=True) if one != other]
    return [load([one for one, _ in pairs]), store([other for _, other in pairs])]


DOINGS: dict[str, Doing] = {
    "s": lambda src, _dst, _receive, send: [load(src), send],
    "r": lambda _src, dst, receive, _send: [receive, store(dst)],
    "rcs": lambda _src, dst, receive, send: [receive, store(dst), send],
    "rrs": lambda src, _dst, receive, send: [receive, add(src), send],
    "rrc": lambda src, dst, receive, _send: [receive, add(src), store(dst)],
    "rrcs": lambda src, dst, receive, send: [receive, add(src), store(dst), send],
    "cpy": lambda src, dst, _receive, _send: _copied(src, dst),
    "re": lambda src, dst, _receive, _send: [load(dst), add(src), store(dst)],
    "nop": lambda _src, _dst, _receive, _send: [],
}
READS_SOURCE = ("s", "rrs", "rrc", "rrcs", "cpy", "re")
USES_TARGET = ("r", "rcs", "rrc", "rrcs", "cpy", "re")


def prove_algo(algo: Algo, slots: int = 1, root: int | None = None) -> None:
    """Raise `ProofError` unless the algorithm keeps its collective's promise in and out of place, as it declares.

    `slots` is how many sends may be under way between two thread blocks before a sender waits; with 0 it always waits
    for its receiver. What cannot deadlock with few slots cannot with more.
    """
    if not (algo.inplace or algo.outofplace):
        raise ProofError(f"algorithm {algo.name!r} serves neither in place nor out of place")
    for inplace, declared in ((True, algo.inplace), (False, algo.outofplace)):
        if declared:
            _prove(algo, inplace, slots, root)


def _prove(algo: Algo, inplace: bool, slots: int, root: int | None) -> None:
    subject = f"algorithm {algo.name!r}, {'in' if inplace else 'out of'} place"
    memory = CellMemory()
    machine = Machine(subject, len(algo.gpus), memory)
    buffers = []
    for rank, gpu in enumerate(algo.gpus):
        shift = aliases(algo.collective, rank, gpu.inputs, gpu.outputs) if inplace else None
        buffers.append(memory.buffers(rank, gpu.inputs, gpu.outputs, gpu.scratch, shift))
    for rank, gpu in enumerate(algo.gpus):
        heard = _announcements(machine, rank, gpu)
        for number, block in enumerate(gpu.blocks):
            agent = machine.agent(f"rank {rank}, thread block {number}", rank)
            outgoing, incoming = (rank, block.send, block.channel), (block.recv, rank, block.channel)
            for link in (outgoing, incoming):
                if NOBODY not in link and link not in machine.queues:
                    name = f"channel {link[2]} from rank {link[0]} to rank {link[1]}"
                    machine.queue(link, name, slots)
            for place, step in enumerate(block.steps):
                where = f"step {place} ({step.kind})"
                if step.waits is not None:
                    agent.does(where, take(("step", rank, number, place)))
                full = f"{subject}: {agent.name}, {where}"
                src = buffers[rank].span(*step.src, step.count, full) if step.kind in READS_SOURCE else []
                dst = buffers[rank].span(*step.dst, step.count, full) if step.kind in USES_TARGET else []
                agent.does(where, *DOINGS[step.kind](src, dst, pop(incoming, step.count), push(outgoing)))
                _announce(agent, where, heard.get((number, place), []))
    _require_both_ends(machine, algo)
    machine.run()
    sizes = [(gpu.inputs, gpu.outputs) for gpu in algo.gpus]
    outputs = [[memory.values[cell] for cell in own.cells["o"]] for own in buffers]
    require(algo.collective, len(algo.gpus), sizes, outputs, subject, root)


def _announcements(machine: Machine, rank: int, gpu: XmlGpu) -> dict[tuple[int, int], list[object]]:
    """What each step has to announce: a thread block shows how far it is only after steps that say so (hasdep)."""
    heard: dict[tuple[int, int], list[object]] = {}
    for number, block in enumerate(gpu.blocks):
        for place, step in enumerate(block.steps):
            if step.waits is None:
                continue
            other, awaited = step.waits
            shown = _next_shown(gpu.blocks[other].steps, awaited)
            if shown is None:
                raise machine.refuse(
                    f"rank {rank}, thread block {number}, step {place} waits for step {awaited} of thread block "
                    f"{other}, which signals nothing from there on (hasdep is 0)"
                )
            key = ("step", rank, number, place)
            machine.counter(key, f"the wait of step {place} of thread block {number} of rank {rank}")
            heard.setdefault((other, shown), []).append(key)
    return heard


def _next_shown(steps: tuple[XmlStep, ...], first: int) -> int | None:
    # A nop is folded into the step that follows it, so it cannot announce anything by itself.
    return next((n for n in range(first, len(steps)) if steps[n].heard and steps[n].kind != "nop"), None)


def _announce(agent: Agent, where: str, keys: list[object]) -> None:
    agent.does(where, *(post(key) for key in keys))


def _require_both_ends(machine: Machine, algo: Algo) -> None:
    """A channel that is only sent to, or only received from, stalls when it is set up."""
    ends: dict[tuple[int, int, int], set[str]] = {}
    for rank, gpu in enumerate(algo.gpus):
        for block in gpu.blocks:
            if any(step.kind in SENDING for step in block.steps):
                ends.setdefault((rank, block.send, block.channel), set()).add("sends")
            if any(step.kind in RECEIVING for step in block.steps):
                ends.setdefault((block.recv, rank, block.channel), set()).add("receives")
    for (src, dst, channel), have in sorted(ends.items()):
        if len(have) != 2:
            raise machine.refuse(f"channel {channel} from rank {src} to rank {dst} {next(iter(have))} at one end only")
