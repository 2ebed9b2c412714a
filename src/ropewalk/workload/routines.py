"""Routines as frameworks run them, recorded operation by operation from both passes.

Recorded from transformers 5.22 and torchvision models on PyTorch 2.13 in eager mode, with the fused kernels that CUDA
has for attention, dropout and layer norm. The gradient of a slice is two launches: a tensor of zeros and a copy.
"""

from __future__ import annotations

from ropewalk.workload.written import Launch, Routine

MAP, ADD, SPREAD = Launch(), Launch(reads=2), Launch("broadcast", reads=2)
HALF, HALF_SPREAD, HALF_ADD = Launch(share=0.5), Launch("broadcast", reads=2, share=0.5), Launch(reads=2, share=0.5)
CAST, CAT, COPY, ZERO = Launch("cast"), Launch("cat"), Launch("permute"), Launch(reads=0)
WIDE_MAP, WIDE_ADD = Launch(wide=True), Launch(reads=2, wide=True)
WIDE_SPREAD = Launch("broadcast", reads=2, wide=True)
COLUMN_SUM = Launch("column_sum", 1, 0)
ROW, ROW_PAIR = Launch(wide=True, per_row=True), Launch(reads=2, wide=True, per_row=True)
ROW_SUM = Launch("row_mean", 1, 0, wide=True)

RMS_NORM = Routine(
    "rms norm",
    forward=(CAST, WIDE_MAP, ROW_SUM, ROW, ROW, WIDE_SPREAD, CAST, SPREAD),
    backward=(
        SPREAD, ADD, COLUMN_SUM,  # of the scale
        CAST, WIDE_ADD, WIDE_SPREAD, ROW_SUM,  # of the product with 1 / length
        ROW, ROW, ROW_PAIR, Launch(reads=0, wide=True),  # of 1 / length, spread over the row
        WIDE_MAP, WIDE_MAP, WIDE_ADD, WIDE_ADD, CAST,
    ),
    calls=("cast", "power", "mean", "scale", "scale", "multiply", "module"),
    weights=1, saved=1, saved_wide=1,
)  # fmt: skip
"""Root mean square norm in float32, then scaled: widen, square, mean, +ε, 1/√, product, narrow, scale."""

ROTATE = Routine(
    "rotary embedding",
    forward=(SPREAD, HALF, CAT, SPREAD, ADD),
    backward=(SPREAD, HALF, ZERO, HALF, ZERO, HALF, ADD, SPREAD, ADD, COPY),
    calls=("scale", "scale", "cat", "scale", "add", "transpose"),
)
"""x cos + rotated(x) sin; the rotated half is negated and joined. Sums in the backward pass change the layout, hence
the copy."""

ROTATE_PAIRS = Routine(
    "rotary embedding of pairs",
    forward=(HALF_SPREAD, HALF_SPREAD, HALF_ADD, HALF_SPREAD, HALF_SPREAD, HALF_ADD, CAT),
    backward=(
        HALF_SPREAD, HALF_SPREAD, HALF, HALF_SPREAD, HALF_ADD, HALF_SPREAD, HALF_ADD, ZERO, HALF, ZERO, HALF, ADD,
    ),
    calls=("scale", "scale", "add", "scale", "scale", "add", "cat"),
)  # fmt: skip
"""The same rotation of neighbouring pairs of numbers."""

ROTATE_IN_PLACE = Routine(
    "rotary embedding of pairs, in place",
    forward=(Launch(reads=2.1, writes=2.1),),
    backward=(Launch(reads=2.5, writes=2.5),),
    calls=("embedding",),
)
"""The same by one kernel that reads and writes the turned part of every head, 64 numbers of 192: it takes as long as
2.1 and 2.5 times these bytes in one piece (H200, heads of DeepSeek-V3 and Kimi K2; Megatron-Core's Triton kernel)."""

GELU = Routine(
    "gelu of tanh",
    forward=(MAP, MAP, MAP, ADD, MAP, MAP, MAP, ADD),
    backward=(ADD, ADD, ADD, MAP, MAP, MAP, MAP, ADD, ADD, MAP, ADD),
    calls=("scale", "power", "scale", "add", "scale", "relu", "scale", "multiply"),
    saved=4,
)
"""0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), a kernel for each operation."""

GATE = Routine(
    "gate",
    forward=(MAP, ADD),
    backward=(ADD, ADD, ADD),
    calls=("silu", "multiply"),
    saved=3,
)
"""silu(gate) x up."""

ROTATE_AT_ONCE = Routine("rotary embedding, one kernel", (MAP,), (MAP,), ("scale",))

RMS_NORM_AT_ONCE = Routine("rms norm, one kernel", (MAP,), (ADD,), ("rms_norm",), weights=1, saved=1)
"""As Transformer Engine has it: limited by memory in both passes, however short the rows."""

GATE_AT_ONCE = Routine("gate, one kernel", (ADD,), (Launch(reads=3, writes=2),), ("silu",), saved=2)

GATED_NORM_AT_ONCE = Routine(
    "gate and norm of groups, one kernel", (ADD,), (Launch(reads=8, writes=5),), ("rms_norm",), weights=1, saved=2
)
"""The gate and the norm behind a scan by one Triton kernel, which makes its results anew on the way back and takes as
long there as 11 to 15 tensors in one piece (H200, 4,096 to 16,384 numbers per token in eight groups)."""

