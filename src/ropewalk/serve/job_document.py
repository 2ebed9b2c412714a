"""Jobs as state files and stores hold them, checked field by field."""

from __future__ import annotations

from types import NoneType
from typing import Any

from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import OUTCOMES

_NUMBER, _WHEN = (int, float), (int, float, NoneType)
_FIELDS: dict[str, Any] = {
    "number": int, "name": str, "gpus": int, "submitted_at": _NUMBER, "user": str, "version": int, "note": str,
    "expected_s": _WHEN, "deadline_s": _WHEN, "priority": _NUMBER, "requeue": bool, "servers": list, "labels": dict,
    "external": (str, NoneType), "held": bool, "managed": bool, "again": bool, "expires_at": _WHEN,
    "started_at": _WHEN, "ended_at": _WHEN, "restarts": int, "generation": int, "allocation": dict, "releasing": list,
    "promised_step_s": _WHEN, "measured": list, "reports": int, "slow": bool, "owner": str,
}  # fmt: skip
"""What a job in a file may say, besides where it stands."""
_CHOICES = {"state": ("pending", "running", "ended"), "outcome": (None, *OUTCOMES)}


def read_job(document: dict[str, Any]) -> ServedJob:
    """A job of a file or a store, which people may have edited; ValueError and its like for what is none."""
    for name, value in document.items():
        if name in _CHOICES:
            if value not in _CHOICES[name]:
                raise ValueError(f"{name} is {value!r}")
        elif name in _FIELDS and (not isinstance(value, _FIELDS[name]) or _is_stray_flag(value, name)):
            raise ValueError(f"{name} is {value!r}")
    found = ServedJob.from_document(document)
    if found.number < 1 or found.gpus < 1 or (found.state == "running") > (found.allocation is not None):
        raise ValueError(f"job {found.number} is inconsistent")
    return found


def _is_stray_flag(value: Any, name: str) -> bool:
    return isinstance(value, bool) and _FIELDS[name] is not bool
