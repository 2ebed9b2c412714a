"""States taken together where there are too many to try every cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.pipeline.profile import Profile


@dataclass(frozen=True)
class StateGroups:
    """Consecutive states that a search does not cut between; group g is states bounds[g] … bounds[g + 1] - 1."""

    bounds: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.bounds) - 1

    def at_bounds(self, sums: Floats) -> Floats:
        """Running sums over states as running sums over groups."""
        return np.ascontiguousarray(sums[list(self.bounds)])

    def at_ends(self, values: Floats) -> Floats:
        """Of values by state, those of the last state of each group."""
        return np.ascontiguousarray(values[np.array(self.bounds[1:]) - 1])


def every_state(profile: Profile) -> StateGroups:
    """A group for each state."""
    return StateGroups(tuple(range(profile.states + 1)))


def grouped(profile: Profile, most: int) -> StateGroups:
    """At most `most` groups that take about as long as each other, cut where little crosses.

    >>> from ropewalk.pipeline.profile import from_states
    >>> even = from_states("even", 1, forward_s=[1] * 9, backward_s=[1] * 9, parameter_bytes=[0] * 9)
    >>> grouped(even, 3).bounds
    (0, 3, 6, 9)
    """
    if profile.states <= most:
        return every_state(profile)
    elapsed = (profile.forward_s + profile.backward_s)[1:-1]
    total = float(profile.forward_s[-1] + profile.backward_s[-1])
    ideal = np.arange(1, most) * total / most
    near = np.clip(np.searchsorted(elapsed, ideal), 0, profile.states - 2)
    reach = total / most / 4
    bounds = {0, profile.states}
    for wanted, place in zip(ideal.tolist(), near.tolist(), strict=True):
        window = np.flatnonzero(np.abs(elapsed - wanted) <= reach)
        window = window if len(window) else np.array([place])
        crossing = profile.crossing_bytes[window]
        # Of the cuts that little crosses, the one closest to where it should be.
        least = window[crossing <= crossing.min() * (1 + 1e-9)]
        bounds.add(int(least[np.argmin(np.abs(elapsed[least] - wanted))]) + 1)
    return StateGroups(tuple(sorted(bounds)))