BIAS_GELU = Routine(
    "bias and gelu",
    forward=(Launch("gelu"),),
    backward=(Launch("gelu_backward", reads=2), COLUMN_SUM),
    calls=("gelu",),
    weights=1, saved=1,
)  # fmt: skip
"""The bias of a linear layer and its activation in one kernel (Megatron-LM)."""

BIAS_DROPOUT_ADD = Routine(
    "bias, dropout and residual",
    forward=(Launch(reads=2, mask=True),),
    backward=(Launch(mask=True), COLUMN_SUM, ADD),
    calls=("dropout",),
    weights=1,
)
"""The bias of a linear layer, dropout and the sum with the residual in one kernel (Megatron-LM)."""

DROPOUT_ADD = Routine(
    "dropout and residual",
    forward=(Launch(reads=2, mask=True, draws=True),),
    backward=(Launch(mask=True), ADD),
    calls=("dropout",),
)
"""Dropout and the sum with the residual in one kernel of torch.compile, the bias added by the product before it."""

BIAS_ADD = Routine("bias and residual", forward=(ADD,), backward=(COLUMN_SUM, ADD), calls=("add",), weights=1)
"""The same without dropout."""

CONVOLVE_ALONG = Routine(
    "convolution along the sequence",
    (Launch(reads=1.5, writes=1.5),),
    (Launch(reads=1.5, writes=1.5), Launch(reads=3.0, writes=1.5)),
    ("relu",),
    weights=5,
)
"""Every channel with its last four tokens, a bias and a silu, in one kernel; run again on the way back, where one more
kernel makes all gradients. `causal_conv1d` takes as long as 1.4 times its bytes in one piece on an H200, 1.7 times on a
B200 (AIConfigurator, linear_attention, 8,192 tokens and more); its way back was not measured and is taken to be
alike."""

SQUARED_RELU = Routine("squared relu", (MAP, MAP), (ADD, ADD), ("relu", "power"), saved=2)
SQUARED_RELU_AT_ONCE = Routine("squared relu, one kernel", (MAP,), (ADD,), ("relu",), saved=1)

SINKS = Routine("sinks", (), (COLUMN_SUM,), (), weights=1)
"""A learnt score of every head beside those of the keys: attention itself reads it, its gradient is a sum."""

SOFTCAP = Routine("softcap", (MAP, MAP, MAP), (MAP, ADD, MAP), ("scale", "relu", "scale"), saved=1)
"""Logits by a number, their tanh, the product with that number."""

SOFTCAP_AT_ONCE = Routine("softcap, one kernel", (MAP,), (ADD,), ("scale",), saved=1)

POSITIONS = Routine(
    "positions and mask",
    forward=(ROW,) * 9,
    backward=(),
    calls=("scale", "scale", "scale", "cat", "scale", "scale", "mean", "scale", "mean"),
)
"""Numbers of positions, and the check that no sequences are packed together: nine kernels on a few integers."""

ROTATION_TABLE = Routine(
    "table of rotations",
    forward=(ROW, Launch(wide=True, share=0.5), *(WIDE_MAP,) * 5, CAST, CAST),
    backward=(),
    calls=("cast", "scale", "cat", "scale", "scale", "scale", "scale", "cast"),
)
"""Cosines and sines of every position, once a step."""

SUM_OVER_BATCH = Routine("gradient of positions", forward=(), backward=(COLUMN_SUM,), calls=())
"""Positions are the same for all samples: their gradients are summed."""

ROUTER = Routine(
    "router",
    forward=(CAST, Launch("softmax", wide=True), *(ROW_PAIR,) * 4),
    backward=(
        *(ROW_PAIR,) * 7,
        Launch(reads=0, wide=True),
        ROW_PAIR,
        Launch("softmax_backward", 2, 1, wide=True),
        CAST,
    ),
    calls=("cast", "softmax", "softmax", "mean", "copy", "scale"),
    saved_wide=1,
)
"""Softmax over experts, the best few, their weights made to sum to 1 (Mixtral)."""

GROUPED_ROUTER = Routine(
    "router with groups",
    forward=(WIDE_MAP, WIDE_MAP, WIDE_MAP, *(ROW_PAIR,) * 4, WIDE_MAP, Launch(wide=True, share=0.5),
             Launch(wide=True, share=0.5), WIDE_MAP, WIDE_MAP, *(ROW_PAIR,) * 6),
    backward=(*(ROW_PAIR,) * 8, Launch(reads=0, wide=True), ROW_PAIR, WIDE_ADD),
    calls=("scale", "add", "softmax", "mean", "softmax", "scale", "scale", "copy", "cast", "scale", "softmax",
           "embedding", "mean", "copy", "scale", "scale"),
    saved_wide=1,
)  # fmt: skip
"""Sigmoid scores, the best groups of experts, the best experts in them (DeepSeek-V3)."""

VOCABULARY_LOSS = Routine(
    "cross entropy over a split vocabulary",
    forward=(CAST, ROW_SUM, WIDE_MAP, ROW, WIDE_MAP, ROW_SUM, ROW, WIDE_MAP),
    backward=(ROW, WIDE_MAP, CAST),
    calls=("cast", "mean", "scale", "embedding", "scale", "mean", "scale", "scale"),
    saved_wide=1,
)
"""Largest logit, difference, exponentials, their sum, probabilities: each rank on its words (Megatron-LM)."""
