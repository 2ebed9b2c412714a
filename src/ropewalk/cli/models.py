"""What a user points a command at: a plan, a task graph, a Chakra trace or a model, told apart by what is there."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path

from ropewalk.documents import read_text
from ropewalk.errors import InputError
from ropewalk.files import is_there

DOCUMENTS = (".yaml", ".yml", ".json")


class Subject(Enum):
    TASK_GRAPH = "task graph"
    CHAKRA = "Chakra trace"
    MODEL = "model"
    PLAN = "plan"


def subject_of(what: str) -> Subject:
    """Files are told by their ending, those that several things share by their content; all else names a model."""
    path = Path(what)
    if path.suffix.lower() == ".npz":
        return Subject.TASK_GRAPH
    if path.suffix.lower() in DOCUMENTS:
        return _document(path)
    if path.name and is_there(path.with_name(f"{path.name}.0.et")):
        return Subject.CHAKRA
    if path.suffix.lower() == ".et":
        prefix = what.rpartition(".et")[0].rpartition(".")[0] or "PREFIX"
        raise InputError(f"{what} is one rank of a Chakra trace: give the prefix that all ranks share, {prefix}")
    return Subject.MODEL


def _document(path: Path) -> Subject:
    """By the key that comes first: reading the whole of a large task graph twice would take minutes."""
    subject = f"file {path}"
    text = read_text(path, subject, InputError)
    from ropewalk.plans import is_plan

    if is_plan(text):
        return Subject.PLAN
    found = (_KEY_IN_JSON if path.suffix.lower() == ".json" else _KEY_IN_YAML).search(text)
    if found is None:
        raise InputError(
            f"{subject} is neither a plan nor a task graph nor a model: a plan begins with `format`, a task graph has "
            "`tasks`, a model has `layers` at the top"
        )
    return Subject.TASK_GRAPH if found[1] == "tasks" else Subject.MODEL


_KEY_IN_JSON = re.compile(r'"(tasks|layers)"\s*:')
_KEY_IN_YAML = re.compile(r"""^\{?\s*["']?(tasks|layers)["']?\s*:""", re.MULTILINE)
