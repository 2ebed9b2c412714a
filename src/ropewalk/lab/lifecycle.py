"""Labs that outlive the command that made them: brought up, opened again by later commands, taken down.

Taking down ends every process that names the document of the lab, and everything else that runs inside its namespaces;
the kernel removes the rest. It does so whether the document is whole or damaged, and whoever was killed before.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from ropewalk.documents.numbers import is_count
from ropewalk.errors import Findings, LabError
from ropewalk.fabric import Fabric
from ropewalk.lab import state as labs
from ropewalk.lab.lab import Lab, built
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.process import WORKER, LabProcess
from ropewalk.lab.request import HASH, LabRequest, require_carried, tables_of
from ropewalk.lab.saved import SavedFabric, routes_of, saved_paths
from ropewalk.lab.state import Holder, LabState
from ropewalk.routing import Routes
from ropewalk.units import show_bandwidth

_LONGEST_END_S = 10.0


def bring_up(request: LabRequest) -> LabState:
    """Build the network and leave it running."""
    labs.require_name(request.name)
    network = request.network
    document = str(labs.path_of(request.name))
    with labs.changing():
        _refuse_taken(request.name)
        with built(network, request.tables(), document) as lab:
            state = LabState(
                name=request.name,
                source=request.source,
                holder=Holder.of(lab.process.holder),
                inodes=lab.process.inodes,
                fabric=SavedFabric.of(network.fabric),
                scale=network.scale,
                settings=network.settings,
                routing=request.routing,
                paths=() if request.routes is None else saved_paths(request.routes),
            )
            labs.write(state)
            lab.process.keep()
    return state


@contextmanager
def opened(name: str) -> Iterator[tuple[LabState, Lab]]:
    """A lab that is up, to look at it or to change it."""
    state = labs.read(name)
    if not state.holder.alive:
        raise LabError(f"lab {name!r} was killed: remove it with `ropewalk lab down --name {name}`")
    document = str(labs.path_of(name))
    if state.lent and not set(_processes_of(document, frozenset())) - {state.holder.pid}:
        raise LabError(f"lab {name!r} still has the routes of a killed run: take it down and up again")
    network = network_of(state)
    with LabProcess.enter(network.fabric.nodes, state.holder.pid, document) as process:
        yield state, Lab(network, tables_of(network.fabric, routes_in(state, network)), process)


def rewire(name: str, fabric: Fabric, routing: str, routes: Routes | None, dark_s: float) -> LabState:
    """Change the circuits of a lab while it runs; `dark_s` are seconds of the lab in which new ones carry nothing."""
    with labs.changing(), opened(name) as (state, lab):
        findings = Findings(LabError, f"rewire of lab {name}")
        if fabric.node_names != lab.network.fabric.node_names or fabric.hosts != lab.network.fabric.hosts:
            findings.add(f"{fabric.name} has other hosts or switches than {lab.network.fabric.name}: change links only")
        if state.cut or state.lent:
            findings.add("cables are down, or a run has its own routes: bring them up, or wait for it")
        findings.raise_if_any()
        network = lab.network.rewired(fabric)
        network.check()
        usual = show_bandwidth(float(lab.network.fabric.bandwidth.max()))
        require_carried(
            network, f"give its links the bandwidth of the lab's links, {usual}: with --bandwidth or in its file"
        )
        lab.rewired(network, tables_of(fabric, routes), dark_s)
        changed = replace(
            state, source=fabric.name, fabric=SavedFabric.of(fabric), routing=routing, numbers=network.numbers,
            slowed=(), paths=() if routes is None else saved_paths(routes),
        )  # fmt: skip
        labs.write(changed)
        return changed


@contextmanager
def lent(name: str) -> Iterator[None]:
    """Note that a run has routes of its own, so that nobody takes them for those of the lab if it is killed."""
    _note_lent(name, lent=True)
    try:
        yield
    finally:
        _note_lent(name, lent=False)


def _note_lent(name: str, *, lent: bool) -> None:
    with labs.changing():
        labs.write(replace(labs.read(name), lent=lent))


def network_of(state: LabState) -> LabNetwork:
    return LabNetwork(state.fabric.fabric(), state.scale, state.settings, state.numbers)


def routes_in(state: LabState, network: LabNetwork) -> Routes | None:
    """The routes of a lab; None where the kernel hashes."""
    return None if state.routing == HASH else routes_of(network.fabric, state.paths)


def take_down(name: str) -> int:
    """Remove a lab with all its processes; how many there were."""
    labs.require_name(name)
    with labs.changing():
        document = labs.path_of(name)
        ended = _end(_processes_of(str(document), _living_inodes(name)))
        if not document.exists() and not ended:
            labs.read(name)  # says which labs there are
        labs.remove(name)
    return ended


def _living_inodes(name: str) -> frozenset[int]:
    """The namespaces of a lab, while its holder keeps the kernel from giving their numbers to others."""
    try:
        state = labs.read(name)
    except LabError:
        return frozenset()
    return frozenset(state.inodes) if state.holder.alive else frozenset()


def _refuse_taken(name: str) -> None:
    if _processes_of(str(labs.path_of(name)), frozenset()):
        raise LabError(
            f"a lab {name!r} is up: take it down with `ropewalk lab down --name {name}`, or choose another --name"
        )


def _processes_of(document: str, inodes: frozenset[int]) -> list[int]:
    """Workers of a lab, and whatever runs inside its namespaces."""
    found = []
    for entry in Path("/proc").iterdir():
        if not is_count(entry.name) or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):  # it ended while we looked, or belongs to somebody else
            words = (entry / "cmdline").read_bytes().split(b"\0")
            ours = WORKER.encode() in words and words[-2] == document.encode()
            if ours or (inodes and (entry / "ns/net").stat().st_ino in inodes):
                found.append(int(entry.name))
    return found


def _end(processes: list[int]) -> int:
    """Kill processes and wait until the kernel has seen the last of them."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    deadline = time.monotonic() + _LONGEST_END_S
    while any(Holder.of(process).started for process in processes):
        if time.monotonic() > deadline:
            raise LabError(f"processes {processes} of the lab do not end: try again, or kill them")
        time.sleep(0.005)
    return len(processes)
