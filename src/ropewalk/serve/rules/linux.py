"""The driver of leafs that run Linux: policy routing, `ip rule from NIC lookup TABLE`, told by `ip -batch`.

A rule by source has a table of its own with one route over its cable. Behind it stands a route that drops: where the
cable dies, the kernel takes the first route away, and traffic waits for its next allocation instead of crossing links
of other jobs. With `dead_links=share` it falls back to the leaf's ordinary routes at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from ropewalk.documents.numbers import is_count
from ropewalk.export.cluster.addresses import AddressPlan
from ropewalk.serve.rules.driver import DriverError, Present
from ropewalk.serve.rules.linux_state import (
    HOLD,
    KEEP_PREFERENCE,
    MAIN,
    MOST_GENERATION,
    MOST_PLACE,
    PROTOCOL,
    READ,
    SEND_PREFERENCE,
    KernelRule,
    LeafState,
    bare,
    parsed,
    place_in,
    table_of,
)
from ropewalk.serve.rules.reach import Reach
from ropewalk.serve.rules.rule import UNKNOWN, Body, Foreign, Keep, Rule, Send
from ropewalk.tenancy.plant import Plant


@dataclass(frozen=True)
class LinuxDriver:
    """Policy rules of every leaf of a plant."""

    plant: Plant
    addresses: AddressPlan
    reach: Reach
    waits: bool = True
    """Does traffic over a dead cable wait for its next allocation?"""
    name: str = "linux"

    @property
    def settles_s(self) -> float:
        return self.reach.settles_s

    def devices(self) -> tuple[str, ...]:
        return self.plant.leaf_names

    def handles(self, body: Body) -> bool:
        return isinstance(body, Keep | Send)

    def present(self, device: str) -> Present:
        state = self._state(device)
        return Present(tuple(rules_in(state, device)), tuple(self._dead(state, device)))

    def apply(self, device: str, rules: Sequence[Rule]) -> None:
        state = self._state(device)
        lines = [line for rule in rules for line in self._lines(state, rule)]
        self._tell(device, list(dict.fromkeys(lines)))

    def remove(self, device: str, rules: Sequence[Rule]) -> None:
        state = self._state(device)
        self._tell(device, [line for rule in rules for line in removal(state, rule)])

    def _state(self, device: str) -> LeafState:
        return parsed(self.reach.run(device, READ), device)

    def _tell(self, device: str, lines: Sequence[str]) -> None:
        if lines:  # a line that fails does not keep those behind it from being tried
            self.reach.run(device, "ip -force -batch - <<'END'\n" + "\n".join(lines) + "\nEND\n")

    def _lines(self, state: LeafState, rule: Rule) -> Iterator[str]:
        """New route, then the rule that leads to it, then away with what had its place."""
        if isinstance(rule.body, Keep):
            wanted = _kernel_keep(rule.body)
        else:
            wanted, hop, metric = self._kernel_send(rule)
            table = wanted.table
            if self.waits:
                yield f"route replace blackhole default table {table} proto {PROTOCOL} metric {HOLD | metric}"
            if not state.is_down(IPv4Address(hop)):  # the kernel refuses routes over dead cables
                yield f"route replace default via {hop} table {table} proto {PROTOCOL} metric {metric}"
            yield from (one.removal() for one in state.routes_in(table) if one.metric & ~HOLD != metric)
        if wanted not in state.rules:
            yield wanted.line("add")
        for other in state.rules:
            if (other.source, other.destination) == (wanted.source, wanted.destination) and other != wanted:
                yield from _without(state, other, but=wanted.table)

    def _kernel_send(self, rule: Rule) -> tuple[KernelRule, str, int]:
        """The policy rule, its next hop and the metric that names its job."""
        assert isinstance(rule.body, Send)
        number = rule.job[1:]
        if not (rule.job.startswith("j") and is_count(number) and 0 < int(number) < HOLD):
            raise DriverError(f"job {rule.job!r} has no numeric id for routes: name jobs j1, j2, …")
        gpu = self.addresses.gpu_at[IPv4Address(rule.body.source)]
        place = int(self.plant.place_on_leaf[gpu])
        if rule.generation > MOST_GENERATION or place > MOST_PLACE:
            raise DriverError(
                f"{rule.device}: generation {rule.generation} of GPU {place} of the leaf does not fit into a table "
                f"number (at most {MOST_GENERATION} and {MOST_PLACE}): end the job and submit it again"
            )
        table = table_of(rule.generation, place)
        return KernelRule(SEND_PREFERENCE, rule.body.source, "", table), rule.body.next_hop, int(number)

    def _dead(self, state: LeafState, device: str) -> Iterator[tuple[str, str]]:
        leaf = self.plant.leaf_names.index(device)
        spines = {
            spine
            for (at, spine, _), hop in self.addresses.next_hops.items()
            if at == leaf and state.down and state.is_down(hop)
        }
        yield from ((device, self.plant.spine_names[spine]) for spine in sorted(spines))


def rules_in(state: LeafState, device: str) -> Iterator[Rule]:
    """Rules as the kernel has them; what has our mark and no meaning is `Foreign`, with the line that removes it."""
    used = set()
    for one in state.rules:
        used.add(one.table)
        yield _read(state, one, device)
    for table in sorted({one.table for one in state.routes}):
        routes = state.routes_in(table)
        for route in routes:
            if table not in used or route.job != routes[0].job:
                yield Rule.on(device, Foreign(route.removal()))


def removal(state: LeafState, rule: Rule) -> Iterator[str]:
    """The lines that take a rule away; none where it is gone."""
    if isinstance(rule.body, Foreign):
        yield rule.body.text
        return
    for one in state.rules:
        if _read(state, one, rule.device) == rule:
            yield from _without(state, one)


def _without(state: LeafState, one: KernelRule, but: int = MAIN) -> Iterator[str]:
    """A policy rule away, then its table, unless another rule needs it."""
    yield one.line("del")
    shared = sum(other.table == one.table for other in state.rules) > 1
    if one.table not in (but, MAIN) and not shared:
        yield from (route.removal() for route in state.routes_in(one.table))


def _read(state: LeafState, one: KernelRule, device: str) -> Rule:
    if one == _kernel_keep(Keep(one.destination)) and one.destination:
        network = IPv4Network(one.destination)
        return Rule.on(device, Keep(str(network)))
    found, routes = place_in(one.table), state.routes_in(one.table)
    if found is None or one.preference != SEND_PREFERENCE or one.destination or not _is_address(one.source):
        return Rule.on(device, Foreign(one.line("del")))
    if not routes:  # its cable is down, or somebody took the route away: whose rule it was is not known any more
        return Rule.on(device, Send(one.source, ""), UNKNOWN, found[0])
    return Rule.on(device, Send(one.source, routes[0].next_hop), routes[0].job, found[0])


def _kernel_keep(body: Keep) -> KernelRule:
    return KernelRule(KEEP_PREFERENCE, "", bare(body.destination), MAIN)


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True
