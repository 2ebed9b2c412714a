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
        findings.raise_if_any()
