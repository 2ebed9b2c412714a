"""What a pipeline is planned for: a model with its prices, or a profile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ropewalk.device.device import precision
from ropewalk.device.pricer import pricer
from ropewalk.errors import InputError, WorkloadError
from ropewalk.pipeline.on_cluster import Trained
from ropewalk.pipeline.profile import Profile, is_measured, profile_of
from ropewalk.pipeline.state_prices import PricedStates, WorkloadPrices
from ropewalk.strategy.memory import OPTIMISER_BYTES
from ropewalk.workload.imports.profile import from_profile
from ropewalk.workload.source import open_workload

FLOAT_BYTES = 4.0
MEASURED_PRECISION = "fp32"
"""Profiles hold sizes of 32-bit numbers."""
PROFILES = (".txt",)
"""Files of measured layers (DAPPLE, PipeDream)."""


@dataclass(frozen=True)
class PricedSubject:
    """A model with its prices, and what the GPU that it runs on holds."""

    model: Profile | PricedStates
    trained: Trained
    """The same for simulations."""
    state_multiple: float
    """Bytes of weights, gradients and optimiser for each byte of weights."""
    memory_bytes: float
    """Of the GPU."""

    @property
    def profile(self) -> Profile:
        """The model's states and what they hand on."""
        return self.model if isinstance(self.model, Profile) else self.model.profile


def is_profile(text: str) -> bool:
    return Path(text).suffix.lower() in PROFILES


def open_subject(
    text: str, *, device: str, dtype: str, optimiser: str, sequence: int | None, profile_batch: int | None
) -> PricedSubject:
    """A profile as it was measured, or a model priced for the device."""
    precision(dtype)  # a profile needs none, but a slip should not go unseen
    if optimiser not in OPTIMISER_BYTES:
        raise InputError(f"there is no optimiser {optimiser!r}: use one of {', '.join(OPTIMISER_BYTES)}")
    if is_profile(text):
        if sequence is not None:
            raise WorkloadError(f"{text} was measured with sequences of one length: leave --seq {sequence} out")
        workload = from_profile(text, batch=profile_batch)
        trained = Trained(text if profile_batch is None else workload, workload, MEASURED_PRECISION, optimiser)
        multiple = _multiple(FLOAT_BYTES, OPTIMISER_BYTES[optimiser])
        return PricedSubject(
            profile_of(workload), trained, multiple, pricer(device, MEASURED_PRECISION).device.memory_bytes
        )
    if profile_batch is not None:
        raise InputError(f"{text} is not a profile: leave --profile-batch {profile_batch} out")

    workload = open_workload(text, None, sequence)
    if is_measured(workload):
        raise InputError(f"{text} has measured layers only: write it as a profile (.txt), which keeps its batch")
    prices = pricer(device, dtype).sustained(workload)
    multiple = _multiple(prices.precision.element_bytes, OPTIMISER_BYTES[optimiser])
    trained = Trained(text, workload, dtype, optimiser, sequence)
    return PricedSubject(WorkloadPrices(workload, prices), trained, multiple, prices.device.memory_bytes)


def _multiple(element_bytes: float, optimiser_bytes: float) -> float:
    """Weights, gradients and moments, with weights of 32 bits beside where training is in 16.

    >>> _multiple(4.0, 8.0), _multiple(2.0, 8.0)
    (4.0, 8.0)
    """
    master = 4.0 if element_bytes < FLOAT_BYTES and optimiser_bytes else 0.0
    return (2 * element_bytes + optimiser_bytes + master) / element_bytes
