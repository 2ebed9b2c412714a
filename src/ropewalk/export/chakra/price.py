"""How long a node of a trace computes: what the trace says, or what its arithmetic takes on a device."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.export.chakra import names
from ropewalk.export.chakra.load import TraceFindings
from ropewalk.export.chakra.schema import Node


@dataclass(frozen=True)
class NodeSpeeds:
    """Speeds for nodes that say how much they compute instead of how long: flop/s and bytes/s of memory."""

    peak_flops: float | None = None
    memory_bandwidth: float | None = None

    def seconds(self, rank: int, node: Node, findings: TraceFindings) -> float:
        """Exact seconds where we wrote them, else the duration, else the longer of arithmetic and memory."""
        exact = node.attributes.get(names.SECONDS)
        if isinstance(exact, float):
            return exact
        if node.duration_micros:
            return node.duration_micros / 1e6
        operations, size_bytes = node.number("num_ops"), node.number("tensor_size")
        if not operations and not size_bytes:
            return 0.0
        if self.peak_flops is None or self.memory_bandwidth is None:
            findings.add(
                f"rank {rank}: node {node.id} ({node.name}) says {operations:g} operations on {size_bytes:g} bytes and "
                "no duration: give peak_flops and memory_bandwidth of the device"
            )
            return 0.0
        return max(operations / self.peak_flops, size_bytes / self.memory_bandwidth)
