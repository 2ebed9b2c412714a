"""What a rank is where it is not a single GPU: a server whose GPUs act as one."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ropewalk.errors import Findings, StrategyError


@dataclass(frozen=True)
class Server:
    """One of n equal servers.

    Its GPUs share its samples equally and have a copy each of its weights, which they all-reduce among themselves at
    the end of the layer's backward pass (FlexNet, the simulator of the TopoOpt study, does the same). Pinned layers and
    sparse tables are spread over the GPUs instead. What the GPUs of a server then pass to each other of looked-up rows
    is left out.

    >>> Server(4, 300e9).all_reduce_s(1e9)
    0.005
    """

    gpus: int = 4
    inside_bandwidth: float = 300e9
    """Bytes/s that a GPU sends to the others of its server; 300 GB/s is the NVLink of an A100."""
    memory_bytes: float = math.inf
    """Of one GPU; infinite: memory is not checked."""

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "server")
        if self.gpus < 1:
            findings.add(f"it has {self.gpus} GPUs: give 1 or more")
        if not self.inside_bandwidth > 0:
            findings.add(f"its GPUs exchange {self.inside_bandwidth} bytes/s: give a bandwidth above 0")
        if not self.memory_bytes > 0:
            findings.add(f"its GPUs have {self.memory_bytes} bytes of memory: give a size above 0")
        findings.raise_if_any()

    def all_reduce_s(self, size_bytes: float) -> float:
        """Seconds in which its GPUs sum what each of them has a copy of: 2(g-1)/g of it over the bandwidth inside."""
        return 2 * size_bytes * (self.gpus - 1) / self.gpus / self.inside_bandwidth


ONE_GPU = Server(1)
"""A rank that is a GPU by itself."""
