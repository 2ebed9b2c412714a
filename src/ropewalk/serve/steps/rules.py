"""What the reconciler tells: it becomes a part of the history, and changes nothing else."""

from __future__ import annotations

from typing import Any

from ropewalk.serve.operation import NoteRules
from ropewalk.serve.turn import Turn

MOST_NOTE = 400


def note_rules(turn: Turn, asked: NoteRules) -> dict[str, Any]:
    """An event, with what it is about."""
    job = turn.state.job(asked.job) if asked.job else None
    facts: dict[str, Any] = {"note": asked.note[:MOST_NOTE]}
    if asked.device:
        facts["device"] = asked.device
    if asked.generation:
        facts["generation"] = asked.generation
    turn.tell(asked.kind, job, **facts)
    return {"noted": asked.kind}
