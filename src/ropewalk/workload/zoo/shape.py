"""The sizes of a transformer."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.errors import Findings, WorkloadError


@dataclass(frozen=True)
class Transformer:
    """Layers, widths and words; what is left at 0 follows from the rest."""

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    sequence: int
    """Tokens in a sample unless told otherwise."""
    kv_heads: int = 0
    """Heads of keys and values; as many as heads of queries unless several share one."""
    ffn: int = 0
    """Neurons of the feed-forward layer; four times the width unless said otherwise."""
    size: int = 0
    """Numbers in a head; width / heads unless said otherwise."""
    positions: int = 0
    """Rows of a learnt table of positions; as many as tokens in a sample unless said otherwise."""
    tied: bool = True
    """The last layer uses the table of words as its weight."""
    window: int = 0
    """Tokens that a token looks at, itself and the last ones before it; 0: all before it."""
    whole_every: int = 0
    """Every n-th layer has no window (every second in Gemma 2, every sixth in Gemma 3); 0: all have it."""
    qk_norm: bool = False
    """The queries and keys of every head are normalised before they are rotated."""
    qkv_bias: bool = False
    """Products that make queries, keys and values have a bias."""
    out_bias: bool = False
    """The product that ends attention has a bias."""
    sinks: bool = False
    """Every head has a learnt score that takes its part of attention and gives nothing for it."""
    norms_behind: bool = False
    """Norms stand behind sub-layers too, before the sum with what bypassed them."""
    softcap: bool = False
    """Logits are bent by a tanh below a largest value."""
    ungated: bool = False
    """The feed-forward layer is two products around a GELU, without a gate."""
    layer_norm: bool = False
    """Norms bring to mean and variance, not to length alone."""
    own_norms: bool = False
    """Each of two sub-layers side by side has a norm of its own."""
    mlp_bias: bool = False
    """Products of the feed-forward layer have a bias."""
    head_bias: bool = False
    """Logits have a bias."""

    @property
    def head_size(self) -> int:
        return self.size or self.hidden // self.heads

    @property
    def queries(self) -> int:
        """Width of the queries of all heads."""
        return self.heads * self.head_size

    @property
    def shared_heads(self) -> int:
        return self.kv_heads or self.heads

    @property
    def keys(self) -> int:
        """Width of the keys of all heads; values are as wide."""
        return self.shared_heads * self.head_size

    @property
    def neurons(self) -> int:
        return self.ffn or 4 * self.hidden

    @property
    def places(self) -> int:
        return self.positions or self.sequence

    def window_at(self, layer: int) -> int:
        """The window of a layer by its number; 0 where it sees all tokens before each.

        >>> [Transformer(4, 64, 4, 100, 512, window=128, whole_every=2).window_at(layer) for layer in range(4)]
        [128, 0, 128, 0]
        """
        return 0 if self.whole_every and (layer + 1) % self.whole_every == 0 else self.window

    def check(self, name: str) -> None:
        """Refuse sizes that do not make a transformer."""
        findings = Findings(WorkloadError, f"model {name}")
        for word in ("layers", "hidden", "heads", "vocabulary"):
            if getattr(self, word) < 1:
                findings.add(f"{word}={getattr(self, word)} is not a size: give 1 or more")
        if not findings and not self.size and self.hidden % self.heads:
            findings.add(f"{self.heads} heads do not divide hidden={self.hidden}: change one, or give size=")
        if not findings and self.heads % self.shared_heads:
            findings.add(f"{self.shared_heads} kv_heads do not divide {self.heads} heads: give a divisor")
        if self.whole_every and not self.window:
            findings.add(f"whole_every={self.whole_every} chooses among layers with a window: give window= too")
        findings.raise_if_any()


TRAITS = ("window", "whole_every", "qk_norm", "qkv_bias", "out_bias", "sinks", "norms_behind", "softcap")
"""What is not the same in all blocks that are otherwise Llama's."""
SIDE_BY_SIDE = ("qkv_bias", "qk_norm", "ungated", "layer_norm", "own_norms", "mlp_bias", "head_bias")
"""What is not the same in all blocks whose sub-layers stand side by side."""
