"""What rules cost a controller: a commit, a look at all devices, and the first look, on clusters of up to 32,768 GPUs.

    python benchmarks/serve_rules.py

Devices are lists in memory, so the figures are those of the reconciler alone, in CPU milliseconds; what devices take
comes on top. A commit is a job that ends and others that start on what it leaves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Any

from ropewalk.export.cluster import AddressPlan
from ropewalk.serve.controller import Controller
from ropewalk.serve.operation import End, Submit
from ropewalk.serve.rules.driver import Present
from ropewalk.serve.rules.reconciler import Reconciler
from ropewalk.serve.rules.service import RuleService
from ropewalk.serve.rules.source import ControllerSource
from ropewalk.serve.settings import Settings
from ropewalk.tenancy.plant import Plant, plant

SIZES = ("leaf-spine:64x32x32", "leaf-spine:256x32x32", "leaf-spine:1024x32x32")
COMMITS = 200


@dataclass
class InMemory:
    """Devices that do what they are told."""

    plant: Plant
    name: str = "memory"
    settles_s: float = 0.0
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)

    def devices(self) -> tuple[str, ...]:
        return self.plant.leaf_names

    def handles(self, body: Any) -> bool:
        return True

    def present(self, device: str) -> Present:
        return Present(tuple(self.rules.get(device, {}).values()))

    def apply(self, device: str, rules: Any) -> None:
        self.rules.setdefault(device, {}).update((rule.key, rule) for rule in rules)

    def remove(self, device: str, rules: Any) -> None:
        for rule in rules:
            self.rules[device].pop(rule.key, None)


@dataclass
class Direct:
    """A writer without a store."""

    controller: Controller

    def read(self, function: Callable[[Controller], Any]) -> Future[Any]:
        return _done(function(self.controller))

    def submit(self, operation: Any, *, actor: str = "") -> Future[Any]:
        return _done(self.controller.apply(operation, 0.0))


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def timed(function: Callable[[], Any]) -> float:
    began = time.process_time()
    function()
    return 1e3 * (time.process_time() - began)


def main() -> None:
    print("| GPUs | jobs | rules | first look ms | whole look ms | commit p50 ms | p99 ms |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for shape in SIZES:
        cluster, random = plant(shape, 8), Random(1)
        controller = Controller.empty(cluster, Settings(keep_links=True))
        while controller.apply(Submit("job", random.choice([8, 64, 128, 256])), 0.0).answer["state"] == "running":
            pass
        source = ControllerSource(Direct(controller), cluster, AddressPlan.numbered(cluster))  # type: ignore[arg-type]
        service = RuleService(source, Reconciler([InMemory(cluster)], at_once=1))
        first = timed(service.reconcile)
        whole = timed(service.reconcile)
        commits = [_commit(controller, service, random) for _ in range(COMMITS)]
        jobs, wanted = len(controller.state.jobs), int(service.metrics()["wanted"])
        p99 = sorted(commits)[int(0.99 * len(commits))]
        looks, sizes = f"{first:.0f} | {whole:.0f}", f"{cluster.gpus:,} | {jobs} | {wanted:,}"
        print(f"| {sizes} | {looks} | {median(commits):.2f} | {p99:.1f} |")


def _commit(controller: Controller, service: RuleService, random: Random) -> float:
    """One job ends, and others take its place."""
    running = [job.id for job in controller.state.jobs.values() if job.state == "running"]
    controller.apply(End(random.choice(running)), 0.0)
    controller.apply(Submit("job", random.choice([64, 128, 256])), 0.0)
    return timed(lambda: service.once(whole=False))


if __name__ == "__main__":
    main()
