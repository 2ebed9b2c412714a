"""What a job hears when it is submitted to Slurm: nodes at once, a hold until there are some, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ropewalk.serve.slurm.mark import Mark, printable
from ropewalk.serve.slurm.request import JobRequest, NotNow, NotOurs
from ropewalk.tenancy.imports.hostlist import compress

LONGEST_SAY = 500


@dataclass(frozen=True)
class Decision:
    """What `job_submit.lua` does with a job."""

    decision: Literal["start", "hold", "pass", "refuse"]
    mark: Mark
    count: int = 0
    """Nodes of the job, where the controller has settled it."""
    say: str = ""
    """One line for whoever submits."""

    def text(self) -> str:
        """Lines of `key value`, which Lua and shells read without a parser.

        >>> print(Decision("start", Mark("00c0ffee00c0ffee", ("n2", "n1")), 2).text(), end="")
        decision start
        comment ropewalk token=00c0ffee00c0ffee nodes=n[2,1]
        nodes n[2,1]
        count 2
        """
        lines = {"decision": self.decision, "comment": self.mark.text()}
        if self.mark.nodes:
            lines["nodes"] = compress(self.mark.nodes)
        if self.count:
            lines["count"] = str(self.count)
        if self.say:
            lines["say"] = printable(self.say, LONGEST_SAY)
        return "".join(f"{key} {value}\n" for key, value in lines.items())


def not_asked(found: NotNow | NotOurs) -> Decision:
    """A job that the controller was not asked about."""
    if isinstance(found, NotOurs):
        note = f"not placed by ropewalk: {found.why}"
        return Decision("pass", Mark(left=True, note=note), say=f"ropewalk does not place this job: {found.why}")
    return Decision("hold" if found.hold else "pass", Mark(hold=found.hold, note=found.why))


def job_answered(request: JobRequest, token: str, answer: Mapping[str, Any]) -> Decision:
    """A job that the controller has taken, with what it answered."""
    held = answer.get("allocation")
    if answer["state"] == "running" and held:
        nodes = tuple(server["name"] for server in held["servers"])
        return Decision("start", Mark(token, nodes), len(nodes))
    why = (answer.get("reason") or {}).get("message", "other jobs are ahead of it")
    say = f"ropewalk holds this job until it can have dedicated links: {why}"
    return Decision("hold", Mark(token, hold=True), request.nodes, say)


def refused(code: str, text: str) -> Decision:
    """Impossible jobs are refused; whatever else went wrong is no reason to keep a job from Slurm."""
    if code == "impossible":
        return Decision("refuse", Mark(), say=f"ropewalk: {text}")
    return Decision(
        "pass", Mark(note=f"not placed by ropewalk: {text}"), say=f"ropewalk does not place this job: {text}"
    )
