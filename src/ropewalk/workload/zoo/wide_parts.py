"""Parts of a model that keep the step's own numbers where others multiply in 8 or 4 bits.

Recipes for few bits name them: Nemotron 3 Super in NVFP4 keeps its last blocks, attention, what brings tokens to the
width of experts, and what predicts further tokens in bf16 (Megatron-Bridge, te_quant.cfg). In bf16 nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ropewalk.choices import Choice, Choices
from ropewalk.errors import WorkloadError
from ropewalk.workload.adapted import Adapted
from ropewalk.workload.dense import Linear
from ropewalk.workload.experts import Experts
from ropewalk.workload.operator import Operator
from ropewalk.workload.workload import Layer

ATTENTION, LATENT, PREDICTION = "attention", "latent", "prediction"
PARTS = Choices(
    "part of a model that keeps its numbers",
    (
        Choice(ATTENTION, "attention block", "projections of attention, where it is a layer of its own"),
        Choice(LATENT, "", "what brings tokens to the width of experts, and back"),
        Choice(PREDICTION, "prediction block", "layers that predict further tokens"),
    ),
    error=WorkloadError,
)
"""What may be kept wide, by name; `make` is the kind of layers that are kept as a whole."""


def wide_named(listed: str) -> frozenset[str]:
    """Parts that a model's option names, joined by plus signs.

    >>> sorted(wide_named("latent+attention")), wide_named("")
    (['attention', 'latent'], frozenset())
    """
    return frozenset(PARTS.named(part).name for part in listed.split("+")) if listed else frozenset()


def kept_wide(layers: list[Layer], parts: frozenset[str], last: int) -> list[Layer]:
    """The layers with products that are never narrowed in these parts, and in so many blocks at the end."""
    kinds = {PARTS[part].make for part in parts}
    blocks = [at for at, layer in enumerate(layers) if layer.kind not in ("embedding", "head", "prediction block")]
    behind = set(blocks[max(0, len(blocks) - last) :])
    made: dict[int, tuple[Operator, ...]] = {}
    found = []
    for at, layer in enumerate(layers):
        if at in behind or layer.kind in kinds:
            alike = id(layer.operators)
            made.setdefault(alike, in_own_numbers(layer.operators))
            found.append(replace(layer, operators=made[alike], kind=f"wide {layer.kind}"))
        else:
            found.append(layer)
    return found


def in_own_numbers(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """The same operators without narrow products."""
    return tuple(map(_widened, operators))


def _widened(operator: Operator) -> Operator:
    if isinstance(operator, Adapted):
        return replace(operator, operator=_widened(operator.operator))
    if isinstance(operator, Experts):  # fused kernels are made for narrow products
        return replace(operator, exact=True, glued=False)
    return replace(operator, exact=True) if isinstance(operator, Linear) else operator
