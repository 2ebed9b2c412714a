"""What jobs of a synthetic trace train and how they exchange: drawn for each job by its number alone.

The published mix: half of the jobs run halving-doubling if their size is a power of two, the next fifth and every other
size a ring, the rest all-to-all with a mixture-of-experts model. Each job has its own random numbers, made of the seed
and its number, so that a longer trace begins like a shorter one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ropewalk.choices import Choice, Choices
from ropewalk.errors import ClusterError

MixedModel = tuple[str, int | None]
"""(model, samples a step and GPU)."""

PUBLISHED_MODELS: dict[MixedModel, float] = {
    **{("vgg16", batch): 1.0 for batch in (4, 8, 16, 32, 64, 96)},
    **{("resnet50", batch): 1.0 for batch in (16, 32, 64, 96, 128)},
    **{("resnet101", batch): 1.0 for batch in (16, 32, 64, 96)},
    **{("bert", batch): 1.0 for batch in (16, 32)},
}
"""The models and batches whose shares of communication are published, each as likely as the others."""
PUBLISHED_EXPERTS: dict[MixedModel, float] = {("pangu", None): 1.0}


@dataclass(frozen=True)
class Mix:
    """Shares of collectives and weights of models."""

    halving_doubling: float = 0.5
    ring: float = 0.2
    models: Mapping[MixedModel, float] = field(default_factory=lambda: PUBLISHED_MODELS)
    """What jobs with an all-reduce train, with weights."""
    experts: Mapping[MixedModel, float] = field(default_factory=lambda: PUBLISHED_EXPERTS)
    """What jobs with an all-to-all train, with weights."""

    def __post_init__(self) -> None:
        if min(self.halving_doubling, self.ring) < 0 or self.halving_doubling + self.ring > 1 + 1e-12:
            raise ClusterError(
                f"shares of {self.halving_doubling:g} halving-doubling and {self.ring:g} rings are not possible: "
                "give 0 or more each and at most 1 together"
            )
        for what, weights in (("models", self.models), ("experts", self.experts)):
            if not weights or min(weights.values()) < 0 or not sum(weights.values()) > 0:
                raise ClusterError(f"the {what} of a mix need weights of 0 or more, and one above: fix them")

    def draw(self, seed: int, number: int, gpus: int) -> tuple[str, MixedModel]:
        """(collective, what is trained) of one job.

        >>> Mix().draw(0, 5, gpus=24)[0]
        'ring'
        """
        kind, which = np.random.default_rng([seed, number]).random(2).tolist()
        if gpus & (gpus - 1):
            return "ring", _pick(self.models, which)
        if kind < self.halving_doubling:
            return "halving-doubling", _pick(self.models, which)
        if kind < self.halving_doubling + self.ring:
            return "ring", _pick(self.models, which)
        return "all-to-all", _pick(self.experts, which)


def _pick(weights: Mapping[MixedModel, float], at: float) -> MixedModel:
    names = list(weights)
    sums = np.cumsum([weights[name] for name in names])
    return names[int(np.searchsorted(sums, at * sums[-1], side="right"))]


MIXES = Choices[Choice[Callable[[], Mix]]](
    "mix",
    (
        Choice("published", Mix, "half halving-doubling, a fifth rings, the rest all-to-alls of a mixture of experts, "
               "over the models of the vClos study"),
        Choice("dense", lambda: Mix(halving_doubling=5 / 7, ring=2 / 7), "the same without mixtures of experts"),
    ),
    error=ClusterError,
    plural="mixes",
)  # fmt: skip
"""What jobs may be said to train whose trace does not say it."""


def mix_named(name: str) -> Mix:
    """A mix by its name.

    >>> mix_named("dense").ring < 0.3
    True
    """
    return MIXES.named(name).make()
