"""Every seating of a small space: the judge of the search."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ropewalk.codesign.seats import Ledger, Places, SeatSpace
from ropewalk.errors import StrategyError

MOST_SEATINGS = 200_000


def every_seating(space: SeatSpace, most: int = MOST_SEATINGS) -> Iterator[Places]:
    """All seatings that fit in memory, in the order of the space's options."""
    if space.size > most:
        raise StrategyError(
            f"the space has {space.size:.3g} seatings, more than the {most} of an exhaustive search: "
            "search heuristically, or use fewer servers or layers"
        )
    for places in product(*space.options):
        if Ledger(space, places).held.max() <= space.room_bytes:
            yield places
