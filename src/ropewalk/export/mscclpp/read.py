"""Plans from JSON files, ours or others', as far as they keep to what can be proved: signals, copies, reductions.

Packets (LL), multicast switches, pipelines and operations shared by groups of thread blocks are refused by name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ropewalk.documents import decode, parse_json, read_bytes
from ropewalk.errors import ProgramError
from ropewalk.export.mscclpp.plan import (
    ALIGNMENT,
    CHANNEL_TYPES,
    MOST_OPERATIONS,
    MOST_SIZE,
    ChunkSpan,
    Gpu,
    MscclppPlan,
    Operation,
    RemoteBuffer,
    ThreadBlock,
)
from ropewalk.export.threadblocks.memory import MOST_CHUNKS

COPYING = ("put", "pws", "pwsf", "get", "copy", "re", "res", "rre", "rres")
MEETING = ("nop", "barrier", "signal", "wait", "rlxsignal", "rlxwait", "flush", "sem_acquire", "sem_release")
KNOWN = (*COPYING, *MEETING)
BUFFERS = ("i", "o", "s")


def read_mscclpp(path: str | Path) -> MscclppPlan:
    """Read a plan file; raises `ProgramError` for what is malformed or beyond what can be proved."""
    subject = f"MSCCL++ plan {path}"
    content = read_bytes(Path(path), subject, ProgramError)
    return parse_plan(decode(content, subject, ProgramError), subject)


def parse_plan(text: str, subject: str) -> MscclppPlan:
    """A plan from the text of its file."""
    top = _Node(parse_json(text, subject, ProgramError), subject, "the file")
    protocol = top.text("protocol")
    if protocol != "Simple":
        raise top.wrong(f"protocol {protocol!r} is not read: give a plan for Simple")
    gpus = tuple(_gpu(node, rank) for rank, node in enumerate(top.nodes("gpus")))
    if not gpus:
        raise top.wrong("it has no gpus: give one for each rank")
    plan = MscclppPlan(
        top.text("name"),
        top.text("collective"),
        top.flag("inplace"),
        gpus,
        protocol,
        top.number("num_threads_per_block", 1024),
        top.number("buffer_alignment", ALIGNMENT),
        top.number("min_message_size", 0),
        top.number("max_message_size", MOST_SIZE),
        top.flag("reuse_resources", False),
        top.flag("use_double_scratch_buffer", False),
    )
    for rank, gpu in enumerate(gpus):
        _check_references(plan, rank, gpu, top)
    return plan


class _Node:
    """A JSON object with a name, read strictly."""

    def __init__(self, value: object, subject: str, name: str) -> None:
        self.subject, self.name = subject, name
        if not isinstance(value, dict):
            raise self.wrong("is not an object: write one in braces")
        self.value: dict[str, Any] = value

    def wrong(self, fact: str) -> ProgramError:
        return ProgramError(f"{self.subject}: {self.name}: {fact}")

    def get(self, key: str, default: object = None) -> object:
        if key not in self.value and default is None:
            raise self.wrong(f"has no {key!r}: add it")
        return self.value.get(key, default)

    def text(self, key: str) -> str:
        value = self.get(key)
        if not isinstance(value, str):
            raise self.wrong(f"{key!r} is {value!r}: give a text")
        return value

    def number(self, key: str, default: int | None = None) -> int:
        value = self.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.wrong(f"{key!r} is {value!r}: give a whole number of 0 or more")
        return value

    def size(self, key: str) -> int:
        """A number of which as many things are made for the proof."""
        value = self.number(key)
        if value > MOST_CHUNKS:
            raise self.wrong(f"{key!r} is {value}: give {MOST_CHUNKS} or fewer")
        return value

    def flag(self, key: str, default: bool | None = None) -> bool:
        value = self.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(f"{key!r} is {value!r}: give true or false")
        return value

    def items(self, key: str) -> list[object]:
        value = self.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(f"{key!r} is {value!r}: give a list")
        return value

    def nodes(self, key: str) -> list[_Node]:
        return [_Node(item, self.subject, f"{self.name}, {key} {n}") for n, item in enumerate(self.items(key))]

    def numbers(self, key: str) -> tuple[int, ...]:
        values = self.items(key)
        for value in values:
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise self.wrong(f"{key!r} holds {value!r}: give whole numbers of 0 or more")
        return tuple(value for value in values if isinstance(value, int))

    def choice(self, key: str, options: tuple[str, ...]) -> str:
        value = self.text(key)
        if value not in options:
            raise self.wrong(f"{key} {value!r} is not one of {', '.join(options)}, which are read")
        return value


def _gpu(node: _Node, rank: int) -> Gpu:
    if node.number("id") != rank:
        raise node.wrong(f"id {node.number('id')} is at position {rank}: list gpus in the order of their ids")
    channels: dict[str, tuple[int, ...]] = {}
    for entry in node.nodes("channels"):
        kind = entry.choice("channel_type", CHANNEL_TYPES)
        channels[kind] = channels.get(kind, ()) + entry.numbers("connected_to")
    remote = tuple(
        RemoteBuffer(entry.number("rank"), entry.choice("type", BUFFERS), _types(entry))
        for entry in node.nodes("remote_buffers")
    )
    blocks = tuple(_block(entry, number) for number, entry in enumerate(node.nodes("threadblocks")))
    semaphores = tuple(entry.size("init_value") for entry in node.nodes("semaphores"))
    sizes = (node.size("input_chunks"), node.size("output_chunks"), node.size("scratch_chunks"))
    return Gpu(*sizes, blocks, channels, remote, semaphores)


def _types(entry: _Node) -> tuple[str, ...]:
    kinds = entry.items("access_channel_types")
    if not all(kind in CHANNEL_TYPES for kind in kinds):
        raise entry.wrong(f"access_channel_types {kinds} are not among {', '.join(CHANNEL_TYPES)}, which are read")
    return tuple(str(kind) for kind in kinds)


def _block(node: _Node, number: int) -> ThreadBlock:
    if node.number("id") != number:
        raise node.wrong(f"id {node.number('id')} is at position {number}: list thread blocks in the order of ids")
    operations = tuple(_operation(entry) for entry in node.nodes("ops"))
    if len(operations) > MOST_OPERATIONS:
        raise node.wrong(f"has {len(operations)} operations, the executor room for {MOST_OPERATIONS}: use more blocks")
    channels: dict[str, tuple[int, ...]] = {}
    for entry in node.nodes("channels"):
        kind = entry.choice("channel_type", CHANNEL_TYPES)
        channels[kind] = channels.get(kind, ()) + entry.numbers("channel_ids")
    remote: dict[str, tuple[int, ...]] = {}
    for entry in node.nodes("remote_buffer_refs"):
        kind = entry.choice("access_channel_type", CHANNEL_TYPES)
        remote[kind] = remote.get(kind, ()) + entry.numbers("remote_buffer_ids")
    return ThreadBlock(operations, channels, remote)


def _operation(node: _Node) -> Operation:
    name = node.choice("name", KNOWN)
    if "tbg_info" in node.value:
        raise node.wrong(
            "is shared by a group of thread blocks (tbg_info), which is not read: give each its own chunks"
        )
    return Operation(
        name,
        tuple(_span(entry) for entry in node.nodes("src_buff")),
        tuple(_span(entry) for entry in node.nodes("dst_buff")),
        node.choice("channel_type", CHANNEL_TYPES) if "channel_type" in node.value else None,
        node.numbers("channel_ids"),
        node.numbers("semaphore_ids"),
        node.number("barrier_id") if "barrier_id" in node.value else None,
        node.number("num_threadblocks", 0),
    )


def _span(node: _Node) -> ChunkSpan:
    index, size = node.number("index"), node.number("size")
    if "buffer_id" in node.value:
        return ChunkSpan(index, size, remote=node.number("buffer_id"))
    return ChunkSpan(index, size, node.choice("type", BUFFERS))


def _check_references(plan: MscclppPlan, rank: int, gpu: Gpu, top: _Node) -> None:
    """Everything that is named by a number exists."""
    ranks = len(plan.gpus)
    for peer in [peer for peers in gpu.channels.values() for peer in peers] + [b.rank for b in gpu.remote_buffers]:
        if peer >= ranks or peer == rank:
            raise top.wrong(f"gpu {rank} names peer {peer}: give another one of 0…{ranks - 1}")
    for number, block in enumerate(gpu.blocks):
        where = f"thread block {number} of gpu {rank}"
        for kind, ids in block.channels.items():
            if any(index >= len(gpu.channels.get(kind, ())) for index in ids):
                raise top.wrong(f"{where} names a {kind} channel that the gpu does not list: add it")
        for kind, ids in block.remote_buffers.items():
            if any(index >= len(gpu.remote_buffers) or kind not in gpu.remote_buffers[index].access for index in ids):
                raise top.wrong(f"{where} names a remote buffer that the gpu does not list for {kind}: add it")
        for place, operation in enumerate(block.operations):
            _check_operation(gpu, block, operation, f"{where}, operation {place} ({operation.name})", top)


def _check_operation(gpu: Gpu, block: ThreadBlock, operation: Operation, where: str, top: _Node) -> None:
    kind = operation.channel_type or ""
    if any(channel >= len(block.channels.get(kind, ())) for channel in operation.channels):
        raise top.wrong(f"{where} names a channel that its thread block does not list: add it")
    for span in (*operation.src, *operation.dst):
        if span.remote is not None and span.remote >= len(block.remote_buffers.get(kind, ())):
            raise top.wrong(f"{where} names a remote buffer that its thread block does not list: add it")
    if any(semaphore >= len(gpu.semaphores) for semaphore in operation.semaphores):
        raise top.wrong(f"{where} names a semaphore that the gpu does not list: add it")
