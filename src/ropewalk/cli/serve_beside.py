"""Schedulers beside the service: their routes, and the threads that look at them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ropewalk.cli.serve_kubernetes_options import KubernetesOptions
from ropewalk.cli.serve_slurm_options import SlurmOptions

if TYPE_CHECKING:
    from ropewalk.serve.writer import Writer


@dataclass
class Beside:
    """What stands beside a service."""

    handlers: list[Any] = field(default_factory=list)
    shared: dict[str, Any] = field(default_factory=dict)
    """What routes find in `app.state`."""
    threads: list[Any] = field(default_factory=list)
    metrics: dict[str, Callable[[], dict[str, float]]] = field(default_factory=dict)

    def start(self) -> None:
        for one in self.threads:
            one.start()

    def stop(self) -> None:
        for one in self.threads:
            one.stop()


def check_beside(slurm: SlurmOptions, kubernetes: KubernetesOptions) -> None:
    """Say what is wrong with the options before anything is opened."""
    slurm.settings()
    kubernetes.api_server()


def schedulers(slurm: SlurmOptions, kubernetes: KubernetesOptions, writer: Writer, tell: Callable[..., None]) -> Beside:
    """Everything beside a service with this writer."""
    from ropewalk.serve.kubernetes.extend import Extender
    from ropewalk.serve.kubernetes.pod_watch import PodWatch
    from ropewalk.serve.kubernetes.routes import handlers as kubernetes_handlers
    from ropewalk.serve.slurm.bridge import Bridge
    from ropewalk.serve.slurm.routes import handlers as slurm_handlers

    beside = Beside([*slurm_handlers, *kubernetes_handlers])
    settings, api_server = slurm.settings(), kubernetes.api_server()
    if settings is not None:
        bridge = Bridge(writer, settings, tell)
        beside.shared["slurm"] = bridge
        beside.threads.append(bridge)
        beside.metrics["slurm"] = bridge.metrics
    resource = kubernetes.kubernetes_resource
    beside.shared["kubernetes"] = Extender(writer, resource, api_server)
    if api_server is not None:
        beside.threads.append(PodWatch(writer, api_server, resource, tell, kubernetes.poll_s()))
    return beside
