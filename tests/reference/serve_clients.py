"""Clients of a service that may die at any moment: they ask, remember what was acknowledged, and ask again."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from serve_ledger import Known, Ledger
from serve_process import Gone, Line

SIZES = (1, 2, 4, 4, 8, 8, 16, 32)
TOO_BUSY = (408, 429, 503)
"""A service that is too busy to answer in time says nothing about what becomes of the request."""
KEPT_ANSWERS = 20
"""Answers of every client that must stay the same."""


@dataclass
class Request:
    """Something that was asked; with the same key it is the same request, however often it is sent."""

    kind: str
    path: str
    body: dict[str, Any]
    key: str
    job: Known | None = None


@dataclass
class Client:
    """One client, with jobs of its own; the first one also drains parts."""

    number: int
    ledger: Ledger
    seed: int
    servers: int
    asked: int = 0
    acknowledged: int = 0
    lost: int = 0
    mine: dict[str, Known] = field(default_factory=dict)
    open: Request | None = None
    """What was asked last and not answered."""
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.seed} {self.number}")
        self.answers: list[tuple[Request, bytes]] = []

    def run(self, socket: Path, stop: Event) -> None:
        """Ask until the service is gone."""
        self._look_back()
        try:
            line = Line(socket)
        except Gone:
            return
        try:
            if self.open is not None and self.chance.random() < 0.8:
                self._send(line, self.open)
            self.open = None
            while not stop.is_set():
                self._again(line) if self.answers and self.chance.random() < 0.03 else self._send(line, self._next())
        except Gone:
            self.lost += 1
        finally:
            line.close()

    def _look_back(self) -> None:
        """Jobs that ended or never were are forgotten; the ledger has looked at what is there."""
        self.mine = {name: known for name, known in self.mine.items() if name in self.ledger.jobs}

    def _next(self) -> Request:
        self.asked += 1
        key = f"c{self.number}-{self.asked}"
        if self.number == 0 and self.chance.random() < 0.2:
            return self._part(key)
        known = [one for one in self.mine.values() if one.id is not None and one.outcome == {None}]
        if len(known) < self.chance.randint(1, 6):
            body = {
                "name": f"job-{key}", "gpus": self.chance.choice(SIZES), "requeue": True,
                "expected_s": self.chance.choice([None, 60.0]), "priority": self.chance.choice([0.0, 0.0, 1.0]),
            }  # fmt: skip
            return Request("submit", "/v1/jobs", body, key)
        job = self.chance.choice(known)
        kind = self.chance.choice(["end", "end", "end", "cancel", "resize", "bind"])
        body = {
            "end": {"outcome": self.chance.choice(["done", "failed"])},
            "resize": {"gpus": self.chance.choice(SIZES)},
            "bind": {"external": f"slurm:{key}"},
        }.get(kind, {})
        return Request(kind, f"/v1/jobs/{job.id}/{kind}", body, key, job)

    def _part(self, key: str) -> Request:
        kind = self.chance.choice(["drain", "restore"])
        part = f"server:server{self.chance.randrange(self.servers)}"
        return Request(kind, f"/v1/{kind}", {"parts": [part]}, key)

    def _send(self, line: Line, request: Request) -> None:
        """Ask; from now until the answer both may be true, before and after."""
        self.open = request
        self._expect(request)
        status, answer = line.ask("POST", request.path, request.body, request.key)
        self.counts[f"{request.kind} {status}"] += 1
        if status in TOO_BUSY:
            raise Gone(f"answered {status}")
        self.open = None
        self.acknowledged += 1
        self._heed(request, status, answer)

    def _again(self, line: Line) -> None:
        """The same request again must have the same answer, to the byte, also after a restart."""
        request, before = self.chance.choice(self.answers)
        status, answer = line.ask("POST", request.path, request.body, request.key)
        if status in TOO_BUSY:
            raise Gone(f"answered {status}")
        self.counts["asked again"] += 1
        if answer != before:
            self.ledger.wrong(f"key {request.key} was answered {before[:200]!r} and then {answer[:200]!r}")

    def _expect(self, request: Request) -> None:
        job, body = request.job, request.body
        if request.kind == "submit" and body["name"] not in self.mine:
            known = Known(body["name"], {body["gpus"]})
            self.mine[known.name] = self.ledger.jobs[known.name] = known
        elif request.kind in ("end", "cancel") and job is not None:
            job.outcome = job.outcome | {_outcome(request)}
        elif request.kind == "resize" and job is not None:
            job.gpus = job.gpus | {body["gpus"]}
        elif request.kind == "bind" and job is not None:
            job.external = job.external | {body["external"]}
        elif request.kind in ("drain", "restore"):
            part = body["parts"][0]
            self.ledger.drained[part] = self.ledger.drained.get(part, {False}) | {request.kind == "drain"}

    def _heed(self, request: Request, status: int, answer: bytes) -> None:
        document, job = json.loads(answer), request.job
        if status < 300:
            self.answers = [*self.answers[-KEPT_ANSWERS:], (request, answer)]
            self.ledger.answers[request.key] = answer
            if len(self.answers) > KEPT_ANSWERS:
                self.ledger.answers.pop(self.answers[0][0].key, None)
        if request.kind in ("drain", "restore"):
            self._heed_part(request, status)
        elif request.kind == "submit":
            known = self.mine[request.body["name"]]
            if status not in (201, 202):
                self.ledger.wrong(f"{known.name} was refused: {answer[:200]!r}")
                return
            known.id, known.acknowledged, known.version = document["id"], True, document["version"]
        elif job is not None:
            self._heed_job(request, job, status, document)

    def _heed_part(self, request: Request, status: int) -> None:
        if status == 200:
            self.ledger.drained[request.body["parts"][0]] = {request.kind == "drain"}
        else:
            self.ledger.wrong(f"{request.kind} was refused with {status}")

    def _heed_job(self, request: Request, job: Known, status: int, document: dict[str, Any]) -> None:
        """A refusal changes nothing; an answer is the job as it is."""
        if status == 200:
            job.version = max(job.version, document["version"])
        if request.kind in ("end", "cancel"):
            if status != 200 or document["outcome"] != _outcome(request):
                self.ledger.wrong(f"{request.kind} of {job.id} was answered {status} {document}")
            job.outcome = {_outcome(request)}
        elif request.kind == "resize":
            before = {gpus for gpus in job.gpus if gpus != request.body["gpus"]} or job.gpus
            job.gpus = {request.body["gpus"]} if status == 200 else before
        elif request.kind == "bind":
            before_bound = {name for name in job.external if name != request.body["external"]}
            job.external = {request.body["external"]} if status == 200 else before_bound


def _outcome(request: Request) -> str:
    return str(request.body.get("outcome", "cancelled"))
