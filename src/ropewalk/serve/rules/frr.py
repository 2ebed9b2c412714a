"""The driver of leafs that run FRR: policy-based routing (`pbrd`), told by `vtysh`, or as files for it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from ropewalk.errors import ClusterError
from ropewalk.export.cluster.addresses import AddressPlan
from ropewalk.serve.rules.driver import DriverError, Present
from ropewalk.serve.rules.folder import RuleFormat
from ropewalk.serve.rules.frr_config import (
    FIRST_SEQUENCE,
    KEEP_SEQUENCE,
    LAST_SEQUENCE,
    MAP,
    FrrState,
    block,
    group_name,
    keep_lines,
    rules_in,
    send_lines,
    sequence,
    state_in,
)
from ropewalk.serve.rules.reach import Reach
from ropewalk.serve.rules.rule import Body, Foreign, Keep, Rule, Send
from ropewalk.tenancy.plant import Plant

SETTLES_S, PAUSE_S = 1.0, 0.05
HEAD = "! rules of running jobs; job and generation are in the names of nexthop groups"


@dataclass(frozen=True)
class FrrLeafs:
    """How rules of the leafs of a plant are said to FRR."""

    plant: Plant
    addresses: AddressPlan

    def check(self) -> None:
        """Policies are bound to ports, and a map has so many places."""
        missing = [gpu for gpu in range(self.plant.gpus) if gpu not in self.addresses.ports]
        if missing:
            raise ClusterError(
                f"{len(missing)} NICs of {self.plant.name} have no port in the address table, which FRR needs for its "
                "policies: fill in the column `port`"
            )
        most = LAST_SEQUENCE - FIRST_SEQUENCE + 1
        if int(self.plant.gpus_per_leaf.max()) > most:
            raise ClusterError(f"a leaf of {self.plant.name} has more than {most} GPUs, the limit of a pbr-map of FRR")

    @property
    def format(self) -> RuleFormat:
        return RuleFormat(self.written, self.read, (Keep, Send), ".conf")

    def ports(self, device: str) -> tuple[str, ...]:
        """Every port of a leaf that a GPU hangs on."""
        leaf = self.plant.leaf_names.index(device)
        gpus = (gpu for gpu in range(self.plant.gpus) if self.plant.leaf_of_gpu[gpu] == leaf)
        return tuple(dict.fromkeys(self.addresses.ports[gpu] for gpu in gpus))

    def written(self, device: str, rules: Sequence[Rule], _: str = "") -> str:
        """The whole part of a leaf's configuration that is ours."""
        empty = FrrState({}, {}, frozenset())
        return "\n".join([HEAD, *(line for rule in rules for line in self.setting(empty, device, rule))]) + "\n"

    def read(self, device: str, text: str) -> list[Rule]:
        return list(rules_in(state_in(text), device, self.ports(device)))

    def setting(self, state: FrrState, device: str, rule: Rule) -> Iterator[str]:
        """Lines that put a rule in place; a sequence number takes over what it had before at once."""
        if isinstance(rule.body, Keep):
            yield from _sequence(state, KEEP_SEQUENCE, keep_lines(rule.body))
            for port in self.ports(device):
                yield from block(f"interface {port}", [f"pbr-policy {MAP}"])
            return
        assert isinstance(rule.body, Send)
        name = group_name(rule)
        others = [line for line in state.groups.get(name, ()) if line != f"nexthop {rule.body.next_hop}"]
        lines = [*(f"no {line}" for line in others), f"nexthop {rule.body.next_hop}"]
        yield from block(f"nexthop-group {name}", lines)
        yield from _sequence(state, self.number(rule.body), send_lines(rule))
        yield from (
            f"no nexthop-group {group}"
            for group in state.groups
            if group.endswith(f"-{rule.body.source}") and group != name
        )

    def removing(self, state: FrrState, device: str, rule: Rule) -> Iterator[str]:
        """Lines that take exactly this rule away."""
        if isinstance(rule.body, Foreign):
            yield rule.body.text
        elif isinstance(rule.body, Keep):
            for port in sorted(state.bound):
                yield from block(f"interface {port}", [f"no pbr-policy {MAP}"])
            yield f"no {sequence(KEEP_SEQUENCE)}"
        else:
            name = group_name(rule)
            holders = [number for number, lines in state.sequences.items() if f"set nexthop-group {name}" in lines]
            yield from (f"no {sequence(number)}" for number in holders)
            if name in state.groups:
                yield f"no nexthop-group {name}"

    def number(self, body: Body) -> int:
        """The place of a rule in the map."""
        if not isinstance(body, Send):
            return KEEP_SEQUENCE
        gpu = self.addresses.gpu_at[IPv4Address(body.source)]
        return FIRST_SEQUENCE + int(self.plant.place_on_leaf[gpu])


@dataclass(frozen=True)
class FrrDriver:
    """FRR on every leaf, through its `vtysh`."""

    leafs: FrrLeafs
    reach: Reach
    vtysh: str = "vtysh"
    name: str = "frr"

    @property
    def settles_s(self) -> float:
        return self.reach.settles_s

    def devices(self) -> tuple[str, ...]:
        return self.leafs.plant.leaf_names

    def handles(self, body: Body) -> bool:
        return isinstance(body, Keep | Send)

    def present(self, device: str) -> Present:
        return Present(tuple(rules_in(self._state(device), device, self.leafs.ports(device))))

    def apply(self, device: str, rules: Sequence[Rule]) -> None:
        state = self._state(device)
        self._tell(device, [line for rule in rules for line in self.leafs.setting(state, device, rule)])
        for again in (True, False):
            state = self._settled(device, {self.leafs.number(rule.body) for rule in rules})
            if not state.lost or not again:
                return
            self._tell(device, [line for rule in rules for line in self.leafs.setting(state, device, rule)])

    def remove(self, device: str, rules: Sequence[Rule]) -> None:
        state = self._state(device)
        self._tell(device, [line for rule in rules for line in self.leafs.removing(state, device, rule)])

    def _settled(self, device: str, numbers: set[int]) -> FrrState:
        """What is there when the kernel has these places of the map: FRR tells it a moment after it has answered."""
        until = time.monotonic() + SETTLES_S
        while True:
            state = self._state(device)
            unseen = not state.installed and not state.lost
            if unseen or numbers <= state.installed or time.monotonic() > until:
                return state
            time.sleep(PAUSE_S)

    def _state(self, device: str) -> FrrState:
        shown = f"-c 'show running-config' -c 'show pbr map {MAP} detail'"
        return state_in(self.reach.run(device, f"{self.vtysh} {shown}\n"))

    def _tell(self, device: str, lines: Sequence[str]) -> None:
        said = self.reach.run(device, f"{self.vtysh} -f /dev/stdin <<'END' 2>&1\n" + "\n".join(lines) + "\nEND\n")
        refused = [line for line in said.splitlines() if "% " in line]
        if refused:
            raise DriverError(f"{device}: FRR refused {refused[0].strip()!r}: check that pbrd runs there")


def _sequence(state: FrrState, number: int, lines: Sequence[str]) -> Iterator[str]:
    """One place of the map; what somebody else put there, or what was lost there, is taken away first."""
    kinds = {line.split()[1] for line in lines}
    if number in state.lost or any(line.split()[1] not in kinds for line in state.sequences.get(number, ())):
        yield f"no {sequence(number)}"
    yield from block(sequence(number), lines)
