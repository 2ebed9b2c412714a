"""A plant as plain lists and numbers, with every name, and with optical switches where there are any."""

from __future__ import annotations

from typing import Any

import numpy as np

from ropewalk.errors import ClusterError
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.plant import Plant

_SPEEDS = ("nic_bandwidth", "link_bandwidth", "server_bandwidth")
_NAMES = ("server_names", "leaf_names", "spine_names")


def plant_document(plant: Plant) -> dict[str, Any]:
    """The plant, complete.

    >>> from ropewalk.tenancy.plant import plant
    >>> small = plant("leaf-spine:2x2x4", gpus_per_server=2)
    >>> plant_from_document(plant_document(small)).server_leaf.tolist(), plant_document(small)["cables"]
    ([0, 0, 1, 1], [[1, 1], [1, 1]])
    """
    document: dict[str, Any] = {
        "name": plant.name,
        "gpus_per_server": plant.gpus_per_server,
        "server_leaf": plant.server_leaf.tolist(),
        "cables": plant.cables.tolist(),
        **{name: getattr(plant, name) for name in _SPEEDS},
        **{name: list(getattr(plant, name)) for name in _NAMES},
    }
    if plant.rails > 1:
        document["rails"] = plant.rails
    if plant.cores:
        document["core_cables"] = plant.core_cables.tolist()
        document["core_names"] = list(plant.core_names)
    if isinstance(plant, OpticalPlant):
        document["spine_fibres"] = plant.spine_fibres.tolist()
        document["reconfiguration_s"] = plant.reconfiguration_s
    if isinstance(plant, CoreOpticalPlant):
        document["core_fibres"] = plant.core_fibres.tolist()
        document["home_cables"] = plant.home_cables.tolist()
        document["reconfiguration_s"] = plant.reconfiguration_s
    if isinstance(plant, PodOpticalPlant):
        document["circuits_in_pods"] = True
        document["reconfiguration_s"] = plant.reconfiguration_s
    return document


def plant_from_document(document: dict[str, Any]) -> Plant:
    """Read a plant back; it is checked as every plant is."""
    try:
        given: dict[str, Any] = {
            "name": document["name"],
            "gpus_per_server": document["gpus_per_server"],
            "server_leaf": np.array(document["server_leaf"], np.int32),
            "cables": np.array(document["cables"], np.int32),
            **{name: float(document[name]) for name in _SPEEDS},
            **{name: tuple(document[name]) for name in _NAMES},
        }
        if "rails" in document:
            given["rails"] = int(document["rails"])
        if "core_cables" in document:
            given["core_cables"] = np.array(document["core_cables"], np.int32)
            given["core_names"] = tuple(document["core_names"])
        if "core_fibres" in document:
            fibres = np.array(document["core_fibres"], np.int32)
            home = np.array(document["home_cables"], np.int32)
            delay_s = float(document["reconfiguration_s"])
            return CoreOpticalPlant(**given, core_fibres=fibres, home_cables=home, reconfiguration_s=delay_s)
        if document.get("circuits_in_pods"):
            return PodOpticalPlant(**given, reconfiguration_s=float(document["reconfiguration_s"]))
        if "spine_fibres" not in document:
            return Plant(**given)
        fibres = np.array(document["spine_fibres"], np.int32)
        return OpticalPlant(**given, spine_fibres=fibres, reconfiguration_s=float(document["reconfiguration_s"]))
    except (KeyError, TypeError, ValueError) as problem:
        raise ClusterError(f"the plant cannot be read ({problem!r}): give one written by ropewalk") from problem
