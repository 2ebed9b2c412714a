"""Taking switches out: what enters a switch and leaves it again becomes a direct way, and no member loses anything.

A vertex that can send exactly what it can receive can be split off completely: every arc into it pairs up with arcs out
of it so that all flows that trees need remain (Mader 1982; Bang-Jensen, Frank and Jackson 1995; ForestColl section on
switches). A whole guess is tried first and checked by one flow to every member. Where all guesses fail, pairs are
split one by one, each as far as flows allow: a pair that is split by d narrows some cuts by exactly d, so that what
is missing after splitting all of it says how far it can go.
"""

from __future__ import annotations

from collections.abc import Callable

from ropewalk.collectives.forest.demand import CapacityGraph
from ropewalk.collectives.forest.proposals import Guess, guesses
from ropewalk.errors import ProofError


def split_switches(wiring: CapacityGraph, order: list[int]) -> None:
    """Take vertices out in the given order, changing the wiring until only members have arcs."""
    for switch in order:
        _split_one(wiring, switch)


def split_by_guesses(wiring: CapacityGraph, order: list[int], *, rails: bool = True) -> bool:
    """Take vertices out as long as guesses are right, rails among them or not; whether all of them were."""
    return all(_guessed(wiring, switch, rails) is None for switch in order)


def _split_one(wiring: CapacityGraph, switch: int) -> None:
    wrong = _guessed(wiring, switch, True)
    if wrong is not None:
        _split_pair_by_pair(wiring, switch, wrong)


def _guessed(wiring: CapacityGraph, switch: int, rails: bool) -> Guess | None:
    """Split a switch by the first guess that is right; if none is, the first of them."""
    arriving = {u: amount for (u, v), amount in wiring.capacity.items() if v == switch}
    leaving = {v: amount for (u, v), amount in wiring.capacity.items() if u == switch}
    if sum(arriving.values()) != sum(leaving.values()):
        raise ProofError(
            f"vertex {switch} receives {sum(arriving.values())} and sends {sum(leaving.values())}: trim it to the same"
        )
    members = set(wiring.members)
    server = _servers(wiring, switch, arriving)
    wrong: Guess = {}
    for guess in guesses(arriving, leaving, members.__contains__, server, wiring.capacity if rails else None):
        if wiring.shortfall(_changes(switch, guess, arriving, leaving), wiring.members) is None:
            _apply(wiring, switch, guess)
            _drop(wiring, switch)
            return None
        wrong = wrong or guess
    return wrong


def _servers(wiring: CapacityGraph, switch: int, arriving: dict[int, int]) -> Callable[[int], int]:
    """A number that two ports share if a way between them is faster than any through this switch."""
    fastest = max(arriving.values(), default=0)
    group = list(range(wiring.vertices))

    def leader(vertex: int) -> int:
        while group[vertex] != vertex:
            group[vertex] = group[group[vertex]]
            vertex = group[vertex]
        return vertex

    for (u, v), amount in wiring.capacity.items():
        if switch not in (u, v) and amount > fastest:
            group[leader(u)] = leader(v)
    return leader


def _changes(switch: int, guess: Guess, arriving: dict[int, int], leaving: dict[int, int]) -> Guess:
    """Capacities once the switch is gone: all of its arcs away, the guessed ways there."""
    changes = {(u, switch): -amount for u, amount in arriving.items()}
    changes |= {(switch, t): -amount for t, amount in leaving.items()}
    for ends, amount in guess.items():
        changes[ends] = changes.get(ends, 0) + amount
    return changes


def _apply(wiring: CapacityGraph, switch: int, guess: Guess) -> None:
    """Join the ways into the switch with those out of it."""
    for (u, t), amount in guess.items():
        ins, outs = wiring.take((u, switch), amount), wiring.take((switch, t), amount)
        while ins:
            (first, some), (second, others) = ins.pop(), outs.pop()
            both = min(some, others)
            wiring.add(first + second[1:], both)
            if some > both:
                ins.append((first, some - both))
            if others > both:
                outs.append((second, others - both))


def _drop(wiring: CapacityGraph, switch: int) -> None:
    for ends in [ends for ends in wiring.capacity if switch in ends]:
        wiring.take(ends, wiring.capacity[ends])


def _split_pair_by_pair(wiring: CapacityGraph, switch: int, guess: Guess) -> None:
    """Split pairs as far as they go, guessed ones first by as much as guessed, then all, then ways back."""
    ports_in = [u for (u, v) in wiring.capacity if v == switch]
    ports_out = [v for (u, v) in wiring.capacity if u == switch]
    every = [(u, t) for u in ports_in for t in ports_out]
    plan = [(ends, amount) for ends, amount in guess.items()]
    plan += [((u, t), -1) for u, t in every if u != t] + [((u, t), -1) for u, t in every if u == t]
    for (u, t), wanted in plan:
        most = min(wiring.capacity.get((u, switch), 0), wiring.capacity.get((switch, t), 0))
        amount = _as_far_as_flows_allow(wiring, switch, u, t, most if wanted < 0 else min(most, wanted))
        if amount:
            _apply(wiring, switch, {(u, t): amount})
    left = [ends for ends in wiring.capacity if switch in ends]
    if left:
        raise ProofError(f"vertex {switch} could not be split off: arcs {left[:4]} are left")


def _as_far_as_flows_allow(wiring: CapacityGraph, switch: int, u: int, t: int, most: int) -> int:
    sinks = wiring.members
    while most and sinks:
        changes = {(u, switch): -most, (switch, t): -most}
        if u != t:
            changes[u, t] = most
        short = wiring.shortfall(changes, sinks)
        if short is None:
            break
        most -= wiring.total - short.flow
        # This member's narrowest cut has now exactly what it needs, and earlier members had enough already.
        sinks = sinks[short.position + 1 :]
    return most
