"""Addresses of a plant as a table, with a line a leaf, a NIC or a cable:

| kind | leaf | server | gpu | spine | cable | address | port |
|---|---|---|---|---|---|---|---|
| leaf | leaf0 | | | | | 10.0.0.0/26 | |
| nic | leaf0 | gpu000 | 0 | | | 10.0.0.1 | Ethernet0 (may be empty) |
| uplink | leaf0 | | | spine0 | 0 | 172.16.0.1 | |

`gpu` counts inside the server. The address of an uplink is the next hop: the spine's end of the cable.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from ropewalk.documents import read_text
from ropewalk.documents.from_csv import table_rows
from ropewalk.documents.numbers import whole
from ropewalk.errors import ClusterError, Findings
from ropewalk.export.cluster.addresses import AddressPlan, Cable
from ropewalk.export.cluster.names import Names
from ropewalk.tenancy.plant import Plant

HEADER = ("kind", "leaf", "server", "gpu", "spine", "cable", "address", "port")


def addresses_csv(plan: AddressPlan, plant: Plant) -> str:
    """The plan as the table above."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for leaf, subnet in enumerate(plan.subnets):
        writer.writerow(("leaf", plant.leaf_names[leaf], "", "", "", "", subnet, ""))
    for gpu, address in enumerate(plan.nics):
        server, place = divmod(gpu, plant.gpus_per_server)
        leaf_name = plant.leaf_names[plant.leaf_of_gpu[gpu]]
        port = plan.ports.get(gpu, "")
        writer.writerow(("nic", leaf_name, plant.server_names[server], place, "", "", address, port))
    for (leaf, spine, cable), address in sorted(plan.next_hops.items()):
        writer.writerow(("uplink", plant.leaf_names[leaf], "", "", plant.spine_names[spine], cable, address, ""))
    return text.getvalue()


def read_addresses(path: str | Path, plant: Plant) -> AddressPlan:
    """The addresses of a plant from its table, checked."""
    subject = f"address table {path}"
    text = read_text(Path(path), subject, ClusterError)
    rows = table_rows(text.splitlines(keepends=True), subject, ClusterError)
    _, header = next(rows, (1, []))
    if tuple(header) != HEADER:
        raise ClusterError(f"{subject}: line 1: the columns are {','.join(header)!r}: write {','.join(HEADER)}")
    findings = Findings(ClusterError, subject)
    table = _Table(plant)
    for line, cells in rows:
        try:
            table.add(dict(zip(HEADER, cells, strict=True)))
        except (ValueError, KeyError) as problem:
            reason = f"{problem} is not a name of {plant.name}" if isinstance(problem, KeyError) else problem
            findings.add(f"line {line}: {reason}: fix the line")
    for what, found, count in (("leafs", len(table.subnets), plant.leafs), ("NICs", len(table.nics), plant.gpus)):
        if found < count and not findings:
            findings.add(f"{count - found} {what} of {plant.name} have no address: add a line for each")
    findings.raise_if_any()
    plan = table.plan()
    plan.check(plant)
    return plan


class _Table:
    """What the lines said so far; a line that contradicts the plant or an earlier one is a ValueError."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        self.subnets: dict[int, IPv4Network] = {}
        self.nics: dict[int, IPv4Address] = {}
        self.next_hops: dict[Cable, IPv4Address] = {}
        self.ports: dict[int, str] = {}
        self._names = Names(plant)
        self._kinds: dict[str, Callable[[int, dict[str, str]], None]] = {
            "leaf": self._leaf,
            "nic": self._nic,
            "uplink": self._uplink,
        }

    def add(self, row: dict[str, str]) -> None:
        if row["kind"] not in self._kinds:
            raise ValueError(f"the kind {row['kind']!r} is not one of {', '.join(self._kinds)}")
        self._kinds[row["kind"]](self._names.leaf[row["leaf"]], row)

    def plan(self) -> AddressPlan:
        subnets = tuple(self.subnets[leaf] for leaf in range(self.plant.leafs))
        nics = tuple(self.nics[gpu] for gpu in range(self.plant.gpus))
        return AddressPlan(subnets, nics, self.next_hops, self.ports)

    def _leaf(self, leaf: int, row: dict[str, str]) -> None:
        if leaf in self.subnets:
            raise ValueError(f"the leaf {row['leaf']} is listed twice")
        self.subnets[leaf] = IPv4Network(row["address"])

    def _nic(self, leaf: int, row: dict[str, str]) -> None:
        gpu = self._names.gpu(row["server"], whole(row["gpu"]))
        if self.plant.leaf_of_gpu[gpu] != leaf:
            raise ValueError(f"{row['server']} is not on {row['leaf']}")
        if gpu in self.nics:
            raise ValueError(f"GPU {row['gpu']} of {row['server']} is listed twice")
        self.nics[gpu] = IPv4Address(row["address"])
        if row["port"]:
            self.ports[gpu] = row["port"]

    def _uplink(self, leaf: int, row: dict[str, str]) -> None:
        spine, cable = self._names.spine[row["spine"]], whole(row["cable"])
        if not 0 <= cable < self.plant.cables[leaf, spine]:
            raise ValueError(f"there is no cable {cable} from {row['leaf']} to {row['spine']}")
        if (leaf, spine, cable) in self.next_hops:
            raise ValueError(f"cable {cable} from {row['leaf']} to {row['spine']} is listed twice")
        self.next_hops[leaf, spine, cable] = IPv4Address(row["address"])
