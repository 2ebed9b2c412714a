"""Servers that Slurm has taken out of service take no jobs of the controller's either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ropewalk.serve.operation import Drain, Restore
from ropewalk.serve.outcome import Event
from ropewalk.serve.slurm.mark import printable
from ropewalk.serve.slurm.view import ControllerView
from ropewalk.serve.writer import Writer

ACTOR = "slurm"
ANSWER_S = 30.0
KINDS = ("parts-drained", "parts-restored")
"""Events that say who drained what."""
NOTE = "out of service in Slurm"


def drained_for_slurm(events: Iterable[Event]) -> frozenset[str]:
    """Servers that this bridge, or the one before a restart, has drained and nobody has restored."""
    found: set[str] = set()
    for event in events:
        servers = {
            part.removeprefix("server:") for part in event.document.get("parts", ()) if part.startswith("server:")
        }
        if event.kind == "parts-drained" and event.document.get("actor") == ACTOR:
            found |= servers
        else:
            found -= servers
    return frozenset(found)


def sync_servers(
    writer: Writer, nodes: Mapping[str, str], view: ControllerView, before: frozenset[str]
) -> frozenset[str]:
    """Drain what Slurm took out since, restore what it took back; answers the servers that are drained for Slurm.

    A server that somebody drained here stays drained, whatever Slurm says.
    """
    out = {server: nodes.get(server, "unknown to Slurm") for server in sorted(view.servers)}
    new = [server for server, why in out.items() if why and server not in view.drained]
    back = sorted(server for server in before & view.drained if not out[server])
    if new:
        note = printable(f"{NOTE}: {new[0]} is {out[new[0]]}" + (" and others" if len(new) > 1 else ""), 200)
        writer.submit(Drain(tuple(f"server:{name}" for name in new), note), actor=ACTOR).result(ANSWER_S)
    if back:
        writer.submit(Restore(tuple(f"server:{name}" for name in back), "back in Slurm"), actor=ACTOR).result(ANSWER_S)
    return (before | set(new)) - set(back)
