"""Exact symmetry of an exchange between all pairs, without writing the pairs out: the flows of one sender are all.

Translations of the fabric take any host to any other, links to links like them, and routes to routes (`OneSender`).
The flows of host 0 are then one of each class: N flows by the same translation, which cross each link of a kind equally
often and end together. Their quotient is N-1 classes of flows on the kinds of links, a `System` like any other, which
colour refinement may fold further (the two ways round a ring are alike).
"""

from __future__ import annotations

import numpy as np

from ropewalk.errors import GraphError
from ropewalk.routing.one_sender import OneSender
from ropewalk.sim.flow.rounds import system_of_classes
from ropewalk.sim.flow.symmetry import fold
from ropewalk.sim.flow.system import System
from ropewalk.task import Lockstep


def fold_every_pair(rounds: Lockstep, sender: OneSender) -> System:
    """The quotient of rounds between all pairs of hosts over the translations of the fabric."""
    fabric, pairs, kinds = sender.fabric, sender.routes.pairs, len(rounds.arrows)
    if not rounds.is_every_pair_of(fabric.hosts):
        raise GraphError(
            f"{rounds.name} is not an exchange between all pairs of the {fabric.hosts} hosts of {fabric.name}, "
            "so the routes of one sender are not enough: route all its pairs"
        )
    start, kind_of_link, crossed = sender.usage_of_kinds()
    # Every class of slots is the same one: all hosts send alike and receive alike.
    here = np.zeros(pairs, np.int64)
    capacity = np.zeros(sender.translations.kinds)
    capacity[sender.translations.kind] = fabric.bandwidth
    system = system_of_classes(
        rounds,
        1,
        [(here, here)] * kinds,
        np.repeat([arrows.chunk_bytes for arrows in rounds.arrows], pairs),
        np.tile(rounds.start_up_s + sender.routes.latency(), kinds),
        np.repeat([arrows.added_by_each / rounds.mixer.rate for arrows in rounds.arrows], pairs),
        (
            np.concatenate([start[:-1] + turn * start[-1] for turn in range(kinds)] + [[kinds * start[-1]]]),
            np.tile(kind_of_link, kinds),
            np.tile(crossed, kinds),
        ),
        capacity,
    )
    folding = fold(system)
    return system if folding is None else folding.quotient
