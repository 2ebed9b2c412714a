"""Circuits of optical switches, a document per switch, and what spines do with them.

The document has the circuits of a switch and, numbered, the last steps that led to them: what is torn down always
stands before what is set up, and a fibre is only set up when it is free. Whoever drives the mirrors follows the steps
from the number it has reached. Circuits of running jobs are in no step but their own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ropewalk.documents import parse_json
from ropewalk.errors import ClusterError
from ropewalk.serve.rules.folder import RuleFormat
from ropewalk.serve.rules.neutral import NEUTRAL
from ropewalk.serve.rules.rule import Join, Relay, Rule
from ropewalk.tenancy.optical.plant import OpticalPlant

FORMAT = "ropewalk-switch-circuits"
VERSION = 1
MOST_STEPS = 256
TEAR_DOWN, SET_UP = "tear down", "set up"


@dataclass(frozen=True)
class Switches:
    """Documents of the optical switches of a plant."""

    plant: OpticalPlant

    def formats(self) -> dict[str, RuleFormat]:
        """Switches have circuits; spines that forward packets have rules between them."""
        switches = self.plant.spine_names[self.plant.packet_spines :]
        spines = self.plant.spine_names[: self.plant.packet_spines]
        circuits = RuleFormat(self.written, read, (Join,))
        relays = RuleFormat(NEUTRAL.written, NEUTRAL.read, (Relay,))
        return dict.fromkeys(switches, circuits) | dict.fromkeys(spines, relays)

    def written(self, device: str, rules: Sequence[Rule], before: str) -> str:
        """The next document: every fibre in one circuit at most, and the steps from the one before."""
        self._check(device, rules)
        old: dict[str, Any] = _document(device, before) if before else {"step": 0, "steps": []}
        there = {_ends(rule): rule for rule in (read(device, before) if before else ())}
        wanted = {_ends(rule): rule for rule in rules}
        steps = [(TEAR_DOWN, rule) for key, rule in there.items() if key not in wanted]
        steps += [(SET_UP, rule) for key, rule in wanted.items() if key not in there]
        numbered = [_step(old["step"] + at, verb, rule) for at, (verb, rule) in enumerate(steps, 1)]
        document = {
            "format": FORMAT,
            "version": VERSION,
            "switch": device,
            "ready_after_s": self.plant.reconfiguration_s,
            "circuits": [_entry(rule) for rule in rules],
            "step": old["step"] + len(steps),
            "steps": [*old["steps"], *numbered][-MOST_STEPS:],
        }
        return json.dumps(document, indent=2) + "\n"

    def _check(self, device: str, rules: Iterable[Rule]) -> None:
        names = self.plant.spine_names
        switch = names.index(device) - self.plant.packet_spines
        ends: Counter[str] = Counter()
        for rule in rules:
            assert isinstance(rule.body, Join)
            ends.update((rule.body.leaf, rule.body.far_end))
        for end, count in ends.items():
            spine = end in names[: self.plant.packet_spines]
            most = int(self.plant.spine_fibres[names.index(end), switch]) if spine else 1
            if count > most:
                raise ClusterError(
                    f"{end} has {most} fibres to {device} but would be in {count} circuits: remove the previous one"
                )


def read(device: str, text: str) -> list[Rule]:
    """The circuits of a document, checked."""
    subject = f"circuits of {device}"
    found = []
    for at, one in enumerate(_document(device, text)["circuits"]):
        try:
            rule = Rule.on(device, Join(str(one["leaf"]), str(one["far_end"])), str(one["job"]), int(one["generation"]))
        except (KeyError, TypeError, ValueError) as problem:
            raise ClusterError(f"{subject}: circuit {at} cannot be read ({problem!r}): fix it") from None
        found.append(rule)
    return found


def _document(device: str, text: str) -> dict[str, Any]:
    subject = f"circuits of {device}"
    document = parse_json(text, subject, ClusterError)
    wanted = {"format": FORMAT, "version": VERSION, "switch": device}
    if (
        not isinstance(document, dict)
        or any(document.get(key) != value for key, value in wanted.items())
        or not isinstance(document.get("step"), int)
        or not all(isinstance(document.get(key), list) for key in ("circuits", "steps"))
    ):
        raise ClusterError(
            f"{subject}: it is not the {FORMAT} document of this switch: give the one written by ropewalk"
        )
    return document


def _ends(rule: Rule) -> tuple[str, str]:
    """What the mirrors know of a circuit: a job that keeps one under another generation keeps its light."""
    assert isinstance(rule.body, Join)
    return rule.body.leaf, rule.body.far_end


def _entry(rule: Rule) -> dict[str, object]:
    leaf, far_end = _ends(rule)
    return {"leaf": leaf, "far_end": far_end, "job": rule.job, "generation": rule.generation}


def _step(number: int, verb: str, rule: Rule) -> dict[str, object]:
    return {"step": number, "do": verb, **_entry(rule)}
