"""Attention: fused into one kernel, or where PyTorch cannot fuse it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload import kernel as k
from ropewalk.workload import unfused
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import RING, ULYSSES, Operator, Split, part
from ropewalk.workload.unfused import AttentionSizes


@dataclass(frozen=True)
class FusedAttention(Operator):
    """Softmax(Q Kᵀ) V without the scores ever in memory (Dao et al., FlashAttention, 2022)."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    size: int
    causal: bool = False
    masked: bool = False
    """What may be seen is said by a mask in memory: nothing is skipped, even where the mask hides half of it."""
    window: int = 0
    """Keys that a query meets at most, the last ones before it; 0: all that it may see."""
    kept_keys: int = 0
    """Keys that are kept for the backward pass, where others are read again; 0: all."""
    uneven: bool = False
    """Queries and keys have more numbers than values; `size` is their mean."""
    dropped: bool = False
    """Some of the scores are dropped at random: a random number is made for every pair, in both passes."""
    unfused: bool = False
    """PyTorch falls back to products in float32 whose scores go to memory."""

    def forward(self) -> tuple[Kernel, ...]:
        return unfused.forward(self._sizes) if self.unfused else (self._kernel("forward"),)

    def backward(self) -> tuple[Kernel, ...]:
        return unfused.backward(self._sizes) if self.unfused else (self._kernel("backward"),)

    @property
    def _sizes(self) -> AttentionSizes:
        """All heads have keys of their own where attention is not fused: shared ones are repeated before it."""
        return AttentionSizes(self.batch * self.heads, self.queries, self.keys, self.size, self.dropped)

    def _kernel(self, form: str) -> Kernel:
        form, skips, window = (form + k.MASKED, False, 0) if self.masked else (form, self.causal, self.window)
        form += k.DROPPED if self.dropped else k.UNEVEN if self.uneven else ""
        window = window if window < self.keys else 0
        sizes = self.batch, self.heads, self.kv_heads, self.queries, self.keys, self.size
        return k.attention(form, *sizes, skips, window)

    def saved_elements(self) -> float:
        return self.batch * self.heads * self.queries * self.size if self.unfused else self.met_elements()

    def met_elements(self) -> float:
        """Elements of queries, keys, values and results."""
        keys = self.kept_keys or self.keys
        return self.batch * self.size * (2 * self.heads * self.queries + 2 * self.kv_heads * keys)

    def saved_bytes(self) -> float:
        return unfused.kept_bytes(self._sizes) if self.unfused else 0.0

    def split(self, split: Split) -> FusedAttention:
        """Ranks that share a sequence have its parts of the queries each, or all of them for some of the heads."""
        by_heads = split.exchange == ULYSSES
        ways = split.tensor * (split.context if by_heads else 1)
        mine = replace(self, heads=part(self.heads, ways), kv_heads=part(self.kv_heads, ways))
        if by_heads:
            return mine
        kept = part(self.keys, split.context) if split.exchange == RING and split.context > 1 else 0
        return replace(mine, queries=part(self.queries, split.context), kept_keys=kept)

    def host(self) -> tuple[str, ...]:
        return ("attention",)
