"""Pods as the scheduler and the API server describe them, and the job that each belongs to.

Pods with the same label `ropewalk.io/job` in one namespace are one job; `ropewalk.io/pods` says how many there are. A
pod with GPUs and without the label is a job of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ropewalk.errors import ClusterError

JOB = "ropewalk.io/job"
PODS = "ropewalk.io/pods"
INDICES = (
    "ropewalk.io/rank",
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
    "training.kubeflow.org/replica-index",
)
"""Labels and annotations that say which of the pods of a job this is; the first that is there counts."""
MOST_PODS = 1 << 16
_NAME = re.compile(r"[a-z0-9A-Z][-a-z0-9A-Z_.]{0,252}")
_COUNT = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True)
class Pod:
    """One pod, as far as placing it matters."""

    namespace: str
    name: str
    uid: str
    gpus: int
    """Of all its containers; 0 for a pod that is not ours."""
    job: str
    pods: int
    """Of the job."""
    index: int | None = None
    """Which of them it is."""
    phase: str = "Pending"
    node: str = ""

    @property
    def gang(self) -> str:
        """The job by a name that no other job of the cluster has."""
        return f"{self.namespace}/{self.job}"


def read_pod(document: Any, resource: str) -> Pod:
    """A pod from its JSON; `resource` is what GPUs are called, such as nvidia.com/gpu."""
    if not isinstance(document, Mapping):
        raise ClusterError("the pod is not an object: send one as stored by the API server")
    metadata, spec, status = (_object(document, key) for key in ("metadata", "spec", "status"))
    labels, annotations = _object(metadata, "labels"), _object(metadata, "annotations")
    name = _name(metadata.get("name"), "the pod")
    namespace = _name(metadata.get("namespace") or "default", "the namespace")
    job = labels.get(JOB)
    phase, node = status.get("phase") or "Pending", spec.get("nodeName") or ""
    return Pod(
        namespace=namespace,
        name=name,
        uid=str(metadata.get("uid") or ""),
        gpus=_gpus(spec, resource),
        job=f"pod:{name}" if job is None else _name(job, f"the label {JOB}"),
        pods=1 if job is None else _pods(labels),
        index=_index(labels, annotations),
        phase=str(phase),
        node=str(node),
    )


def _pods(labels: Mapping[str, Any]) -> int:
    found = labels.get(PODS, "1")
    if not isinstance(found, str) or not _COUNT.fullmatch(found) or not 1 <= int(found) <= MOST_PODS:
        raise ClusterError(f"the label {PODS} is {found!r}: write the number of pods of the job, 1 to {MOST_PODS}")
    return int(found)


def _index(labels: Mapping[str, Any], annotations: Mapping[str, Any]) -> int | None:
    for key in INDICES:
        found = labels.get(key, annotations.get(key))
        if isinstance(found, str) and _COUNT.fullmatch(found):
            return int(found)
    return None


def _gpus(spec: Mapping[str, Any], resource: str) -> int:
    """Limits count for GPUs; requests where there are none. Init containers run before and use the same ones."""
    containers = spec.get("containers", [])
    if not isinstance(containers, list):
        raise ClusterError("spec.containers is not a list: send a pod as stored by the API server")
    total = 0
    for container in containers:
        resources = _object(container if isinstance(container, Mapping) else {}, "resources")
        found = _object(resources, "limits").get(resource, _object(resources, "requests").get(resource, "0"))
        if not _COUNT.fullmatch(str(found)):
            raise ClusterError(f"{resource} is {found!r}: ask for a whole number of GPUs")
        total += int(found)
    return total


def _object(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = parent.get(key)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ClusterError(f"{key} of the pod is not an object: send a pod as stored by the API server")
    return found


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ClusterError(f"{what} is called {str(value)[:80]!r}: that is not a valid name in Kubernetes")
    return value
