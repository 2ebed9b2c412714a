"""Attention with compressed keys and values (DeepSeek-V2 and V3), as transformers runs it in training.

Queries come from a narrow latent vector, keys and values of all heads from another; a part of every key carries the
position and is shared by all heads. In training everything is expanded again, so attention itself is the usual one with
heads wider in keys than in values.
"""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.workload.dense import Linear
from ropewalk.workload.operator import Role
from ropewalk.workload.routines import COLUMN_SUM, ROTATE_IN_PLACE, ROTATE_PAIRS
from ropewalk.workload.written import Launch, Routine, Written
from ropewalk.workload.zoo import core_code
from ropewalk.workload.zoo.graphs import ATTENTION
from ropewalk.workload.zoo.llama import norm
from ropewalk.workload.zoo.parts import (
    Operators,
    Run,
    attended,
    calls,
    captured,
    enter,
    fan_in,
    gathered,
    interpreted,
    projected,
    residual,
    sharing,
)  # fmt: skip
from ropewalk.workload.zoo.shape import Transformer


@dataclass(frozen=True)
class Latent:
    """Widths of the latent vectors and of the parts of a head."""

    queries: int
    """0 where queries are made of the token itself."""
    keys: int
    plain: int
    """Numbers of a key without position."""
    rotated: int
    """Numbers of a key with position."""
    value: int

    @property
    def key(self) -> int:
        return self.plain + self.rotated

    @property
    def mean_size(self) -> int:
        """Attention does as much work as if keys and values had this width both."""
        return (self.key + self.value) // 2


def attention(shape: Transformer, latent: Latent, run: Run) -> Operators:
    elements, heads = run.tokens * shape.hidden, shape.heads
    kept = latent.keys + latent.rotated
    made = (
        norm(run, shape.hidden),
        fan_in(elements, 2),
        *_queries(shape, latent, run),
        *_cut(heads * latent.key, run),
        sharing(Linear(run.tokens, shape.hidden, kept, bias=False, role=Role.OUTSIDE)),
        gathered(run.tokens * kept, "cat", Role.OUTSIDE),
        norm(run, latent.keys),
        enter(run.tokens * kept),
        *_rotated(shape, latent, run),
        calls("view", "view", "view", "transpose", "transpose", "view", "module", "module"),
        interpreted(400, run, core_code.ATTENTION),
        *attended(run, heads, heads, latent.mean_size, causal=True, dropout=False, uneven=True),
        *projected(run, heads * latent.value, shape.hidden, bias=False),
        residual(elements),
    )
    return captured(run, ATTENTION, made)


def _cut(width: int, run: Run) -> Operators:
    """Queries that are cut in parts and turned: their gradients are joined and turned back."""
    if run.stack.merged:
        return ()
    return gathered(run.tokens * width, "cat"), gathered(run.tokens * width, "permute")


def _rotated(shape: Transformer, latent: Latent, run: Run) -> Operators:
    """Keys and values of all heads, queries and keys with their positions.

    Megatron-Core rotates queries where they are and makes keys and values of their parts, by one kernel each
    (`apply_rope_fusion`).
    """
    tokens, heads = run.tokens, shape.heads
    wide = heads * (latent.plain + latent.value)
    grown = Linear(tokens, latent.keys, wide, bias=False, role=Role.COLUMNS)
    if run.stack.merged:
        joined = Launch(writes=(latent.key + latent.value) / (latent.plain + latent.value))
        keys = Routine("keys of parts, one kernel", (joined,), (joined,), ("embedding",))
        return (
            grown,
            Written(ROTATE_IN_PLACE, tokens, heads * latent.rotated, Role.INSIDE),
            Written(keys, tokens, wide, Role.INSIDE),
        )
    return (
        Written(ROTATE_PAIRS, tokens, heads * latent.rotated, Role.INSIDE),
        Written(ROTATE_PAIRS, tokens, latent.rotated, Role.WHOLE),
        grown,
        Written(expanded(latent), tokens, heads * latent.key, Role.INSIDE),
    )


def _queries(shape: Transformer, latent: Latent, run: Run) -> Operators:
    """Queries of all heads, from a latent vector or from the token itself."""
    wide = shape.heads * latent.key
    if not latent.queries:
        return enter(run.tokens * shape.hidden), Linear(run.tokens, shape.hidden, wide, bias=False, role=Role.COLUMNS)
    return (
        Linear(run.tokens, shape.hidden, latent.queries, bias=False, role=Role.OUTSIDE),
        norm(run, latent.queries),
        enter(run.tokens * latent.queries),
        Linear(run.tokens, latent.queries, wide, bias=False, role=Role.COLUMNS),
    )


def expanded(latent: Latent) -> Routine:
    """Queries joined from their two parts, keys filled part by part; shares are those of a whole key."""
    plain, rotated = latent.plain / latent.key, latent.rotated / latent.key
    values = (latent.plain + latent.value) / latent.key
    part = Launch("permute", share=rotated)
    return Routine(
        "keys of parts",
        forward=(Launch("cat"), Launch("permute", share=plain), part),
        backward=(
            Launch("permute"), part, Launch(reads=0, share=rotated), part, Launch(), Launch("permute", share=plain),
            Launch(COLUMN_SUM.form, 1, 0, share=rotated),
            Launch("cat", share=values), Launch("permute", share=values),
        ),
        calls=("cat", "copy", "copy"),
    )  # fmt: skip
