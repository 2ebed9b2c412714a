"""Ends jobs whose pods are over: kube-scheduler tells an extender when pods come, and nobody when they go."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ropewalk.errors import InputError, RopewalkError
from ropewalk.serve.controller import Controller
from ropewalk.serve.kubernetes.api_server import ApiServer
from ropewalk.serve.kubernetes.gang import ACTOR, GANG
from ropewalk.serve.kubernetes.pods import Pod, read_pod
from ropewalk.serve.operation import End
from ropewalk.serve.writer import Writer

ANSWER_S = 30.0


@dataclass(frozen=True)
class Standing:
    """A live job that came from Kubernetes."""

    id: str
    gang: str
    since: float


def standing(controller: Controller) -> tuple[Standing, ...]:
    """Runs on the writer's thread."""
    return tuple(
        Standing(job.id, job.labels[GANG], job.submitted_at)
        for job in controller.state.jobs.values()
        if job.state != "ended" and job.owner == ACTOR and GANG in job.labels
    )


def over(jobs: Iterable[Standing], pods: Mapping[str, list[Pod]], now: float, patience_s: float) -> dict[str, str]:
    """Job -> outcome of those whose pods are all over.

    Pods that failed may be replaced by new ones, so a job without any pod left gets some time.
    """
    found = {}
    for job in jobs:
        phases = {pod.phase for pod in pods.get(job.gang, ())}
        if phases and phases <= {"Succeeded"}:
            found[job.id] = "done"
        elif phases <= {"Succeeded", "Failed"} and now - job.since > patience_s:
            found[job.id] = "failed" if phases else "lost"
    return found


class PodWatch:
    """One thread between a writer and an API server."""

    def __init__(
        self,
        writer: Writer,
        api_server: ApiServer,
        resource: str,
        tell: Callable[..., None],
        poll_s: float = 5.0,
        patience_s: float = 60.0,
    ) -> None:
        self._writer, self._api_server, self._resource, self._tell = writer, api_server, resource, tell
        self._poll_s, self._patience_s = poll_s, patience_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ropewalk-kubernetes", daemon=True)
        self.problem: str | None = None

    def start(self) -> PodWatch:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(self._api_server.timeout_s + 1)

    def once(self) -> dict[str, str]:
        """Look once; answers which jobs ended, and how. The jobs are read first, so that none is missed by its pods."""
        jobs = self._writer.read(standing).result(ANSWER_S)
        if not jobs:
            return {}
        found = over(jobs, by_gang(self._api_server.pods(), self._resource), time.time(), self._patience_s)
        for job, outcome in found.items():
            self._writer.submit(End(job, outcome, "its pods are over"), actor=ACTOR).result(ANSWER_S)
        return found

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.once()
                self.problem = None
            except RopewalkError as problem:
                if self.problem != str(problem):
                    self._tell("kubernetes-silent", level="warning", why=str(problem))
                self.problem = str(problem)
            self._stop.wait(self._poll_s)


def by_gang(documents: Iterable[Any], resource: str) -> dict[str, list[Pod]]:
    """Pods of every job; a pod that cannot be read is not ours."""
    found: dict[str, list[Pod]] = defaultdict(list)
    for document in documents:
        try:
            pod = read_pod(document, resource)
        except InputError:
            continue
        found[pod.gang].append(pod)
    return found
