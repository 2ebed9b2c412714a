"""How PyTorch updates weights: over lists of tensors, in one kernel for all, or one tensor after another.

`torch.optim.AdamW` goes over lists (`foreach`) unless it is told anything; `fused=True` is one kernel; `fused=False`
alone, like `foreach=False`, is a loop over tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

LAUNCH_QUEUE = 1024
"""Kernels that wait for the GPU at most: the host that launches one more is held back until the first of them runs."""


@dataclass(frozen=True)
class Update:
    """What an optimiser runs."""

    kernels: Mapping[str, int] = field(default_factory=dict)
    """Kernels over all parameters, by their names in tables, and how often each runs."""
    most: float = inf
    """Parameters beyond which time grows in proportion."""
    launches: int = 0
    """Kernels that are launched for every tensor by itself; 0: a few for all of them."""
    called: str = ""
    """The optimiser whose calls the host makes, where it is another one."""
    element_bytes: float = 0.0
    """Bytes of the weights that it is for; 0: of any."""
    on_host: bool = False
    """State lies in the host's memory, and its CPUs update the weights."""

    def waiting(self, tensors: int) -> float:
        """Part of the launches for which the GPU waits: all that did not stand in its queue when the update began.

        >>> UPDATES["adamw_loop"].waiting(256), UPDATES["adamw_loop"].waiting(100), UPDATES["adamw"].waiting(256)
        (0.5, 0.0, 0.0)
        """
        launched = self.launches * tensors
        return max(0.0, 1.0 - LAUNCH_QUEUE / launched) if launched else 0.0


UPDATES = {
    "none": Update(),
    "sgd": Update({"sgd": 1}),
    "momentum": Update({"momentum": 1}),
    "adamw": Update({"momentum": 4, "sgd": -4}, most=2**28),
    "adamw_fused": Update({"adamw_fused": 1}),
    "adamw_loop": Update({"adamw_loop": 1}, launches=8),
    "adamw_mixed": Update({"adamw_fused": 4, "sgd": 1}, called="adamw_fused", element_bytes=2),
    "adamw_cpu": Update(on_host=True),
}
"""Optimisers by name. AdamW over lists is eight operations that read 12 tensors and write 8: as much as four times what
momentum does before its last operation, which is that of plain descent. A step of AdamW itself cannot be recorded as a
graph of kernels, so that its time alone would be the host's.

`adamw_mixed` is the update of Megatron-Core in 16 bits, with weights, moments and gradients in float32: 62 bytes for
each parameter that a rank updates (`param_and_grad_buffer.py`, `clip_grads.py`, `distrib_optimizer.py`). Gradients are
set to zero, their norm is checked, they are scaled, their norm is taken, they are clipped, AdamW reads four numbers and
writes three, and weights are copied to 16 bits. That is as much as four updates of weights in 16 bits and one of plain
descent. What is done to gradients before they are reduced is done to those of other ranks too, which is not counted."""
