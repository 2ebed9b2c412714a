"""Tables of rows that are looked up: words of a language model, users and items of a recommendation model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload import kernel as k
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Role, Split, part


@dataclass(frozen=True)
class Embedding(Operator):
    """`lookups` rows of `width` numbers out of a table of `vocabulary` rows."""

    lookups: int
    vocabulary: int
    width: int
    role: Role = Role.WHOLE
    """COLUMNS: the vocabulary is split over the ranks."""
    tied: bool = False
    """The table is used elsewhere too, as the weight of a linear layer or looked up: the two gradients are added."""
    borrowed: bool = False
    """The table belongs to another operator: it is looked up here, counted there."""

    def forward(self) -> tuple[Kernel, ...]:
        return (k.embedding("forward", self.lookups, self.width, self.vocabulary),)

    def backward(self) -> tuple[Kernel, ...]:
        added = (k.pointwise("map", self.vocabulary * self.width, 2),) if self.tied else ()
        return (k.embedding("backward", self.lookups, self.width, self.vocabulary), *added)

    def weight_kernels(self) -> range:
        return range(len(self.backward()))

    def parameters(self) -> int:
        return 0 if self.borrowed else self.vocabulary * self.width

    def parameter_tensors(self) -> int:
        return int(not self.borrowed)

    def saved_bytes(self) -> float:
        return 8.0 * self.lookups

    def split(self, split: Split) -> Embedding:
        ways = split.tensor if self.role is Role.COLUMNS else 1
        return replace(self, vocabulary=part(self.vocabulary, ways), lookups=part(self.lookups, split.context))

    def host(self) -> tuple[str, ...]:
        return ("embedding",)


@dataclass(frozen=True)
class EmbeddingBags(Operator):
    """`tables` tables; each of `bags` samples looks `lookups` rows up in every table and adds them."""

    tables: int
    bags: int
    lookups: int
    vocabulary: int
    width: int

    def forward(self) -> tuple[Kernel, ...]:
        return (k.embedding_bag("forward", self.bags, self.lookups, self.width, self.vocabulary),) * self.tables

    def backward(self) -> tuple[Kernel, ...]:
        return (k.embedding_bag("backward", self.bags, self.lookups, self.width, self.vocabulary),) * self.tables

    def weight_kernels(self) -> range:
        return range(len(self.backward()))

    def parameters(self) -> int:
        return self.tables * self.vocabulary * self.width

    def parameter_tensors(self) -> int:
        return self.tables

    def saved_bytes(self) -> float:
        return 8.0 * self.tables * self.bags * self.lookups

    def split(self, split: Split) -> EmbeddingBags:
        return self

    def host(self) -> tuple[str, ...]:
        return ("embedding_bag",) * self.tables
