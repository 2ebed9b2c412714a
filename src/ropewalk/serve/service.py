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
from ropewalk.serve.store.unusable import reading
from ropewalk.serve.writer import Writer
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.plant import plant as make_plant
from ropewalk.tenancy.plant_document import plant_document
from ropewalk.tenancy.policies import POLICIES


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
        chosen = settings or Settings()
        chosen.check(plant)  # nothing is written under a policy that this plant cannot have
        store.initialise(plant, chosen)
        saved = store.load()
        assert saved is not None
    elif plant is not None and plant_document(plant) != plant_document(saved.plant):
        raise ClusterError(
            f"the store {store.name} holds another cluster ({saved.plant.name}, {saved.plant.gpus} GPUs): describe "
            "that one, or name another store"
        )
    with reading(store.engine):
        controller = restored(saved)
    warm_up(saved.settings.policy, saved.plant)
    return Writer(store, controller, saved.counters, clock=clock, fatal=fatal, retention=retention)


def warm_up(policy: str, like: Plant) -> None:
    """Compile or load what allocating under a policy needs, on a tiny plant of the same kind: no job waits for it."""
    tiny = make_plant(*_tiny(like))
    written = not (POLICIES.named(policy).optical and tiny.cores)
    controller = Controller.empty(tiny, Settings(policy, keep_links=written))
    server, unit = tiny.gpus_per_server, int(tiny.gpus_per_unit[0])
    first = tuple(f"server:{tiny.server_names[number]}" for number in tiny.first_server[: tiny.units].tolist())
    some: tuple[Operation, ...] = (
        Submit("part of a server", max(1, server // 2)), Submit("one unit", unit), Submit("two units", 2 * unit),
        Submit("half", tiny.gpus // 2), Resize("j3", unit), End("j1"), End("j2"), End("j3"), End("j4"),
        RulesGone("j3"), RulesGone("j4"), Drain(first), Submit("on single servers", 3 * server), Restore(first),
        End("j5"), Submit("waits for links", tiny.gpus), RulesGone("j5"),
        Fail((f"leaf:{tiny.leaf_names[0]}",)),
    )  # fmt: skip
    for operation in some:
        with suppress(Refused):
            controller.apply(operation, 0.0)


def _tiny(like: Plant) -> tuple[str, int]:
    """A fabric, and the GPUs of its servers, with the tiers and rails of a plant: policies ask for them."""
    if like.cores:
        return "fat-tree:8", 2
    return ("rails:32x4x4", 4) if like.rails > 1 else ("leaf-spine:8x4x4", 2)
