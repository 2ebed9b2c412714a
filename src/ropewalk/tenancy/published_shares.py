"""How much of an iteration models spend communicating, as far as that was published, and who resembles whom."""

from __future__ import annotations

ALL_REDUCE = "hierarchical-ring"
"""Where a trace does not say: rings inside servers and from server to server, as libraries run them."""
ALL_TO_ALL = "all-to-all"

SHARES: dict[str, dict[int, float]] = {
    "vgg16": {4: 0.25, 8: 0.23, 16: 0.16, 32: 0.10, 64: 0.07, 96: 0.04},
    "resnet50": {16: 0.04, 32: 0.05, 64: 0.04, 96: 0.03, 128: 0.02},
    "resnet101": {16: 0.05, 32: 0.05, 64: 0.04, 96: 0.02},
    "bert": {16: 0.12, 32: 0.08},
}
"""Part of an iteration spent in the all-reduce, by samples a GPU: the constants of the vClos authors' simulator."""
EXPERT_SHARES: dict[str, tuple[float, float]] = {
    "pangu": (0.0737, 0.258),
    "llama_7b": (0.069, 0.255),
    "llama2_7b": (0.011, 0.052),
    "llama2_13b": (0.0017, 0.058),
    "gpt2_13b": (0.047, 0.145),
}
"""Parts of an iteration spent in (all-reduce, all-to-all), from the same place; smaller exchanges are left out."""
RELATIVES = {
    "inception3": "resnet101", "inception4": "resnet101", "googlenet": "resnet50", "shufflenet_v2_x1_0": "resnet50",
    "roberta": "bert", "transformer": "bert",
}  # fmt: skip
"""Models of other traces that are not in the zoo, by the published one that they resemble most."""


def relative_of(model: str) -> str:
    """The published model that stands for this one; itself unless it is known by another name."""
    known = model.lower()
    return RELATIVES.get(known, known)


def is_published(model: str) -> bool:
    """Is the communication of this very model published?"""
    return model.lower() in SHARES or model.lower() in EXPERT_SHARES


def shares_of(model: str, batch: int | None) -> dict[str, float] | None:
    """Collective -> part of a quiet iteration, of a model that is known; the nearest published batch counts.

    >>> shares_of("VGG16", 20)
    {'hierarchical-ring': 0.16}
    """
    known = relative_of(model)
    if known in EXPERT_SHARES:
        return dict(zip((ALL_REDUCE, ALL_TO_ALL), EXPERT_SHARES[known], strict=True))
    if known not in SHARES:
        return None
    by_batch = SHARES[known]
    nearest = min(by_batch, key=lambda one: (abs(one - (batch or 32)), one))
    return {ALL_REDUCE: by_batch[nearest]}
