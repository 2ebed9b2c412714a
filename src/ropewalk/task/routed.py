"""Routes for rounds in lockstep: of all pairs that the rounds use, or of one sender where that says it all."""

from __future__ import annotations

from ropewalk.fabric import Fabric
from ropewalk.routing import Router, Routes
from ropewalk.routing.one_sender import OneSender, one_sender
from ropewalk.task.lockstep import Lockstep


def route_rounds(rounds: Lockstep, fabric: Fabric, router: Router, *, symmetry: bool = True) -> Routes | OneSender:
    """What `simulate_rounds` needs; without `symmetry`, always the routes of all pairs.

    >>> from ropewalk.collectives import mesh_all_reduce
    >>> from ropewalk.fabric import Torus
    >>> from ropewalk.routing import dimension
    >>> from ropewalk.task import lockstep
    >>> torus = Torus((4, 4)).build()
    >>> type(route_rounds(lockstep(mesh_all_reduce(16), 64e6), torus, dimension())).__name__
    'OneSender'
    """
    if symmetry and rounds.is_every_pair_of(fabric.hosts):
        sender = one_sender(fabric, router)
        if sender is not None:
            return sender
    return router(fabric, *rounds.all_pairs())
