"""What the kernel of a leaf has: policy rules and tables with our mark, and which uplinks are down.

Our mark is the protocol number of rules and routes. Every rule by source looks up a table of its own, whose number
holds the generation and the place of the GPU on its leaf; the metric of its route is the number of the job. So a leaf
says itself whose rule is whose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from typing import Any

from ropewalk.documents import parse_foreign_documents
from ropewalk.errors import InputError
from ropewalk.serve.rules.driver import DriverError

PROTOCOL = 82
KEEP_PREFERENCE, SEND_PREFERENCE = 20_000, 21_000
"""Of policy rules: the lower is looked at first, all of them before the main table."""
MAIN = 254
_MARK, _GENERATION_BITS, _PLACE_BITS = 0x52, 13, 11
MOST_GENERATION, MOST_PLACE = (1 << _GENERATION_BITS) - 1, (1 << _PLACE_BITS) - 1
HOLD = 1 << 31
"""Added to the metric of the route that holds traffic back while its link is down."""

READ = (
    "ip -N -json -4 rule show\n"
    f"ip -N -json -4 route show table all proto {PROTOCOL}\n"
    "ip -N -json -4 addr show\n"
)  # fmt: skip


@dataclass(frozen=True)
class KernelRule:
    """One policy rule with our mark."""

    preference: int
    source: str
    """Empty: from everybody."""
    destination: str
    table: int

    def line(self, verb: str) -> str:
        """What `ip` is told.

        >>> KernelRule(21_000, "10.0.0.1", "", 1379926016).line("add")
        'rule add pref 21000 from 10.0.0.1 lookup 1379926016 protocol 82'
        """
        start = f" from {self.source}" if self.source else ""
        end = f" to {self.destination}" if self.destination else ""
        return f"rule {verb} pref {self.preference}{start}{end} lookup {self.table} protocol {PROTOCOL}"


@dataclass(frozen=True)
class KernelRoute:
    """One route with our mark, in a table of ours or of others."""

    table: int
    destination: str
    next_hop: str
    """Empty for the route that holds traffic back."""
    metric: int

    @property
    def job(self) -> str:
        return f"j{self.metric & ~HOLD}"

    @property
    def holds(self) -> bool:
        """Does it hold traffic back?"""
        return self.metric >= HOLD

    def removal(self) -> str:
        """What `ip` is told to remove it."""
        kind = "" if self.next_hop else "blackhole "
        via = f" via {self.next_hop}" if self.next_hop else ""
        return f"route del {kind}{self.destination}{via} table {self.table} proto {PROTOCOL} metric {self.metric}"


@dataclass(frozen=True)
class LeafState:
    """Everything of ours on one leaf."""

    rules: tuple[KernelRule, ...]
    routes: tuple[KernelRoute, ...]
    down: tuple[IPv4Interface, ...] = ()
    """Addresses of interfaces that carry nothing."""

    def routes_in(self, table: int) -> tuple[KernelRoute, ...]:
        """The lowest metric is the one that counts."""
        return tuple(sorted((one for one in self.routes if one.table == table), key=lambda one: one.metric))

    def is_down(self, next_hop: IPv4Address) -> bool:
        return any(next_hop in one.network for one in self.down)


def table_of(generation: int, place: int) -> int:
    """The number of a table.

    >>> place_in(table_of(3, 17))
    (3, 17)
    """
    return _MARK << 24 | generation << _PLACE_BITS | place


def place_in(table: int) -> tuple[int, int] | None:
    """Generation and place on the leaf; None where the table is not ours."""
    if table >> 24 != _MARK:
        return None
    return table >> _PLACE_BITS & MOST_GENERATION, table & MOST_PLACE


def bare(prefix: str) -> str:
    """A prefix as the kernel writes it: one address has no length.

    >>> bare("10.0.0.1/32"), bare("10.0.0.0/31")
    ('10.0.0.1', '10.0.0.0/31')
    """
    return prefix.removesuffix("/32")


def parsed(text: str, device: str) -> LeafState:
    """The state that `READ` prints: three lists, one after the other."""
    try:
        rules, routes, addresses = parse_foreign_documents(text, "its lists", InputError)
        return LeafState(
            tuple(_rule(one) for one in rules if str(one.get("protocol")) == str(PROTOCOL)),
            tuple(_route(one) for one in routes if one),
            tuple(address for one in addresses if "LOWER_UP" not in one["flags"] for address in _addresses(one)),
        )
    except (InputError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise DriverError(
            f"{device}: the output of its `ip` cannot be read ({problem!r}): install iproute2 5.0 or later there"
        ) from None


def _rule(one: Mapping[str, Any]) -> KernelRule:
    return KernelRule(one["priority"], _prefix(one, "src"), _prefix(one, "dst"), int(one.get("table", 0)))


def _prefix(one: Mapping[str, Any], end: str) -> str:
    text = one.get(end, "all")
    if text == "all":
        return ""
    return bare(f"{text}/{one[f'{end}len']}") if f"{end}len" in one else str(text)


def _route(one: Mapping[str, Any]) -> KernelRoute:
    table = int(one.get("table", MAIN))
    return KernelRoute(table, one["dst"], one.get("gateway", ""), int(one.get("metric", 0)))


def _addresses(one: Mapping[str, Any]) -> list[IPv4Interface]:
    return [IPv4Interface(f"{each['local']}/{each['prefixlen']}") for each in one["addr_info"]]
