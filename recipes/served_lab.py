"""A leaf-spine lab with `ropewalk serve` on it: started, asked, killed and ended; and runs of jobs that it placed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ropewalk import units
from ropewalk.collectives.act import Act
from ropewalk.lab.answer import LabAnswer
from ropewalk.lab.collective import collective_work
from ropewalk.lab.lab import Lab
from ropewalk.lab.lifecycle import bring_up, opened, take_down
from ropewalk.lab.measure import measured
from ropewalk.lab.namespaces import held
from ropewalk.lab.question import LabQuestion
from ropewalk.lab.request import HASH, LabRequest, scaled
from ropewalk.lab.state import FOLDER
from ropewalk.routing import Routes, single_paths
from ropewalk.routing.routes import starts
from ropewalk.serve.client import Client
from ropewalk.tenancy.plant import Plant, plant

RULES = "rules of jobs"
COLLECTIVE, ACT = "xor", Act.ALL_TO_ALL
"""An all-to-all in rounds: most of it crosses leafs, as that of a mixture of experts does."""
LONGEST_S = 300.0
"""Before a service is taken for lost: the machine may be busy with other things."""


@dataclass(frozen=True)
class Tenant:
    """A job as the API describes it: its hosts in rank order, and the spine of each that sends beyond its leaf."""

    id: str
    hosts: tuple[int, ...]
    spine_of_host: dict[int, int]


class Served:
    """One service on one lab."""

    def __init__(self, lab: Lab, cluster: Plant, folder: Path, name: str, period_s: float) -> None:
        self.lab, self.plant, self.folder, self.name, self.period_s = lab, cluster, folder, name, period_s
        self._process: subprocess.Popen[str] | None = None
        self._client: Client | None = None
        self.url = ""
        self.start()

    def start(self) -> float:
        """Start the service; how long it took to answer."""
        began = time.perf_counter()
        command = [
            sys.executable, "-m", "ropewalk", "serve", "--fabric", self.plant.name, "--gpus-per-server", "1",
            "--database", str(self.folder / "serve.db"), "--no-auth", "--port", "0", "--quiet", "--driver", "linux",
            "--driver-option", f"lab={self.name}", "--driver-option", "timeout=10s",
            "--reconcile-every", f"{self.period_s}s",
        ]  # fmt: skip
        with open(self.folder / "serve.log", "a") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("listening: "):
                self.url = line.split()[1]
                self.connect()
                break
        else:
            raise RuntimeError(f"the service did not start: {(self.folder / 'serve.log').read_text()[-2000:]}")
        until(lambda: self.ask("GET", "/readyz"), LONGEST_S)
        return time.perf_counter() - began

    def connect(self) -> None:
        """A connection of one's own, for one thread."""
        self._client = Client(self.url)

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=LONGEST_S)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        assert self._client is not None
        reply = self._client.ask(method, path, body)
        if reply.error is not None:
            raise RuntimeError(f"{method} {path}: {reply.error['message']}")
        return reply.document

    def submit(self, name: str, gpus: int) -> str:
        return str(self.ask("POST", "/v1/jobs", {"name": name, "gpus": gpus})["id"])

    def end(self, *jobs: str) -> None:
        for job in jobs:
            self.ask("POST", f"/v1/jobs/{job}/end", {})

    def ready(self, job: str, generation: int = 1) -> Tenant:
        """Wait until a job runs with its rules in place."""
        until(lambda: self._is_in_place(job, generation), LONGEST_S)
        return self.tenant(job)

    def _is_in_place(self, job: str, generation: int) -> bool:
        found = self.ask("GET", f"/v1/jobs/{job}/rules")
        return found["generation"] >= generation and found["state"] == "running" and found["rules_are"] != "pending"

    def tenant(self, job: str) -> Tenant:
        servers = self.ask("GET", f"/v1/jobs/{job}")["allocation"]["servers"]
        hosts = tuple(self.plant.server_names.index(one["name"]) for one in servers)
        hops = self._next_hops()
        bodies = [rule["body"] for rule in self.ask("GET", f"/v1/jobs/{job}/rules")["rules"]]
        spines = {
            int(body["source"].rpartition(".")[2]) - 128: hops[body["next_hop"]]
            for body in bodies
            if body["kind"] == "send"
        }
        return Tenant(job, hosts, spines)

    def _next_hops(self) -> dict[str, int]:
        from ropewalk.serve.rules.lab import lab_addresses

        return {str(hop): spine for (_, spine, _), hop in lab_addresses(self.plant, self.lab.network).next_hops.items()}

    def in_leaf(self, leaf: int, *words: str) -> str:
        """What a command prints in the namespace of a leaf; it must not fail."""
        where = held(self.lab.process.holder, self.plant.gpus + leaf)
        done = subprocess.run(["nsenter", f"--net={where}", *words], capture_output=True, text=True, check=True)
        return done.stdout

    def rules_by_hand(self, leaf: int) -> str:
        """The policy rules of a leaf, as `ip` shows them."""
        return self.in_leaf(leaf, "ip", "rule", "show", "protocol", "82")

    def cable(self, leaf: int, spine: int) -> int:
        """The number of the cable between two switches of the lab."""
        nodes = (self.plant.gpus + leaf, self.plant.gpus + self.plant.leafs + spine)
        return next(number for number, cable in self.lab.network.cables.items() if cable.nodes == nodes)


