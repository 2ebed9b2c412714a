"""Slurm's own list of nodes, as `sinfo --json` prints it: which of them take jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropewalk.documents import parse_foreign_json
from ropewalk.errors import ClusterError
from ropewalk.serve.slurm.mark import printable

OUT = frozenset({
    "DOWN", "ERROR", "FUTURE", "UNKNOWN", "DRAIN", "DRAINING", "DRAINED", "FAIL", "FAILING", "MAINTENANCE", "MAINT",
    "NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "REBOOT_ISSUED", "REBOOT_REQUESTED", "INVALID",
    "INVALID_REG",
})  # fmt: skip
"""States and flags of a node that takes no jobs."""


def read_nodes(text: str, subject: str = "sinfo --json") -> Mapping[str, str]:
    """Node -> why it takes no jobs, empty where it does.

    >>> read_nodes('{"nodes": [{"name": "n1", "state": "idle", "state_flags": ["DRAIN"], "reason": "fan"}]}')
    {'n1': 'drain (fan)'}
    """
    try:
        nodes = parse_foreign_json(text, subject, ClusterError)["nodes"]
        return {_text(node["name"]): _why_out(node) for node in nodes}
    except (KeyError, TypeError, ValueError) as problem:
        raise ClusterError(
            f"{subject}: it cannot be read ({problem!r}): give the output of sinfo --json of Slurm 22.05 or newer"
        ) from None


def _why_out(node: dict[str, Any]) -> str:
    state = node["state"]
    words = [*(state if isinstance(state, list) else [state]), *node.get("state_flags", [])]
    out = sorted({_text(word).upper().rstrip("*") for word in words} & OUT)
    if not out:
        return ""
    reason = printable(_text(node.get("reason") or ""), 100)
    return ", ".join(out).lower() + (f" ({reason})" if reason else "")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} instead of text")
    return value
