"""What OCS-vClos asks of optical switches and spines: which fibres to join, and which circuit a packet leaves over.

A leaf has one fibre to every optical switch, so (leaf, switch) names it; a spine may have several, and any free one of
them serves. A leaf may have circuits of several jobs, or of one job several, to the same spine; the destination alone
then does not tell a spine which to take. The rule is fixed by where a packet comes in: what arrives over a circuit of
virtual spine i leaves over the circuit of virtual spine i to the virtual leaf of its destination.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass

from ropewalk.export.cluster.addresses import AddressPlan
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.optical.circuits import circuits_of, is_straight, virtual_leaf
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.plant import Plant

COLUMNS = ("switch", "leaf", "far_end")
FORMAT = "ropewalk-circuits"
VERSION = 1
Fibre = tuple[int, int]
"""(leaf, optical switch)."""


@dataclass(frozen=True)
class SpineRule:
    """What comes in over some fibres for some GPUs leaves over one fibre."""

    spine: int
    virtual_spine: int
    arrives: tuple[Fibre, ...]
    gpus: tuple[int, ...]
    """Destinations: the GPUs of one virtual leaf."""
    leaves: Fibre


def spine_rules(plant: OpticalPlant, job: Allocation) -> tuple[SpineRule, ...]:
    """One rule for every circuit that ends in a spine; none for two leafs that are joined straight."""
    if job.stage != "ocs" or is_straight(plant, job):
        return ()
    width, circuits = len(job.spines), circuits_of(plant, job)
    rows = [circuits[first : first + width] for first in range(0, len(circuits), width)]
    found = []
    for place, spine in enumerate(job.spines):
        down = [(row[place].leaf, row[place].switch) for row in rows]
        for number, leaves in enumerate(down):
            gpus = tuple(gpu for rank, gpu in enumerate(job.gpus) if virtual_leaf(job, rank) == number)
            arrives = tuple(fibre for fibre in down if fibre != leaves)
            found.append(SpineRule(spine, place, arrives, gpus, leaves))
    return tuple(found)


def circuits_csv(plant: OpticalPlant, job: Allocation) -> str:
    """A line a circuit: the optical switch, the leaf whose fibre it joins, and the spine or leaf at the other end."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(joined(plant, job))
    return text.getvalue()


def circuits_json(plant: OpticalPlant, job: Allocation, addresses: AddressPlan | None = None) -> str:
    """The same, with how long to wait for mirrors and with the rules of spines; destinations by address if known."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "plant": plant.name,
        "job": job.job,
        "ready_after_s": plant.reconfiguration_s,
        "circuits": [dict(zip(COLUMNS, row, strict=True)) for row in joined(plant, job)],
        "spine_rules": [
            {
                "spine": plant.spine_names[rule.spine],
                "match": {
                    "arrives_over": [_fibre(plant, fibre) for fibre in rule.arrives],
                    "destinations": [_nic(plant, gpu, addresses) for gpu in rule.gpus],
                },
                "action": {"leave_over": _fibre(plant, rule.leaves)},
            }
            for rule in spine_rules(plant, job)
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def circuit_files(plant: Plant, job: Allocation, addresses: AddressPlan | None = None) -> dict[str, str]:
    """File name -> content, for a job with circuits; nothing for any other."""
    if job.stage != "ocs" or not isinstance(plant, OpticalPlant):
        return {}
    return {"circuits.csv": circuits_csv(plant, job), "circuits.json": circuits_json(plant, job, addresses)}


def joined(plant: OpticalPlant, job: Allocation) -> list[tuple[str, str, str]]:
    """(optical switch, leaf, spine or leaf at the other end) of every circuit, by name."""
    names = plant.spine_names
    return [
        (
            names[plant.packet_spines + one.switch],
            plant.leaf_names[one.leaf],
            names[one.spine] if one.spine >= 0 else plant.leaf_names[one.peer],
        )
        for one in sorted(circuits_of(plant, job))
    ]


def _fibre(plant: OpticalPlant, fibre: Fibre) -> dict[str, str]:
    leaf, switch = fibre
    return {"leaf": plant.leaf_names[leaf], "switch": plant.spine_names[plant.packet_spines + switch]}


def _nic(plant: Plant, gpu: int, addresses: AddressPlan | None) -> str:
    server, place = divmod(gpu, plant.gpus_per_server)
    return f"{plant.server_names[server]}.{place}" if addresses is None else f"{addresses.nics[gpu]}/32"
