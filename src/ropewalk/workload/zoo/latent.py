"""Attention with compressed keys and values (DeepSeek-V2 and V3), as transformers runs it in training.

Queries come from a narrow latent vector, keys and values of all heads from another; a part of every key carries the
position and is shared by all heads. In training everything is expanded again, so attention itself is the usual one with
heads wider in keys than in values.
"""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.workload.dense import Linear
from ropewalk.workload.operator import Role
from ropewalk.workload.routines import COLUMN_SUM, ROTATE_PAIRS
from ropewalk.workload.written import Launch, Routine, Written
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
        gathered(run.tokens * heads * latent.key, "cat"),
        gathered(run.tokens * heads * latent.key, "permute"),
        sharing(Linear(run.tokens, shape.hidden, kept, bias=False, role=Role.OUTSIDE)),
        gathered(run.tokens * kept, "cat", Role.OUTSIDE),
        norm(run, latent.keys),
        enter(run.tokens * kept),
        Written(ROTATE_PAIRS, run.tokens, heads * latent.rotated, Role.INSIDE),
        Written(ROTATE_PAIRS, run.tokens, latent.rotated, Role.WHOLE),
        Linear(run.tokens, latent.keys, heads * (latent.plain + latent.value), bias=False, role=Role.COLUMNS),
        Written(expanded(latent), run.tokens, heads * latent.key, Role.INSIDE),
        calls("view", "view", "view", "transpose", "transpose", "view", "module", "module"),
        interpreted(400, run),
        *attended(run, heads, heads, latent.mean_size, causal=True, dropout=False),
        *projected(run, heads * latent.value, shape.hidden, bias=False),
        residual(elements),
    )
    return captured(run, ATTENTION, made)


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