@contextmanager
def served(folder: Path, shape: str, bandwidth: str, period_s: float = 1.0, name: str = "served") -> Iterator[Served]:
    """A lab whose switches hash, and a service with the Linux driver on it."""
    with lab_of(folder, shape, bandwidth, name) as (lab, cluster):
        service = Served(lab, cluster, folder, name, period_s)
        try:
            yield service
        finally:
            service.stop()


@contextmanager
def lab_of(folder: Path, shape: str, bandwidth: str, name: str) -> Iterator[tuple[Lab, Plant]]:
    """A lab of a plant with one GPU per server; its switches hash."""
    os.environ[FOLDER] = str(folder / "labs")
    cluster = plant(shape, 1, bandwidth=units.bandwidth(bandwidth))
    network, _ = scaled(cluster.fabric())
    bring_up(LabRequest(name, shape, network, HASH, None))
    try:
        with opened(name) as (_, lab):
            yield lab, cluster
    finally:
        take_down(name)


def routes_of(cluster: Plant, tenants: Sequence[Tenant], fabric: Any) -> Routes:
    """The paths that the rules of jobs give to all their pairs."""
    pairs = sorted((a, b) for one in tenants for a in one.hosts for b in one.hosts if a != b)
    spine_of = {host: spine for one in tenants for host, spine in one.spine_of_host.items()}
    leaf = cluster.leaf_of_gpu.tolist()
    paths = []
    for src, dst in pairs:
        middle: list[int] = []
        if leaf[src] != leaf[dst]:
            up, down = (int(cluster.leaf_up(leaf[end], spine_of[src])) for end in (src, dst))
            middle = [up, down + 1]
        paths.append([int(cluster.nic_up(src)), *middle, int(cluster.nic_up(dst)) + 1])
    ends = np.array(pairs, np.int32).reshape(-1, 2)
    links = np.array([link for path in paths for link in path], np.int32)
    return single_paths(fabric, ends[:, 0], ends[:, 1], starts([len(path) for path in paths]), links)


def run_jobs(
    lab: Lab, cluster: Plant, tenants: Sequence[Tenant], size_bytes: int, repeats: int, *, hashed: bool = False
) -> LabAnswer:
    """A collective of all these jobs at once, predicted and measured: over their rules, or as the kernel hashes."""
    question = LabQuestion(COLLECTIVE, ACT, size_bytes, groups=tuple(one.hosts for one in tenants))
    routes = None if hashed else routes_of(cluster, tenants, lab.network.fabric)
    work = collective_work(lab.network, routes, question)
    with lab.process.beside() as process:  # so that no connection of an earlier run is left
        return measured(replace(lab, process=process), HASH if hashed else RULES, work, repeats)


def until(what: Callable[[], Any], longest_s: float, every_s: float = 0.01) -> float:
    """Wait until something holds; how long it took."""
    began = time.perf_counter()
    while True:
        try:
            if what():
                return time.perf_counter() - began
        except (OSError, RuntimeError, json.JSONDecodeError):
            pass
        if time.perf_counter() - began > longest_s:
            raise RuntimeError(f"nothing happened within {longest_s} s")
        time.sleep(every_s)
