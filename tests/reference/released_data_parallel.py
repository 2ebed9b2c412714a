"""How DAPPLE's released tools judge data parallelism, which their plans are compared with.

Gradients of a layer are summed as soon as its backward pass is done, first come, first served, and what is left when
the first layer is done counts. Without that, VGG-19 on fast machines would be planned as a pipeline.

Sums hide only behind the last samples that a GPU passes before its update, so memory decides: a GPU that must take its
samples one by one hides little. The released tools guess that number from the outputs in the profile alone and compare
it with the global batch instead of a GPU's part of it (`samples_as_released`), so that data parallelism looks
perfect even for models that do not fit; `samples_at_once` is the number to judge by.
"""

from __future__ import annotations

import numpy as np

from ropewalk.errors import StrategyError, WorkloadError
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.profile import Profile

GPU_MEMORY_BYTES = 16e9
"""A V100 of the paper."""
COPIES_OF_WEIGHTS = 4
"""Weights, gradients and two moments of Adam, all float32."""


def plain_speedup(profile: Profile, machines: Machines, global_batch: int) -> float:
    """Over one GPU, when all gradients are summed behind the backward pass."""
    whole = profile.at_batch(global_batch)
    summed = machines.all_reduce(range(machines.gpus), whole.parameters(0, whole.states - 1))
    return whole.seconds / (whole.seconds / machines.gpus + summed)


def overlapped_speedup(profile: Profile, machines: Machines, global_batch: int, at_once: int) -> float:
    """Over one GPU, when sums hide behind the backward pass of the last `at_once` samples of each GPU.

    With sums s_i and backward passes that end at e_i, layers counted in the order of the backward pass, what is left
    at its end e is the longest of s_i + s_(i+1) + … - (e - e_i). Half of a layer's time is its backward pass.
    """
    whole = profile.at_batch(global_batch)
    layers = np.diff(whole.forward_s + whole.backward_s)
    if (layers < 0).any():
        raise WorkloadError(
            f"profile {profile.name} has states that are not one after the other: judge data parallelism by its layers "
            "in their order (profile_of)"
        )
    if at_once < 1:
        raise StrategyError(f"{profile.name} does not fit on a GPU, not for a single sample: cut it into stages")
    ends = np.cumsum(layers[::-1] * at_once / global_batch / 2)
    gpus = range(machines.gpus)
    sums = np.array([machines.all_reduce(gpus, size) for size in np.diff(whole.parameter_bytes)[::-1]])
    left = np.cumsum(sums[::-1])[::-1] - (ends[-1] - ends)
    return float(whole.seconds / (whole.seconds / machines.gpus + left.max()))


def samples_at_once(
    profile: Profile, gpus: int, global_batch: int, used_bytes: float, memory_bytes: float = GPU_MEMORY_BYTES
) -> int:
    """Samples that a GPU passes at once, an even part of its own; 0 where not one fits.

    `used_bytes` is what training takes on one GPU at the batch of the profile. What is not weights and their optimiser
    grows with the samples.
    """
    if used_bytes > memory_bytes:
        return 0
    fixed = COPIES_OF_WEIGHTS * profile.parameters(0, profile.states - 1)
    each = (used_bytes - fixed) / profile.batch
    # Where the optimiser is leaner than assumed, all that is known is that the batch of the profile did fit.
    fit = max(profile.batch, int((memory_bytes - fixed) / each)) if each > 0 else profile.batch
    return _even_part(global_batch // gpus, fit)


def samples_as_released(profile: Profile, global_batch: int, memory_bytes: float = GPU_MEMORY_BYTES) -> int:
    """The guess of the released tools: weights once, outputs of layers, against the global batch of all GPUs."""
    last = profile.states - 1
    fit = int((memory_bytes - profile.parameters(0, last)) / (profile.kept(0, last) / profile.batch))
    return _even_part(global_batch, fit) if fit > 0 else 0


def _even_part(samples: int, fit: int) -> int:
    """All samples, or the largest of their even parts that fits."""
    times = -(-samples // fit)
    while times < samples // 2 + 1 and samples % times:
        times += 1
    return samples // times
