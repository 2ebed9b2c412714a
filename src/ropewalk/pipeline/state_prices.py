"""What the states of a model cost a GPU that gets some samples of a micro-batch, alone or sharing them with others.

A measured profile scales with the samples. A workload is priced anew for every number of samples and every split of
its operators, so that small shares cost what small kernels cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ropewalk.arrays import Floats
from ropewalk.device.pricer import Pricer, pricer
from ropewalk.errors import StrategyError
from ropewalk.pipeline.profile import Profile, bytes_of_elements, profile_of
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.opaque import Measured
from ropewalk.workload.operator import Split
from ropewalk.workload.workload import Workload

MEETINGS_A_PASS = 2
"""How often GPUs that share a measured state add up its output in each pass: a transformer layer does it twice."""


@dataclass(frozen=True, eq=False)
class StatePrices:
    """S+1 sums over the states before, for one GPU: those of states first..last are `[last + 1] - [first]`."""

    forward_s: Floats
    backward_s: Floats
    weight_s: Floats
    """What of the backward pass makes gradients of weights alone."""
    parameter_bytes: Floats
    kept_bytes: Floats
    met_forward_bytes: Floats
    """Bytes that GPUs which share the samples add up in the forward pass."""
    met_backward_bytes: Floats
    meetings: Floats
    """How often they do so, in each pass."""

    @property
    def seconds(self) -> float:
        """Both passes through all states."""
        return float(self.forward_s[-1] + self.backward_s[-1])


class PricedStates(Protocol):
    """A model whose states have prices for any share."""

    @property
    def profile(self) -> Profile:
        """Names of the states, and what crosses a cut for `profile.batch` samples."""

    def at(self, samples: float, tensor: int = 1) -> StatePrices:
        """What one of `tensor` GPUs pays that get `samples` samples together."""


class _Known:
    """Prices that are made once for every number of samples and of GPUs that share them."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._known: dict[tuple[float, int], StatePrices] = {}

    @property
    def profile(self) -> Profile:
        return self._profile

    def at(self, samples: float, tensor: int = 1) -> StatePrices:
        if (samples, tensor) not in self._known:
            self._known[samples, tensor] = self._priced(samples, tensor)
        return self._known[samples, tensor]

    def _priced(self, samples: float, tensor: int) -> StatePrices:
        raise NotImplementedError


class MeasuredPrices(_Known):
    """Times and activations in proportion to the samples.

    States with weights spend `weight_share` of their backward pass on gradients of weights alone.

    GPUs that share samples divide time, weights and activations evenly and add up the output of every state with
    weights twice in each pass, as Megatron does for a transformer layer.
    """

    def __init__(self, profile: Profile, weight_share: float = Measured.weight_share) -> None:
        super().__init__(profile)
        self._weight_share = weight_share

    def _priced(self, samples: float, tensor: int) -> StatePrices:
        profile = self._profile
        part = samples / profile.batch
        meets = (np.diff(profile.parameter_bytes) > 0) * float(MEETINGS_A_PASS if tensor > 1 else 0)
        met = _sums(meets * profile.crossing_bytes * part)
        late = np.where(np.diff(profile.parameter_bytes) > 0, np.diff(profile.backward_s) * self._weight_share, 0.0)
        return StatePrices(
            profile.forward_s * (part / tensor),
            profile.backward_s * (part / tensor),
            _sums(late * (part / tensor)),
            profile.parameter_bytes / tensor,
            profile.kept_bytes * (part / tensor),
            met,
            met,
            _sums(meets),
        )


class WorkloadPrices(_Known):
    """Layers of a workload on a device, split by tensor parallelism where asked."""

    def __init__(self, workload: Workload, prices: Pricer | None = None) -> None:
        self.workload = workload
        self.prices = prices or pricer()
        super().__init__(profile_of(workload, self.prices))

    def _priced(self, samples: float, tensor: int) -> StatePrices:
        if samples != int(samples):
            raise StrategyError(
                f"a GPU cannot run {samples:g} samples of {self.workload.name}: ask for whole samples, or plan from a "
                "measured profile"
            )
        sized = self.workload.at_batch(int(samples))
        element = bytes_of_elements(sized, self.prices)
        split = Split(tensor=tensor)
        layers = [layer.split(split) for layer in sized.layers]
        leave = [_met(layer.operators, split, Meeting.LEAVE) for layer in layers]
        enter = [_met(layer.operators, split, Meeting.ENTER) for layer in layers]
        times: dict[object, tuple[float, float, float]] = {}
        for layer in layers:
            if layer.operators not in times:
                works = self.prices.forward, self.prices.backward, self.prices.weight
                forward, backward, weight = (work(layer.operators) for work in works)
                times[layer.operators] = forward, backward, weight
        seconds = [times[layer.operators] for layer in layers]
        return StatePrices(
            _sums([forward for forward, _, _ in seconds]),
            _sums([backward for _, backward, _ in seconds]),
            _sums([weight for _, _, weight in seconds]),
            _sums([layer.trained_parameters() * element for layer in layers]),
            _sums([layer.saved_bytes(element) for layer in layers]),
            _sums([sum(elements) * element for elements in leave]),
            _sums([sum(elements) * element for elements in enter]),
            _sums([float(len(elements)) for elements in leave]),
        )


def _met(operators: tuple[object, ...], split: Split, meeting: Meeting) -> list[int]:
    """Elements that are added up each time operators enter or leave a split region."""
    if split.tensor == 1:
        return []
    met = [op for op in operators if isinstance(op, Exchange) and op.meeting is meeting]
    return [op.elements for op in met if op.meets(split)]


def _sums(values: ArrayLike) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.asarray(values, np.float64))])
