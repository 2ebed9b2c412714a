"""A controller over its store: opened together, so that what runs is what was kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from ropewalk.errors import ClusterError
from ropewalk.serve.controller import Controller
from ropewalk.serve.operation import Drain, End, Fail, Operation, Resize, Restore, RulesGone, Submit
from ropewalk.serve.outcome import Refused
from ropewalk.serve.restored import restored
from ropewalk.serve.settings import Settings
from ropewalk.serve.store import Store
from ropewalk.serve.store.retention import Retention
from ropewalk.serve.writer import Writer
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.plant import plant as make_plant
from ropewalk.tenancy.plant_document import plant_document


def open_writer(
    store: Store,
    plant: Plant | None = None,
    settings: Settings | None = None,
    *,
    clock: Callable[[], float] = time.time,
    fatal: Callable[[BaseException], None] | None = None,
    retention: Retention | None = None,
) -> Writer:
    """The writer of a store: an empty store is about this plant from now on, any other must be about the same.

    Settings are those of an empty store; a store that was used keeps its own until an operation changes them.
    """
    saved = store.load()
    if saved is None:
        if plant is None:
            raise ClusterError(f"the store {store.name} is empty: describe the cluster (--cluster or --fabric)")
        store.initialise(plant, settings or Settings())
        saved = store.load()
        assert saved is not None
    elif plant is not None and plant_document(plant) != plant_document(saved.plant):
        raise ClusterError(
            f"the store {store.name} holds another cluster ({saved.plant.name}, {saved.plant.gpus} GPUs): describe "
            "that one, or name another store"
        )
    controller = restored(saved)
    warm_up(saved.settings.policy)
    return Writer(store, controller, saved.counters, clock=clock, fatal=fatal, retention=retention)


def warm_up(policy: str) -> None:
    """Compile or load what allocating under a policy needs, on a tiny cluster, so that no job waits for it."""
    tiny = Controller.empty(make_plant("leaf-spine:4x8x8", gpus_per_server=4), Settings(policy, keep_links=True))
    some: tuple[Operation, ...] = (
        Submit("one server", 2), Submit("one leaf", 8), Submit("several leafs", 16), Resize("j3", 8),
        Drain(("server:server6",)), Restore(("server:server6",)),
        End("j1"), End("j2"), End("j3"), Submit("no links", 32), RulesGone("j3"), Fail(("leaf:leaf0",)),
    )  # fmt: skip
    for operation in some:
        with suppress(Refused):
            tiny.apply(operation, 0.0)
