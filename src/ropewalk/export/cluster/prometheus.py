"""The state of a cluster as Prometheus reads it: gauges in the text format, in a fixed order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.allocation import Reason, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.fibres import free_fibres
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_fibres import free_pod_fibres
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant

Sample = tuple[Mapping[str, str], float]
"""(labels, value)."""
STAGES = ("server", "leaf", "clos", "ocs", "ocs-core", "ocs-pods", "shared", "shard")


def metrics(state: Occupancy, waiting: Iterable[Waiting] = ()) -> str:
    """Everything worth a graph: GPUs, jobs by how they were placed, links, and why others wait."""
    plant = state.plant
    drained = plant.gpus - state.used - state.free
    reasons = Counter(one.reason for one in waiting)
    stages = Counter(str(job.stage) for job in state.jobs.values())
    cables = int(plant.cables.sum())
    reserved = sum(len(job.links) for job in state.jobs.values())
    of_leaf, of_spine = _free_ports(state)
    families: list[tuple[str, str, list[Sample]]] = [
        (
            "gpus",
            "GPUs by state; drained GPUs are idle and not allocated.",
            [
                ({"state": "free"}, state.free),
                ({"state": "used"}, state.used),
                ({"state": "drained"}, drained),
            ],
        ),
        ("jobs_running", "Running jobs, by placement.", [({"stage": s}, stages[s]) for s in STAGES]),
        (
            "jobs_waiting",
            "Waiting jobs, by reason.",
            [({"reason": reason.value}, reasons[reason]) for reason in Reason],
        ),
        (
            "links",
            "Cables of leafs towards spines, or fibres towards optical switches, by allocation.",
            [({"state": "free"}, cables - reserved), ({"state": "reserved"}, reserved)],
        ),
        (
            "leaf_free_gpus",
            "Free GPUs of a leaf, or of a unit of rails.",
            [({"leaf": name}, int(n)) for name, n in zip(plant.unit_names, state.free_on_leaf, strict=True)],
        ),
        (
            "leaf_free_uplinks",
            "Free cables of a leaf.",
            [({"leaf": name}, int(n)) for name, n in zip(plant.leaf_names, of_leaf, strict=True)],
        ),
        (
            "spine_free_ports",
            "Free cables of a spine.",
            [({"spine": name}, int(n)) for name, n in zip(plant.spine_names, of_spine, strict=False)],
        ),
        ("job_gpus", "GPUs of a job.", [({"job": job.job}, job.size) for job in state.jobs.values()]),
    ]
    if plant.cores:
        ports = zip(plant.core_names, state.core_links.ports_above, strict=True)
        families.append(("core_free_ports", "Free cables of a core.", [({"core": name}, int(n)) for name, n in ports]))
    return "".join(_family(*family) for family in families)


def _free_ports(state: Occupancy) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Free cables of every leaf and of every spine that forwards packets; of an optical plant, free fibres."""
    if isinstance(state.plant, OpticalPlant | PodOpticalPlant):
        fibres = free_fibres(state) if isinstance(state.plant, OpticalPlant) else free_pod_fibres(state)
        return fibres.of_leaf, fibres.of_spine
    return state.ports_of_leaf, state.ports_of_spine


def _family(name: str, about: str, samples: list[Sample]) -> str:
    full = f"ropewalk_cluster_{name}"
    lines = [f"# HELP {full} {about}", f"# TYPE {full} gauge"]
    for labels, value in samples:
        told = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{full}{{{told}}} {value:g}" if value != int(value) else f"{full}{{{told}}} {int(value)}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
