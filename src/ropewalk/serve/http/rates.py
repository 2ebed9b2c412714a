"""How often somebody may ask: a bucket for everyone who does, and never more buckets than fit."""

from __future__ import annotations

from collections import OrderedDict

MOST_KEYS = 10_000
"""Addresses or tokens that are remembered; the one that was silent longest is forgotten, with a full bucket again."""


class Rates:
    """Token buckets of equal size, by key. Time is handed in, so that tests need none.

    >>> rates = Rates(per_second=10, burst=2)
    >>> [rates.wait_s("a", now) for now in (0.0, 0.0, 0.0, 0.15)]
    [0.0, 0.0, 0.1, 0.0]
    """

    def __init__(self, per_second: float, burst: float | None = None) -> None:
        self.per_second = per_second
        self.burst = burst if burst is not None else max(1.0, 2 * per_second)
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, key: str, now: float, cost: float = 1.0) -> float:
        """Take from the bucket: 0 where that went well, else the time after which it would."""
        level = self._level(key, now)
        if level >= cost:
            self._keep(key, level - cost, now)
            return 0.0
        self._keep(key, level, now)
        return (cost - level) / self.per_second

    def is_empty(self, key: str, now: float) -> float:
        """As `wait_s`, without taking anything."""
        level = self._level(key, now)
        return 0.0 if level >= 1.0 else (1.0 - level) / self.per_second

    def __len__(self) -> int:
        return len(self._levels)

    def _level(self, key: str, now: float) -> float:
        known = self._levels.get(key)
        if known is None:
            return self.burst
        level, since = known
        return min(self.burst, level + max(0.0, now - since) * self.per_second)

    def _keep(self, key: str, level: float, now: float) -> None:
        self._levels[key] = (level, now)
        self._levels.move_to_end(key)
        if len(self._levels) > MOST_KEYS:
            self._levels.popitem(last=False)


def address_key(address: str) -> str:
    """Whom an address counts for: IPv4 alone, IPv6 by its /64, which one customer has whole.

    >>> address_key("127.0.0.1"), address_key("2001:db8:1:2:3:4:5:6"), address_key("::1")
    ('127.0.0.1', '2001:db8:1:2::/64', '::/64')
    """
    if ":" not in address:
        return address
    from ipaddress import IPv6Address, IPv6Network

    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((found, 64), strict=False))
