"""The clock of a device, said behind its name: `h100@700W` is held to a limit, `h100@none` to none.

A GPU lowers its clock under the power limit that it is sold with, so whoever asks about training gets that limit unless
they say another. A bare name in a plan says nothing of a limit, as plans did before: it runs at full clock.
"""

from __future__ import annotations

from ropewalk.device.device import DEVICES, HELD_TO, NO_LIMIT, device
from ropewalk.device.pricer import TABLE_SUFFIXES
from ropewalk.errors import InputError


def held_to(name: str, power: str | None = None) -> str:
    """A device held to a power limit: to that of its data sheet unless given; `none` is full clock.

    A table of measurements holds at the clock it was made at. Where nobody measured what work costs a device in energy,
    it runs at full clock, and says so. Rates that were measured under the limit hold without it being said.

    >>> held_to("h100"), held_to("h100", "500W"), held_to("h100", "none"), held_to("h100@650W")
    ('h100@700W', 'h100@500W', 'h100@none', 'h100@650W')
    >>> held_to("a100"), held_to("my-gpu.csv")
    ('a100', 'my-gpu.csv')
    """
    if power is None:
        return _as_sold(name)
    if HELD_TO in name:
        raise InputError(f"{name} has a power limit already: leave --power {power} out")
    if is_table(name):
        raise InputError(
            f"{name} is a table of measurements, valid only at the clock they were made at: leave --power {power} out"
        )
    held = f"{name}{HELD_TO}{power}"
    device(held)
    return held


def at_full_clock(name: str) -> str:
    """A device at full clock, unless its name says a limit.

    >>> at_full_clock("h100"), at_full_clock("h100@650W"), at_full_clock("a100")
    ('h100@none', 'h100@650W', 'a100')
    """
    return f"{name}{HELD_TO}{NO_LIMIT}" if _has_limit(name) else name


def _as_sold(name: str) -> str:
    if not _has_limit(name):
        return name
    power = device(name).power
    assert power is not None
    return f"{name}{HELD_TO}{power.limit:g}W"


def _has_limit(name: str) -> bool:
    """Is this the bare name of a device whose energies are known, and whose rates are those of its full clock?"""
    power = device(name).power if name.lower() in DEVICES else None
    return power is not None and not power.kept


def is_table(name: str) -> bool:
    """Is this a table that `ropewalk profile` wrote?"""
    return name.lower().endswith(TABLE_SUFFIXES)


def device_in_words(name: str) -> str:
    """A device as people read it.

    >>> device_in_words("h100@700W"), device_in_words("h100@none"), device_in_words("a100")
    ('h100 at 700 W', 'h100 at full clock', 'a100')
    """
    plain, _, limit = name.partition(HELD_TO)
    if not limit:
        return name
    if limit.lower() == NO_LIMIT:
        return f"{plain} at full clock"
    return f"{plain} at {device(name).held_to:g} W"
