"""State files of a cluster: who holds what, with a checksum; read field by field and placed anew, or refused.

Whoever edits one by hand removes its `checksum`, which says that the change is meant.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropewalk.documents import read_json
from ropewalk.documents.limits import MOST_OF_A_TRACE
from ropewalk.documents.sealed import CHECKSUM, sealed, unsealed
from ropewalk.errors import ClusterError
from ropewalk.files import write_whole
from ropewalk.records import record
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.drained import SavedDrained

CONTROLLER = "controller"
"""The entry of a file that keeps a queue and a history besides."""
_REMEDY = "use an intact copy, or remove the entry checksum if you changed it on purpose"


@dataclass(frozen=True)
class SavedState:
    """The entries of a snapshot."""

    plant: str
    gpus: int
    jobs: tuple[Allocation, ...]
    drained: SavedDrained
    gpus_per_server: int | None = None
    """Not in files of before 2026-11."""


def write_state(path: Path, document: dict[str, Any]) -> None:
    """Write a snapshot, whole or not at all."""
    write_whole(path, json.dumps(sealed(document), indent=1) + "\n")


def read_state_document(path: Path) -> dict[str, Any]:
    """The entries of a state file; what is in them is checked by `saved_state` and `Occupancy.from_document`."""
    subject = f"state {path}"
    document = read_json(path, subject, ClusterError, MOST_OF_A_TRACE)
    if not isinstance(document, dict) or "jobs" not in document:
        raise ClusterError(f"{subject} is not a snapshot: give one written by `ropewalk cluster allocate --save`")
    return unsealed(document, subject, ClusterError, _REMEDY) if CHECKSUM in document else document


def saved_state(document: object, subject: str = "the snapshot") -> SavedState:
    """The fields of a snapshot, each of its kind."""
    if not isinstance(document, dict):
        raise ClusterError(f"{subject} is not an object: give one written by ropewalk")
    own = {key: value for key, value in document.items() if key not in (CONTROLLER, CHECKSUM)}
    return record(SavedState, own, subject, ClusterError)
