"""The plan file: JSON that every command writes and reads.

The same plan gives the same bytes. A file of another version is refused with the command that writes it again; so is
one that was damaged, with everything that is wrong with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ropewalk.documents import decode, json_text, parse_json, read_bytes
from ropewalk.errors import PlanError
from ropewalk.files import write_whole
from ropewalk.hardware import as_json, from_json
from ropewalk.plans.marks import EARLIER, FORMAT
from ropewalk.plans.plan import Plan
from ropewalk.records import plain, record


def dumps(plan: Plan) -> str:
    """The text of a plan file."""
    return json_text({"format": FORMAT, **plain(plan), "cluster": as_json(plan.cluster)})


def write_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan file, whole or not at all."""
    write_whole(path, dumps(plan))


def read_plan(path: str | Path) -> Plan:
    """A plan from its file, checked."""
    subject = f"plan {path}"
    text = decode(read_bytes(Path(path), subject, PlanError), subject, PlanError)
    return loads(text, subject)


def loads(text: str, subject: str = "plan") -> Plan:
    """The plan that `dumps` wrote."""
    document = parse_json(text, subject, PlanError)
    if not isinstance(document, dict) or "format" not in document:
        raise PlanError(f"{subject} is no plan: give a file that --plan wrote")
    _refuse_other_formats(document, subject)
    decided = {key: value for key, value in document.items() if key != "format"}
    if isinstance(decided.get("cluster"), dict):
        decided["cluster"] = from_json(decided["cluster"], f"{subject}: cluster")
    plan = record(Plan, decided, subject, PlanError)
    plan.check()
    return plan


def _refuse_other_formats(document: dict[str, Any], subject: str) -> None:
    found = document["format"]
    if found == FORMAT:
        return
    if found == EARLIER:
        raise PlanError(
            f"{subject} has the format {EARLIER!r} of an earlier version: write it again with "
            f"`ropewalk plan {_question_of(document)} --plan FILE`"
        )
    raise PlanError(f"{subject} has the format {found!r}, not {FORMAT!r}: give a file that --plan wrote")


def _question_of(document: dict[str, Any]) -> str:
    """What to type to ask the question of an old plan again."""
    asked = document.get("question")
    if not isinstance(asked, dict):
        return "MODEL"
    words = [str(asked.get("model", "MODEL"))]
    words += [
        f"--{name.replace('_', '-')} {asked[name]}"
        for name in ("servers", "degree", "gpus_per_server", "device")
        if name in asked
    ]
    if "precision" in asked:
        words.append(f"--dtype {asked['precision']}")
    if isinstance(asked.get("bandwidth"), int | float):
        words.append(f"--bandwidth {asked['bandwidth'] * 8 / 1e9:g}Gbps")
    return " ".join(words)
