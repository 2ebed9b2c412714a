"""Plans as JSON text, in the order of keys that the executor's own tools use."""

from __future__ import annotations

import json
from typing import Any

from ropewalk.export.mscclpp.plan import ChunkSpan, Gpu, MscclppPlan, Operation, ThreadBlock

REDUCING = ("re", "res", "rre", "rres")


def plan_text(plan: MscclppPlan) -> str:
    """The file of a plan, one operation a line."""
    head = {
        "name": plan.name,
        "collective": plan.collective,
        "protocol": plan.protocol,
        "inplace": plan.inplace,
        "reuse_resources": plan.reuse_resources,
    }
    tail = {
        "num_threads_per_block": plan.threads_per_block,
        "use_double_scratch_buffer": plan.double_scratch,
        "buffer_alignment": plan.alignment,
        "min_message_size": plan.min_message_size,
        "max_message_size": plan.max_message_size,
    }
    gpus = ",\n".join(_gpu(rank, gpu) for rank, gpu in enumerate(plan.gpus))
    return "{\n" + _members(head) + ',\n"gpus": [\n' + gpus + "\n],\n" + _members(tail) + "\n}\n"


def _members(values: dict[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values.items())


def _gpu(rank: int, gpu: Gpu) -> str:
    blocks = ",\n".join(_block(number, block) for number, block in enumerate(gpu.blocks))
    sizes = {"id": rank, "input_chunks": gpu.inputs, "output_chunks": gpu.outputs, "scratch_chunks": gpu.scratch}
    rest = {
        "channels": [{"channel_type": kind, "connected_to": list(peers)} for kind, peers in gpu.channels.items()],
        "remote_buffers": [
            {"rank": remote.rank, "type": remote.buffer, "access_channel_types": list(remote.access)}
            for remote in gpu.remote_buffers
        ],
        "semaphores": [{"init_value": value} for value in gpu.semaphores],
    }
    return "{" + _members(sizes) + ',\n"threadblocks": [\n' + blocks + "\n],\n" + _members(rest) + "}"


def _block(number: int, block: ThreadBlock) -> str:
    operations = ",\n".join("  " + json.dumps(_operation(operation)) for operation in block.operations)
    rest = {
        "channels": [{"channel_type": kind, "channel_ids": list(ids)} for kind, ids in block.channels.items()],
        "remote_buffer_refs": [
            {"access_channel_type": kind, "remote_buffer_ids": list(ids)} for kind, ids in block.remote_buffers.items()
        ],
    }
    return "{" + _members({"id": number}) + ', "ops": [\n' + operations + "],\n" + _members(rest) + "}"


def _operation(operation: Operation) -> dict[str, Any]:
    told: dict[str, Any] = {"name": operation.name}
    if operation.src:
        told["src_buff"] = [_span(span) for span in operation.src]
    if operation.dst:
        told["dst_buff"] = [_span(span) for span in operation.dst]
    if operation.channels:
        told["channel_ids"] = list(operation.channels)
    if operation.channel_type is not None:
        told["channel_type"] = operation.channel_type
    if operation.semaphores:
        told["semaphore_ids"] = list(operation.semaphores)
    if operation.barrier is not None:
        told["barrier_id"] = operation.barrier
        told["num_threadblocks"] = operation.parties
    if operation.name in REDUCING:
        told["reduce_op"] = "sum"
    return told


def _span(span: ChunkSpan) -> dict[str, Any]:
    place = {"type": span.buffer} if span.buffer is not None else {"buffer_id": span.remote}
    return {**place, "index": span.index, "size": span.size}
