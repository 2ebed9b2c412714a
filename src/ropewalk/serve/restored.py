"""From what a store has kept to a controller."""

from __future__ import annotations

from ropewalk.serve.controller import Controller
from ropewalk.serve.store.store import Saved
from ropewalk.tenancy.parts import drained_of


def restored(saved: Saved) -> Controller:
    """The controller that a store has kept: every job is placed anew, and double use is refused."""
    plant = saved.settings.rule.plant(saved.plant)
    return Controller.from_documents(
        saved.plant,
        saved.settings,
        (*saved.jobs, *saved.ended),
        drained=drained_of(plant, saved.parts["drained"]),
        failed=drained_of(plant, saved.parts["failed"]),
        counters=saved.counters,
        now=saved.at,
    )
