"""The pages that `ropewalk serve` serves: the planner, the studies and the live cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ropewalk.cli.ui import MEMORY_LIMIT, TIME_LIMIT, desk_of


@dataclass(frozen=True)
class Pages:
    """What an application needs to serve them; nothing where they are turned off."""

    handlers: tuple[Any, ...] = ()
    lifespan: tuple[Any, ...] = ()
    shared: dict[str, Any] = field(default_factory=dict)


def pages(*, wanted: bool) -> Pages:
    """The pages; their workers start with the first question."""
    if not wanted:
        return Pages()
    from ropewalk.ui.application import while_open
    from ropewalk.ui.live_routes import LIVE_ROUTES
    from ropewalk.ui.routes import UI_ROUTES

    desk = desk_of(None, 1, TIME_LIMIT.default, MEMORY_LIMIT.default)
    return Pages((*UI_ROUTES, *LIVE_ROUTES), (while_open(desk, ahead=False),), {"desk": desk})
