"""Routers as Megatron-Core runs them, kernel by kernel, from its sources and Transformer Engine's (2025 and 2026).

`megatron/core/transformer/moe/router.py` and `moe_utils.py`: scores are float32 numbers, one for each expert; recipes
draw them at random so that experts get equal shares. With `moe_router_fusion` Transformer Engine chooses the best few,
scores for the loss that balances experts, and that loss by one kernel each; without it every operation is a kernel of
its own. The product that makes scores reads 16-bit numbers; on the way back all of it is float32.
"""

from __future__ import annotations

from ropewalk.workload.written import Launch, Routine

DRAWN = (Launch(wide=True), Launch(reads=0, wide=True))
"""Scores at random: a copy, and numbers drawn into it."""
MASK = 0.25
"""A byte for each expert that says whether a token goes there, against a float32."""
PICKED = Launch(reads=1, writes=2 + MASK, wide=True)
SMALL, FEW = Launch(reads=2, wide=True, per_row=True), Launch(wide=True, per_row=True)
ONE, TWO, FILLED = Launch(wide=True), Launch(reads=2, wide=True), Launch(reads=0, wide=True)
CHOSEN = Launch(reads=16, writes=0.1, wide=True)
"""PyTorch's `topk`: a radix selection that goes over a row two bits at a time (SortingRadixSelect.cuh)."""
COUNTED = Launch("column_sum", MASK, 0, wide=True)
INTO_MAP = (FILLED, ONE, ONE, SMALL, Launch(reads=1, writes=MASK, wide=True))
"""A map of zeros made whole numbers, its copy, ones at the chosen places, bytes."""

GATE_IN_FLOAT32 = Routine("scores in float32", (), (Launch("cast"), Launch("cast")), ("cast",))
"""What the way back of the product that makes scores reads as float32, and what it makes as 16 bits again."""

CORE_ROUTER = Routine(
    "router, few kernels",
    forward=(*DRAWN, PICKED, PICKED, COUNTED, Launch(reads=1, writes=0, wide=True), FEW, FEW, FEW),
    backward=(FEW, FEW, FILLED, TWO, Launch(reads=2 + MASK, wide=True), TWO),
    calls=("cast", "softmax", "softmax", "mean", "copy", "scale"),
    saved_wide=1,
)

CORE_ROUTER_APART = Routine(
    "router, a kernel each",
    forward=(
        *DRAWN, ONE, ONE,  # scores, with what balances experts
        CHOSEN, SMALL, SMALL, FEW, SMALL, FILLED, ONE, Launch(reads=MASK, writes=MASK, wide=True), ONE, CHOSEN,
        SMALL, SMALL, SMALL, SMALL, SMALL,  # the chosen few, made to sum to 1 and scaled
        FILLED, ONE, SMALL, *INTO_MAP,
        ONE, Launch("row_mean", 1, 0, wide=True), FEW, ONE, CHOSEN, *INTO_MAP,  # once more for the loss
        COUNTED, Launch("column_sum", 1, 0, wide=True), COUNTED, FEW, FEW, FEW, FEW,
    ),
    backward=(FEW, FEW, FILLED, TWO, TWO, FILLED, TWO, SMALL, SMALL, SMALL, SMALL, FILLED, SMALL, TWO, TWO),
    calls=("cast", "softmax", "softmax", "mean", "copy", "scale", *("scale",) * 30),
    saved_wide=2,
)  # fmt: skip
"""Groups of experts, the best few of them, and the loss of a sequence (Nemotron 3, whose recipes fuse nothing here)."""
