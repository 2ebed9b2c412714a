"""FRR's configuration as blocks, and rules in it: a `pbr-map` per leaf whose nexthop groups hold job and generation.

    nexthop-group ropewalk-j5-g1-10.0.0.1
     nexthop 172.16.0.1
    pbr-map ROPEWALK seq 1                      what stays on the leaf: `set vrf default` is the main table
     match dst-ip 10.0.0.0/26
     set vrf default
    pbr-map ROPEWALK seq 10                     10 + the place of the GPU on its leaf
     match src-ip 10.0.0.1/32
     set nexthop-group ropewalk-j5-g1-10.0.0.1
    interface swp1                              every port that a GPU of the leaf hangs on
     pbr-policy ROPEWALK

(`set vrf unchanged`, which reads better, leaves the kernel without a rule in FRR 8.4.)

A configuration is not yet a rule: now and then pbrd 8.4 finds a place of the map valid and does not install it when its
nexthop group changes. `show pbr map … detail` says so, and taking the place away and setting it again helps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ropewalk.serve.rules.rule import Foreign, Keep, Rule, Send

MAP = "ROPEWALK"
KEEP_SEQUENCE, FIRST_SEQUENCE, LAST_SEQUENCE = 1, 10, 700
_GROUP = re.compile(r"ropewalk-(?P<job>[A-Za-z0-9_]+)-g(?P<generation>\d+)-(?P<source>\d+\.\d+\.\d+\.\d+)", re.ASCII)
_INSTALLED = re.compile(r"^ *Seq: (\d+) rule: \d+\s+Installed: (\d+)\(\d+\) Reason: (.*?) *$", re.ASCII | re.MULTILINE)
"""A bit for each interface, a number, and what pbrd thinks of this place."""
_SEQUENCE = re.compile(rf"pbr-map {MAP} seq (\d+)", re.ASCII)


@dataclass(frozen=True)
class FrrState:
    """Our part of a configuration."""

    groups: dict[str, tuple[str, ...]]
    """Name -> lines inside."""
    sequences: dict[int, frozenset[str]]
    bound: frozenset[str]
    """Interfaces with our policy."""
    installed: frozenset[int] = frozenset()
    """Places of the map that the kernel has, for all these interfaces."""
    lost: frozenset[int] = frozenset()
    """Those that are valid and that it does not have."""


def group_name(rule: Rule) -> str:
    assert isinstance(rule.body, Send)
    return f"ropewalk-{rule.job}-g{rule.generation}-{rule.body.source}"


def state_in(text: str) -> FrrState:
    """Our blocks of a configuration, whoever wrote it."""
    groups, sequences, bound = {}, {}, set[str]()
    for head, lines in _blocks(text):
        kind, _, name = head.partition(" ")
        if kind == "nexthop-group" and name.startswith("ropewalk-"):
            groups[name] = lines
        elif found := _SEQUENCE.fullmatch(head):
            sequences[int(found[1])] = frozenset(lines)
        elif kind == "interface" and f"pbr-policy {MAP}" in lines:
            bound.add(name)
    held = {int(one[1]): (int(one[2]).bit_count() >= len(bound), one[3]) for one in _INSTALLED.finditer(text)}
    return FrrState(
        groups, sequences, frozenset(bound),
        installed=frozenset(number for number, (whole, _) in held.items() if whole),
        lost=frozenset(number for number, (whole, reason) in held.items() if not whole and reason == "Valid"),
    )  # fmt: skip


def rules_in(state: FrrState, device: str, ports: Sequence[str]) -> Iterator[Rule]:
    """Rules that are complete; what has our mark and is not understood is `Foreign`, with the line that removes it.

    A rule that FRR has lost before it reached the kernel does not count.
    """
    used = set()
    for number, lines in sorted(state.sequences.items()):
        rule = _read(state, device, number, lines, ports)
        if rule is not None:
            if number not in state.lost:
                yield rule
            used.add(group_name(rule) if isinstance(rule.body, Send) else "")
    for name in sorted(state.groups.keys() - used):
        yield Rule.on(device, Foreign(f"no nexthop-group {name}"))


def keep_lines(body: Keep) -> list[str]:
    return [f"match dst-ip {body.destination}", "set vrf default"]


def send_lines(rule: Rule) -> list[str]:
    assert isinstance(rule.body, Send)
    return [f"match src-ip {rule.body.source}/32", f"set nexthop-group {group_name(rule)}"]


def block(head: str, lines: Sequence[str]) -> list[str]:
    return [head, *(f" {line}" for line in lines), "exit"]


def sequence(number: int) -> str:
    return f"pbr-map {MAP} seq {number}"


def _read(
    state: FrrState, device: str, number: int, lines: frozenset[str], ports: Sequence[str]
) -> Rule | None:  # fmt: skip
    ours = {line.partition(" ")[0] + " " + line.split()[1]: line.split()[-1] for line in lines if len(line.split()) > 2}
    if number == KEEP_SEQUENCE and ours.keys() == {"match dst-ip", "set vrf"} and ours["set vrf"] == "default":
        whole = set(ports) <= state.bound
        return Rule.on(device, Keep(ours["match dst-ip"])) if whole else None
    group = _GROUP.fullmatch(ours.get("set nexthop-group", ""))
    source = ours.get("match src-ip", "").removesuffix("/32")
    if len(lines) != 2 or len(ours) != 2 or group is None or group["source"] != source:
        return Rule.on(device, Foreign(f"no {sequence(number)}"))
    hops = [line.split()[1] for line in state.groups.get(group[0], ()) if line.startswith("nexthop ")]
    body = Send(source, hops[0] if len(hops) == 1 else "")
    return Rule.on(device, body, group["job"], int(group["generation"]))


def _blocks(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Lines at the margin begin a block, the indented ones below belong to it."""
    head, lines = "", list[str]()
    for line in text.splitlines():
        if line[:1].isspace():
            lines.append(" ".join(line.split()))
        elif line.strip() and line.strip() not in ("!", "exit"):
            if head:
                yield head, tuple(lines)
            head, lines = " ".join(line.split()), []
    if head:
        yield head, tuple(lines)
