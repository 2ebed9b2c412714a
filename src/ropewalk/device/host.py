"""The CPU beside a GPU: its part of the server's memory, and what it takes to update weights there.

An optimiser whose state lies in the host's memory gets the gradients of a GPU, updates float32 weights and moments, and
sends narrow weights back (Ren et al., ZeRO-Offload, 2021; Megatron-Core's `--optimizer-cpu-offload`). It works piece by
piece, so that the slowest of the three counts: bytes to the host, the CPU's memory, bytes back.
"""

from __future__ import annotations

from dataclasses import dataclass

LINK_REACHED = 0.87
"""Part of the raw rate of PCI Express that large copies reach: 55.1 of 63 GB/s each way between an H200 and its host
(measured). NVLink-C2C is taken to reach as much."""
MEMORY_REACHED = 0.46
"""Part of the host's memory bandwidth that an update reaches: 0.257 s for a billion parameters on two Xeon 8168 with
256 GB/s, as we recall the ZeRO-Offload paper's table of CPU-Adam; not looked up again. PyTorch's fused AdamW took
0.21 s on 16 cores of the Xeon beside an H200, whose memory bandwidth is not known (measured)."""
STATE_BYTES = 12.0
"""Of a parameter in the host's memory: its weight and two moments in float32."""
GRADIENT_BYTES = 4.0
"""Of a gradient where the CPU reads it."""


@dataclass(frozen=True)
class Host:
    """What one GPU has of its server's CPUs."""

    link: float
    """Bytes per second to the host, and as many back."""
    bandwidth: float
    """Bytes per second of the host's memory, shared out evenly over the GPUs of the server."""
    memory: float
    """Bytes of the host's memory, shared out likewise."""

    def update_s(self, parameters: int, element_bytes: float) -> float:
        """Seconds in which AdamW updates so many parameters in the host's memory.

        >>> round(Host(link=63e9, bandwidth=76.8e9, memory=256e9).update_s(10**9, 2.0), 2)
        0.85
        """
        touched = GRADIENT_BYTES + 2 * STATE_BYTES + element_bytes
        across_s = parameters * max(GRADIENT_BYTES, element_bytes) / (LINK_REACHED * self.link)
        return max(across_s, parameters * touched / (MEMORY_REACHED * self.bandwidth))
