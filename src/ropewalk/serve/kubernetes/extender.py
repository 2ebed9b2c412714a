"""The protocol of scheduler extenders (k8s.io/kube-scheduler/extender/v1): what comes in, what goes out.

The types have no names of their own for JSON, so kube-scheduler writes them as in Go (`Pod`, `NodeNames`) and reads
them in any case, as Go does; so does this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ropewalk.errors import ClusterError
from ropewalk.serve.kubernetes.pods import Pod, read_pod

MOST_PRIORITY = 10
"""MaxExtenderPriority: kube-scheduler scales 0 … 10 to its own scores."""
MOST_NODES = 1 << 16


@dataclass(frozen=True)
class ExtenderArgs:
    """ExtenderArgs: a pod and the nodes that every other plugin would take."""

    pod: Pod
    nodes: tuple[str, ...]
    documents: tuple[Any, ...] | None = None
    """The nodes themselves, where the extender is not `nodeCacheCapable`."""


@dataclass(frozen=True)
class Binding:
    """ExtenderBindingArgs."""

    namespace: str
    name: str
    uid: str
    node: str


def read_candidates(document: Any, resource: str) -> ExtenderArgs:
    given = _fields(document)
    pod = read_pod(given.get("pod"), resource)
    names, nodes = given.get("nodenames"), given.get("nodes")
    if names is not None:
        return ExtenderArgs(pod, _names(names))
    items = nodes.get("items") if isinstance(nodes, Mapping) else None
    if not isinstance(items, list) or len(items) > MOST_NODES:
        raise ClusterError("there are neither NodeNames nor Nodes: send ExtenderArgs of kube-scheduler")
    return ExtenderArgs(pod, _names([_node_name(item) for item in items]), tuple(items))


def read_binding(document: Any) -> Binding:
    given = _fields(document)
    values = [given.get(key) for key in ("podnamespace", "podname", "poduid", "node")]
    if not all(isinstance(value, str) and value for value in values):
        raise ClusterError("PodName, PodNamespace, PodUID or Node is missing: send ExtenderBindingArgs")
    return Binding(*map(str, values))


def filter_result(asked: ExtenderArgs, allowed: Sequence[str], why_not: str) -> dict[str, Any]:
    """ExtenderFilterResult: other nodes would not do if pods were preempted there either."""
    kept = set(allowed)
    refused = {name: why_not for name in asked.nodes if name not in kept}
    found: dict[str, Any] = {"Nodes": None, "NodeNames": None}
    if asked.documents is None:
        found["NodeNames"] = [name for name in asked.nodes if name in kept]
    else:
        pairs = zip(asked.nodes, asked.documents, strict=True)
        found["Nodes"] = {"metadata": {}, "items": [node for name, node in pairs if name in kept]}
    return found | {"FailedNodes": {}, "FailedAndUnresolvableNodes": refused, "Error": ""}


def filter_error(message: str) -> dict[str, Any]:
    return {
        "Nodes": None, "NodeNames": None, "FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": message
    }  # fmt: skip


def priorities(nodes: Sequence[str], best: str | None) -> list[dict[str, Any]]:
    """HostPriorityList: one node is the pod's own, all others are alike."""
    return [{"Host": name, "Score": MOST_PRIORITY if name == best else 0} for name in nodes]


def binding_result(error: str = "") -> dict[str, str]:
    """ExtenderBindingResult."""
    return {"Error": error}


def _fields(document: Any) -> dict[str, Any]:
    if not isinstance(document, Mapping):
        raise ClusterError("the body is not an object: send what kube-scheduler sends")
    return {str(key).lower(): value for key, value in document.items()}


def _names(names: object) -> tuple[str, ...]:
    if not isinstance(names, list) or len(names) > MOST_NODES or not all(isinstance(name, str) for name in names):
        raise ClusterError(f"the nodes are not a list of at most {MOST_NODES} names: send ExtenderArgs")
    return tuple(names)


def _node_name(item: Any) -> Any:
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    return metadata.get("name") if isinstance(metadata, Mapping) else None
