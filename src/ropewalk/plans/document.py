"""The plan file: JSON that every command writes and reads.

The same plan gives the same bytes. Files that it names (a model, a network) are found from its folder, so a plan can
be read from anywhere. A file of another version is refused with the command that writes it again; so is
one that was damaged, with everything that is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ropewalk.documents import json_text, parse_json, read_text
from ropewalk.errors import PlanError
from ropewalk.files import found_from, seen_from, write_whole
from ropewalk.hardware import as_json, from_json
from ropewalk.plans.marks import EARLIER, FORMAT
from ropewalk.plans.plan import Plan
from ropewalk.records import plain, record
from ropewalk.workload.source import is_file


def dumps(plan: Plan, folder: Path = Path()) -> str:
    """The text of a plan file in a folder."""
    written = _with_model(plan, partial(seen_from, folder))
    return json_text({"format": FORMAT, **plain(written), "cluster": as_json(plan.cluster, folder)})


def write_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan file, whole or not at all."""
    write_whole(path, dumps(plan, Path(path).parent))


def read_plan(path: str | Path) -> Plan:
    """A plan from its file, checked."""
    subject = f"plan {path}"
    text = read_text(Path(path), subject, PlanError)
    return loads(text, subject, Path(path).parent)


def loads(text: str, subject: str = "plan", folder: Path = Path()) -> Plan:
    """The plan that `dumps` wrote for a folder."""
    document = parse_json(text, subject, PlanError)
    if not isinstance(document, dict) or "format" not in document:
        raise PlanError(f"{subject} is not a plan: give a file written by --plan")
    _refuse_other_formats(document, subject)
    decided = {key: value for key, value in document.items() if key != "format"}
    if isinstance(decided.get("cluster"), dict):
        decided["cluster"] = from_json(decided["cluster"], f"{subject}: cluster", folder)
    plan = _with_model(record(Plan, decided, subject, PlanError), partial(found_from, folder))
    plan.check()
    return plan


def _with_model(plan: Plan, named: Callable[[str], str]) -> Plan:
    """The plan with the file of its model named otherwise; models of the zoo keep their names."""
    name = plan.model.name
    return replace(plan, model=replace(plan.model, name=named(name))) if is_file(name) else plan


def _refuse_other_formats(document: dict[str, Any], subject: str) -> None:
    found = document["format"]
    if found == FORMAT:
        return
    if found == EARLIER:
        raise PlanError(
            f"{subject} has the format {EARLIER!r} of an earlier version: write it again with "
            f"`ropewalk plan {_question_of(document)} --plan FILE`"
        )
    raise PlanError(f"{subject} has the format {found!r}, not {FORMAT!r}: give a file written by --plan")


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
