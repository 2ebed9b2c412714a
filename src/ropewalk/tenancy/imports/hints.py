"""What a topology file leans on: the nodes that patterns pick from, which of several topologies is meant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ropewalk.documents import read_text
from ropewalk.errors import FabricError, Findings


@dataclass(frozen=True)
class Hints:
    """Beside the file itself."""

    nodes: Mapping[str, Mapping[str, str]] | None = None
    """Node -> its labels, for HyperNodes that pick nodes by pattern or label."""
    topology: str | None = None
    """Which topology of a topology.yaml; None takes the default one."""
    levels: tuple[str, ...] = ()
    """Columns of a CSV from the outermost level to the leaf; without, all but the host's in the order of the file."""


NO_HINTS = Hints()


def read_nodes(path: str | Path) -> dict[str, dict[str, str]]:
    """Nodes with their labels, one a line: the name first, `key=value,key=value` last; between them anything.

    This is what `kubectl get nodes --show-labels --no-headers` prints; a plain list of names will do too.
    """
    file = Path(path)
    text = read_text(file, f"node list {path}", FabricError)
    findings = Findings(FabricError, f"node list {path}")
    found: dict[str, dict[str, str]] = {}
    for line, raw in enumerate(text.splitlines(), 1):
        words = raw.partition("#")[0].split()
        if not words:
            continue
        if words[0] in found:
            findings.add(f"line {line}: node {words[0]!r} is listed twice: remove one of the two")
        labels = [one.partition("=") for one in words[-1].split(",")] if len(words) > 1 and "=" in words[-1] else []
        found[words[0]] = {key: value for key, _, value in labels}
    if not found:
        findings.add("it is empty: list one node per line")
    findings.raise_if_any()
    return found
