"""A rule: what one device of the network has to do for one job, whichever device it is and whoever tells it.

A rule says whose it is (job and generation of its allocation), where it stands (a device, and a key that is there
once) and what it does (its body). Wanted rules are made from allocations; present ones are read from devices. The two
are equal where nothing has to be done.

>>> rule = Rule("j1", 1, "leaf0", "from 10.0.0.1", Send("10.0.0.1", "172.16.0.1"))
>>> rule.canonical()[:53]
b'{"body":{"kind":"send","next_hop":"172.16.0.1","sourc'
>>> Rule.from_document(rule.as_document()) == rule
True
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from ropewalk.errors import ClusterError
from ropewalk.records import plain, record

NOBODY = ""
"""The job of rules that belong to a device and not to a job."""
UNKNOWN = "?"
"""The job of rules that do not say whose they are any more."""
Fibre = tuple[str, str]
"""Leaf and optical switch: a leaf has one fibre to each."""


@dataclass(frozen=True)
class Keep:
    """A leaf forwards traffic to its own subnet as always, whoever sends it."""

    kind: ClassVar[str] = "keep"
    destination: str

    @property
    def key(self) -> str:
        return f"to {self.destination}"


@dataclass(frozen=True)
class Send:
    """A leaf sends what comes from one NIC over one cable."""

    kind: ClassVar[str] = "send"
    source: str
    next_hop: str
    """The spine's end of the cable; empty where a device has the rule without it."""

    @property
    def key(self) -> str:
        return f"from {self.source}"


@dataclass(frozen=True)
class Join:
    """An optical switch joins the fibre of a leaf with one of a spine, or with that of another leaf."""

    kind: ClassVar[str] = "join"
    leaf: str
    far_end: str

    @property
    def key(self) -> str:
        return f"fibre of {self.leaf}"


@dataclass(frozen=True)
class Relay:
    """A spine sends what comes in over some circuits for some NICs out over one circuit."""

    kind: ClassVar[str] = "relay"
    arrives_over: tuple[Fibre, ...]
    destinations: tuple[str, ...]
    leaves_over: Fibre

    @property
    def key(self) -> str:
        leaf, switch = self.leaves_over
        return f"to {leaf} through {switch}"


@dataclass(frozen=True)
class Foreign:
    """Something with our mark that no rule of ours looks like, as the device says it; it is never wanted."""

    kind: ClassVar[str] = "foreign"
    text: str

    @property
    def key(self) -> str:
        return f"unknown: {self.text}"


Body = Keep | Send | Join | Relay | Foreign
_BODIES: dict[str, type[Body]] = {one.kind: one for one in (Keep, Send, Join, Relay, Foreign)}


@dataclass(frozen=True)
class Rule:
    """What a device does for a job, or for all of them (`NOBODY`)."""

    job: str
    generation: int
    """Of the allocation it was made from: a job that gets other links gets another generation."""
    device: str
    key: str
    body: Body

    @classmethod
    def on(cls, device: str, body: Body, job: str = NOBODY, generation: int = 0) -> Rule:
        """The rule with the key of its body."""
        return cls(job, generation, device, body.key, body)

    @property
    def order(self) -> tuple[str, str, str, int]:
        return self.device, self.key, self.job, self.generation

    def as_document(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**plain(self), "body": {"kind": self.body.kind, **plain(self.body)}}

    def canonical(self) -> bytes:
        """The same bytes for the same rule, always."""
        return json.dumps(self.as_document(), sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_document(cls, document: object, subject: str = "rule") -> Rule:
        """A rule that `as_document` wrote, strictly checked."""
        if not isinstance(document, dict) or not isinstance(document.get("body"), dict):
            raise ClusterError(
                f"{subject}: it is not a rule: give an object with job, generation, device, key and body"
            )
        body = dict(document["body"])
        kind = body.pop("kind", None)
        if not isinstance(kind, str) or kind not in _BODIES:
            raise ClusterError(f"{subject}: body.kind is {kind!r}: use one of {', '.join(_BODIES)}")
        read = record(_BODIES[kind], body, f"{subject}: body", ClusterError)
        return record(cls, {**document, "body": read}, subject, ClusterError)
