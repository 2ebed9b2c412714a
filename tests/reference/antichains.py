"""States of a model that is no chain, as PipeDream (Narayanan et al., SOSP 2019) and DAPPLE see it.

Stages over them need not be layers in a row, which is what a strategy runs: they serve to compare with what those
planners print.

A state is a set of layers that may be finished while the others have not begun: closed under what its layers read, and
named by its antichain, the layers of it that no other one reads. States follow each other by one more layer and what
that still needs; laid out in topological order they are the row over which those planners cut. A chain has a state for
each layer, parallel branches have one for every pair of places in them, so their number can explode.

Two states of the row need not contain each other; `States.contains` says which do. Only cuts behind states that contain
each other make sense, and differences of costs between others may be negative.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from ropewalk.device.pricer import Pricer
from ropewalk.errors import WorkloadError
from ropewalk.pipeline.masks import members
from ropewalk.pipeline.profile import Profile, bytes_of_elements, profile_of
from ropewalk.pipeline.released import States
from ropewalk.workload.workload import Workload

MOST_STATES = 4096
"""More of them are refused: the search over pairs of states would take hours."""


def antichain_profile(workload: Workload, prices: Pricer | None = None, most: int = MOST_STATES) -> States:
    """The profile of a workload over its antichain states.

    What crosses a cut is the sum over the layers of the augmented antichain: it counts a tensor as soon as one branch
    has done with it and another has not, which is more than `profile_of` counts.
    """
    layers = profile_of(workload, prices)
    graph = _Graph(workload)
    row = graph.row(most)
    inside = np.array([[state >> layer & 1 for layer in range(layers.states)] for state in row], np.float64)
    handed = bytes_of_elements(workload, prices) * np.array([layer.output_elements for layer in workload.layers])
    augmented = [graph.augmented(graph.antichain(state)) for state in row]
    profile = Profile(
        layers.name,
        layers.batch,
        tuple(" + ".join(layers.names[layer] for layer in graph.antichain(state)) for state in row),
        _sums(inside, layers.forward_s),
        _sums(inside, layers.backward_s),
        _sums(inside, layers.parameter_bytes),
        _sums(inside, layers.kept_bytes),
        np.array([handed[state].sum() for state in augmented]),
        layers.source,
    )
    sets = np.array([[below & ~above == 0 and below != above for above in row] for below in row])
    return States(profile, sets)


def _sums(inside: NDArray[np.float64], before: NDArray[np.float64]) -> NDArray[np.float64]:
    """Costs of all layers of each state: sums over states before, since every state holds all that it needs."""
    return np.concatenate([[0.0], inside @ np.diff(before)])


class _Graph:
    """Layers as bits, with what they read and are read by, directly and not."""

    def __init__(self, workload: Workload) -> None:
        self.name = workload.name
        self.reads = [layer.inputs for layer in workload.layers]
        self.readers: list[list[int]] = [[] for _ in self.reads]
        self.above: list[int] = []
        """What each layer needs, directly or not."""
        for number, reads in enumerate(self.reads):
            needed = 0
            for source in reads:
                self.readers[source].append(number)
                needed |= self.above[source] | 1 << source
            self.above.append(needed)

    def antichain(self, state: int) -> tuple[int, ...]:
        """The layers of a state that no other one of it needs."""
        needed = 0
        for layer in members(state):
            needed |= self.above[layer]
        return members(state & ~needed)

    def augmented(self, antichain: tuple[int, ...]) -> list[int]:
        """The antichain behind the layers whose output somebody outside one of its members' own history still reads."""
        extra = 0
        for member in antichain:
            history = self.above[member] | 1 << member
            for layer in members(self.above[member]):
                if any(not history >> reader & 1 for reader in self.readers[layer]):
                    extra |= 1 << layer
        return [*members(extra), *antichain]

    def following(self, state: int) -> list[int]:
        """The states with one more layer, in the order of the layers that feed it."""
        found = []
        for layer in self.augmented(self.antichain(state)):
            for reader in self.readers[layer]:
                more = state | self.above[reader] | 1 << reader
                if more != state and more not in found:
                    found.append(more)
        return found

    def row(self, most: int) -> list[int]:
        """All states in topological order, by depth-first search that goes where breadth-first search found them."""
        first = 1
        follow: dict[int, list[int]] = {}
        waiting = deque([first])
        while waiting:
            state = waiting.popleft()
            if state in follow:
                continue
            if len(follow) == most:
                raise WorkloadError(
                    f"{self.name} has more than {most} sets of layers between which it could be cut, since its "
                    "branches run side by side: merge the layers of parallel branches (a simplified profile), or plan "
                    "over its layers in their order with profile_of"
                )
            follow[state] = self.following(state)
            waiting.extend(follow[state])
        return _reverse_postorder(first, follow)


def _reverse_postorder(first: int, follow: dict[int, list[int]]) -> list[int]:
    """Depth first without recursion: deep models have more states than Python has stack."""
    done: list[int] = []
    seen = {first}
    path = [(first, iter(follow[first]))]
    while path:
        state, rest = path[-1]
        child = next((found for found in rest if found not in seen), None)
        if child is None:
            done.append(state)
            path.pop()
        else:
            seen.add(child)
            path.append((child, iter(follow[child])))
    return done[::-1]
