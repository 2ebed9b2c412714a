"""Which collectives a step runs on a network, where that was left open (`auto`), and what they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from hashlib import sha256

import numpy as np

from ropewalk.collectives.choice import CollectiveChoice, collective_choice
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.fabric import Fabric
from ropewalk.progress import Say
from ropewalk.task.auto import FASTER, Chosen, TriedChoice, fastest
from ropewalk.task.estimate import purposes_of
from ropewalk.task.expand import Expansion
from ropewalk.task.kinds import missing_acts
from ropewalk.task.step import Act, Step
from ropewalk.training.network import NetworkUse, expanded, run_on, use_on
from ropewalk.units import show_percent


@dataclass(frozen=True)
class GroupCollective:
    """What the groups of some purposes run for one act."""

    purposes: tuple[str, ...]
    act: str
    name: str
    groups: int
    ranks: int
    links: str
    """Whose links it takes: `routed` like everything else, its group's `own`, or the fabric `shared` with others."""
    promise: float | None
    """Bytes/s of each group while all of them run, where it was made for the network."""
    digest: str
    """A fingerprint of what was made: the same question gives the same one."""


def settled(
    step: Step, fabric: Fabric, use: NetworkUse, say: Say = lambda now: None
) -> tuple[NetworkUse, Chosen | None]:
    """The same use of the network with every collective named; None where nothing was left open.

    Candidates are compared by flows. Where packets are asked for, rings are run packet by packet beside what was
    chosen, and stay unless that is faster there, too.
    """
    asked = collective_choice(use.named())
    if not asked.is_open:
        return use, None
    written = replace(use_on(step, fabric, use), choice=asked)
    made = written.made
    in_flows = replace(use, level=replace(use.level, level="flow"), record_rates=False)

    def seconds(choice: CollectiveChoice, talk: NetworkUse = in_flows) -> float:
        say(f"trying collectives: {choice}")
        expansion = expanded(step, replace(use_on(step, fabric, talk), choice=choice, made=made))
        return run_on(step, expansion, fabric, talk).trace.makespan

    chosen = fastest(step, written, seconds)
    rings = collective_choice(chosen.tried[0].algorithm)
    if use.level.level != "flow" and chosen.choice != rings:
        at_level = [TriedChoice(str(one), seconds(one, use)) for one in (rings, chosen.choice)]
        if at_level[1].seconds >= at_level[0].seconds * FASTER:
            note = f"{chosen.choice} is faster than {rings} by flows, but not at level {use.level.level}"
            chosen = replace(chosen, choice=rings, seconds=at_level[0].seconds, notes=(*chosen.notes, note))
    return replace(use, algorithm=str(chosen.choice)), chosen


def collectives_of(step: Step, expansion: Expansion) -> tuple[GroupCollective, ...]:
    """What every group runs, kind by kind."""
    found = []
    for kind in expansion.kinds:
        if kind.act is Act.BARRIER or kind.members.shape[1] < 2:
            continue
        purposes = tuple(step.streams[stream] for stream in np.unique(step.stream[kind.operation]).tolist())
        groups, ranks = kind.members.shape
        found.append(
            GroupCollective(purposes, kind.act.words, kind.name, groups, ranks, kind.links, kind.promise, kind.digest())
        )
    return tuple(found)


def notes_of(step: Step, use: NetworkUse, chosen: Chosen | None) -> tuple[str, ...]:
    """What whoever asked for collectives should know."""
    choice = collective_choice(use.named())
    notes = list(missing_acts(step, choice, COLLECTIVES))
    absent = [purpose for purpose, _ in choice.by_purpose if purpose not in purposes_of(step)]
    notes += [f"This step has no collectives for {', '.join(absent)}."] if absent else []
    if chosen is not None:
        rings = chosen.tried[0]
        gain = (
            f", {show_percent(chosen.seconds / rings.seconds - 1, 2, signed=True)}"
            if chosen.seconds < rings.seconds
            else ""
        )
        notes.append(f"Collectives by simulation of {len(chosen.tried)} choices: {chosen.choice}{gain}.")
        notes += chosen.notes
    return tuple(notes)


def digest_of(found: tuple[GroupCollective, ...]) -> str:
    """One fingerprint of everything that the groups run."""
    return sha256(" ".join(one.digest for one in found).encode()).hexdigest()


def as_json(found: tuple[GroupCollective, ...], chosen: Chosen | None) -> dict[str, object]:
    """What runs, and what was tried to find it."""
    return {
        "group_collectives": [asdict(one) for one in found],
        "algorithms_tried": [asdict(one) for one in chosen.tried] if chosen is not None else [],
    }
