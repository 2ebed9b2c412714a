"""What Kubernetes needs to know of a plant: node labels, Kueue's topology, Volcano's HyperNodes, an extender's entry.

>>> from ropewalk.tenancy.plant import plant
>>> print(hypernodes(plant("leaf-spine:1x1x4", gpus_per_server=4))[0]["spec"])
{'tier': 1, 'tierName': 'leaf', 'members': [{'type': 'Node', 'selector': {'exactMatch': {'name': 'server0'}}}]}
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ropewalk.errors import ClusterError, Findings, InputError
from ropewalk.files import is_folder, is_there, write_whole
from ropewalk.tenancy.plant import Plant

LEAF = "ropewalk.io/leaf"
PLANT = "ropewalk.io/plant"
HOSTNAME = "kubernetes.io/hostname"
VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize"}
_DNS = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class KubernetesSite:
    """How kube-scheduler reaches the controller, and what GPUs are called."""

    url: str = "http://127.0.0.1:8787"
    resource: str = "nvidia.com/gpu"
    name: str = "ropewalk"
    """Of the plant in labels, and of the objects that are made."""
    bind: bool = False
    """Whether the controller binds pods itself."""

    def __post_init__(self) -> None:
        findings = Findings(ClusterError, "files for Kubernetes")
        if not re.fullmatch(r"https?://[^\s\"']+", self.url):
            findings.add(f"url is {self.url!r}: write http://HOST:PORT or https://HOST:PORT")
        if not re.fullmatch(r"[a-z0-9.-]+/[A-Za-z0-9._-]+", self.resource):
            findings.add(f"resource is {self.resource!r}: write it like nvidia.com/gpu")
        if not _DNS.fullmatch(self.name):
            findings.add(f"name is {self.name!r}: use lowercase letters, digits and -")
        findings.raise_if_any()


def node_labels(plant: Plant, site: KubernetesSite) -> list[dict[str, Any]]:
    """A Node for every server with the labels of its leaf; applied by the server side, nothing else changes."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {PLANT: site.name, LEAF: plant.unit_names[plant.server_unit[server]]},
            },
        }
        for server, name in enumerate(plant.server_names)
    ]


def kueue(plant: Plant, site: KubernetesSite) -> list[dict[str, Any]]:
    """A Topology of leafs and hosts, and the ResourceFlavor of the nodes in it."""
    return [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "Topology",
            "metadata": {"name": site.name},
            "spec": {"levels": [{"nodeLabel": LEAF}, {"nodeLabel": HOSTNAME}]},
        },
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "ResourceFlavor",
            "metadata": {"name": site.name},
            "spec": {"nodeLabels": {PLANT: site.name}, "topologyName": site.name},
        },
    ]


def hypernodes(plant: Plant) -> list[dict[str, Any]]:
    """A HyperNode for every leaf that has servers, and one above them."""
    leafs = [leaf for leaf in range(plant.leafs) if plant.servers_per_leaf[leaf]]
    found = []
    for leaf in leafs:
        first, behind = int(plant.first_server[leaf]), int(plant.first_server[leaf + 1])
        found.append(_hypernode(plant.leaf_names[leaf], 1, "leaf", "Node", plant.server_names[first:behind]))
    names = [plant.leaf_names[leaf] for leaf in leafs]
    top = next(name for name in ("spines", "all-spines", "above-all-leafs") if name not in names)
    return [*found, _hypernode(top, 2, "spines", "HyperNode", names)]


def scheduler(site: KubernetesSite) -> list[dict[str, Any]]:
    """The entry of kube-scheduler's configuration; pods without GPUs are never sent."""
    extender = {
        "urlPrefix": site.url.rstrip("/") + "/v1/kubernetes",
        **VERBS,
        **({"bindVerb": "bind"} if site.bind else {}),
        "weight": 100,
        "enableHTTPS": site.url.startswith("https:"),
        "httpTimeout": "2s",
        "nodeCacheCapable": True,
        "managedResources": [{"name": site.resource, "ignoredByScheduler": False}],
        "ignorable": True,
    }
    return [{
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [extender],
    }]  # fmt: skip


def kubernetes_files(plant: Plant, site: KubernetesSite) -> dict[str, str]:
    """File name -> content."""
    _check_names(plant)
    readme = (resources.files("ropewalk.serve.kubernetes") / "README.md").read_text(encoding="utf-8")
    values = {"PLANT": plant.name, "RESOURCE": site.resource, "GPUS": str(plant.gpus_per_server)}
    return {
        "node-labels.yaml": _yaml(node_labels(plant, site)),
        "kueue.yaml": _yaml(kueue(plant, site)),
        "volcano-hypernodes.yaml": _yaml(hypernodes(plant)),
        "kube-scheduler.yaml": _yaml(scheduler(site)),
        "README.md": re.sub(r"@([A-Z]+)@", lambda found: values[found[1]], readme),
    }


def write_kubernetes_files(files: dict[str, str], folder: str | Path) -> tuple[Path, ...]:
    """Write all of them, each whole."""
    target = Path(folder)
    if is_there(target) and not is_folder(target):
        raise InputError(f"{target} is a file: give a folder")
    for name, content in files.items():
        write_whole(target / name, content)
    return tuple(target / name for name in files)


def _hypernode(name: str, tier: int, tier_name: str, kind: str, members: list[str] | tuple[str, ...]) -> dict[str, Any]:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            "tierName": tier_name,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members],
        },
    }


def _yaml(documents: list[dict[str, Any]]) -> str:
    import yaml

    return yaml.safe_dump_all(documents, sort_keys=False, explicit_start=True)


def _check_names(plant: Plant) -> None:
    findings = Findings(ClusterError, f"plant {plant.name}")
    for name in plant.server_names:
        if not all(_DNS.fullmatch(part) for part in name.split(".")):
            findings.add(
                f"server {name!r} is not a valid node name in Kubernetes: use lowercase letters, digits, - and ."
            )
    for name in plant.leaf_names:
        if not _DNS.fullmatch(name) or not _LABEL.fullmatch(name):
            findings.add(f"leaf {name!r} is not a valid name in Kubernetes: use lowercase letters, digits and -")
    findings.raise_if_any()
