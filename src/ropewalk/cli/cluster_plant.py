"""The cluster that a command is about: a leaf-spine expression or a scheduler's file, and what files leave out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.lists import split
from ropewalk.errors import ClusterError, InputError

if TYPE_CHECKING:
    from ropewalk.tenancy.drained import Drained
    from ropewalk.tenancy.occupancy import Occupancy
    from ropewalk.tenancy.plant import Plant
    from ropewalk.tenancy.policies import Policy

WHERE = "The cluster"
USUAL_GPUS, USUAL_BANDWIDTH, USUAL_SERVER_BANDWIDTH = 8, "100Gbps", "1000Gbps"
"""Where neither a cluster nor an option says otherwise."""
BARE = "leaf-spine"
"""Without numbers: the largest two tiers that its switches allow."""

CLUSTER = typer.Option(
    None,
    help="A cluster file, a preset or servers x GPUs (64x8), whose network is a leaf-spine with numbers (--fabric).",
    rich_help_panel=WHERE,
)
FABRIC = typer.Option(
    BARE, help="leaf-spine:LEAFSxSPINESxGPUS[xCABLES], or a file: Slurm topology.conf or .yaml, Volcano HyperNodes "
    "(.yaml), a table of leafs (.csv). leaf-spine alone is what two tiers of switches with --ports hold.",
    rich_help_panel=WHERE,
)  # fmt: skip
PORTS = typer.Option(64, min=2, help="Ports of a switch, for leaf-spine without numbers.", rich_help_panel=WHERE)
GPUS_PER_SERVER = typer.Option(
    None, min=1, help="GPUs of a server, each with a NIC of its own.  [default: 8]", rich_help_panel=WHERE
)
BANDWIDTH = typer.Option(
    None, help="Speed of one NIC, one direction; that of the cluster, or 100Gbps, unless given.", rich_help_panel=WHERE
)
LINK_BANDWIDTH = typer.Option(
    None, help="Speed of a leaf-spine cable; that of a NIC unless given.", rich_help_panel=WHERE
)
SERVER_BANDWIDTH = typer.Option(
    None,
    "--nvlink-bandwidth",
    "--server-bandwidth",
    help="Speed of one GPU inside its server, one direction; that of the cluster, or 1000Gbps, unless given.",
    rich_help_panel=WHERE,
)
SPINES = typer.Option(None, min=1, help="Spines, where a file does not list them.", rich_help_panel=WHERE)
CABLES = typer.Option(1, min=1, help="Parallel cables between a leaf and a spine, for files.", rich_help_panel=WHERE)
LEVELS = typer.Option(
    None, help="Columns of a .csv from the outermost switch to the leaf, such as ASW.", rich_help_panel=WHERE
)
UNDER = typer.Option(None, help="Of a file, only the leafs below this switch.", rich_help_panel=WHERE)
JOIN_PODS = typer.Option(
    False, "--join-pods", help="Take leafs below different switches as one cluster.", rich_help_panel=WHERE
)
NODES = typer.Option(
    None, metavar="FILE", help="Nodes with labels, for HyperNodes that pick by pattern.", rich_help_panel=WHERE
)
TOPOLOGY_FORMAT = typer.Option(
    None, help="Format of the file, where its ending does not tell: slurm-conf, slurm-yaml, volcano, leaf-csv.",
    rich_help_panel=WHERE,
)  # fmt: skip
STATE = typer.Option(None, metavar="FILE", help="Who holds what now (JSON); without it the cluster is empty.")
ISOLATE_ONE = typer.Option("vclos", "--isolate", help="The policy that isolates jobs: {policies.isolates}, or none.")


@dataclass(frozen=True)
class PlantOptions:
    """What was typed about the cluster."""

    cluster: str | None = None
    fabric: str = BARE
    ports: int = 64
    gpus_per_server: int | None = None
    bandwidth: str | None = None
    link_bandwidth: str | None = None
    server_bandwidth: str | None = None
    spines: int | None = None
    cables: int = 1
    levels: str | None = None
    under: str | None = None
    join_pods: bool = False
    nodes: Path | None = None
    topology_format: str | None = None


def plant_of(asked: PlantOptions) -> Plant:
    """The cluster that the options describe."""
    if asked.cluster is not None:
        return _of_cluster(asked)
    nic = units.bandwidth(asked.bandwidth or USUAL_BANDWIDTH)
    link = nic if asked.link_bandwidth is None else units.bandwidth(asked.link_bandwidth)
    inside = units.bandwidth(asked.server_bandwidth or USUAL_SERVER_BANDWIDTH)
    if not _is_file(asked.fabric):
        return _built(asked, nic, link, inside)
    from ropewalk.tenancy.imports import Cabling, Hints, read_nodes, read_plant

    hints = Hints(
        nodes=None if asked.nodes is None else read_nodes(asked.nodes),
        levels=() if asked.levels is None else split(asked.levels),
    )
    cabling = Cabling(
        gpus_per_server=asked.gpus_per_server or USUAL_GPUS,
        spines=asked.spines,
        cables=asked.cables,
        nic_bandwidth=nic,
        link_bandwidth=link,
        server_bandwidth=inside,
        under=asked.under,
        join_pods=asked.join_pods,
    )
    return read_plant(asked.fabric, cabling, format_name=asked.topology_format, hints=hints)


def _of_cluster(asked: PlantOptions) -> Plant:
    """The plant of a cluster that is described as in every other command."""
    from ropewalk.hardware import Given, read_cluster
    from ropewalk.tenancy.of_cluster import plant_of_cluster

    _refuse_options_of_files(asked, f"--cluster {asked.cluster}")
    given = Given(
        gpus_per_server=asked.gpus_per_server,
        nic_bandwidth=None if asked.bandwidth is None else units.bandwidth(asked.bandwidth),
        nvlink_bandwidth=None if asked.server_bandwidth is None else units.bandwidth(asked.server_bandwidth),
        network=None if asked.fabric == BARE else asked.fabric,
    )
    found = plant_of_cluster(read_cluster(asked.cluster, given))
    if asked.link_bandwidth is None:
        return found
    return replace(found, link_bandwidth=units.bandwidth(asked.link_bandwidth))


def _is_file(text: str) -> bool:
    return text.partition(":")[0] != BARE and (bool(Path(text).suffix) or Path(text).exists())


def _built(asked: PlantOptions, nic: float, link: float, inside: float) -> Plant:
    from ropewalk.tenancy.plant import plant
    from ropewalk.tenancy.sizing import rearrangeable

    _refuse_options_of_files(asked, asked.fabric)
    text = rearrangeable(asked.ports).expression if asked.fabric == BARE else asked.fabric
    found = plant(text, asked.gpus_per_server or USUAL_GPUS, bandwidth=nic, server_bandwidth=inside)
    return found if found.link_bandwidth == link else replace(found, link_bandwidth=link)


def _refuse_options_of_files(asked: PlantOptions, named: str) -> None:
    only_files = {
        "--spines": asked.spines,
        "--levels": asked.levels,
        "--under": asked.under,
        "--nodes": asked.nodes,
        "--topology-format": asked.topology_format,
        "--join-pods": asked.join_pods or None,
    }
    for option, value in only_files.items():
        if value is not None:
            raise InputError(f"{option} is for topology files, and {named} is not one: leave it out")


def read_state(policy: Policy, plant: Plant, path: Path | None) -> Occupancy:
    """The state in a file, or the empty plant."""
    from ropewalk.documents import decode, parse_json, read_bytes
    from ropewalk.tenancy.occupancy import Occupancy

    if path is None:
        return policy.occupancy(plant)
    subject = f"state {path}"
    document = parse_json(decode(read_bytes(path, subject, ClusterError), subject, ClusterError), subject, ClusterError)
    if not isinstance(document, dict):
        raise ClusterError(f"{subject} is no snapshot: give one that `ropewalk cluster allocate --save` wrote")
    return Occupancy.from_document(policy.plant(plant), document)


def drained_of(plant: Plant, parts: list[str]) -> Drained:
    """Parts as people type them: `leaf:leaf3`, `spine:2`, `link:leaf3-spine2`, `server:server7`, by name or number."""
    from ropewalk.tenancy.drained import Drained

    names = {"server": plant.server_names, "leaf": plant.leaf_names, "spine": plant.spine_names}
    found: dict[str, list[int]] = {kind: [] for kind in names}
    links = []
    for text in parts:
        kind, _, name = text.partition(":")
        if kind == "link":
            links.append(_link(plant, name, text))
        elif kind in names:
            found[kind].append(_numbered(names[kind], name, text))
        else:
            raise InputError(f"{text!r} names no part: write leaf:NAME, spine:NAME, server:NAME or link:LEAF-SPINE")
    return Drained(found["server"], found["leaf"], found["spine"], links)


def _link(plant: Plant, text: str, whole: str) -> tuple[int, int]:
    """A name may itself contain the sign between leaf and spine, so every place for it is tried."""
    for at, letter in enumerate(text):
        if letter == "-":
            ends = (_find(plant.leaf_names, text[:at]), _find(plant.spine_names, text[at + 1 :]))
            if ends[0] is not None and ends[1] is not None:
                return ends[0], ends[1]
    raise InputError(f"{whole!r} names no link of {plant.name}: write link:LEAF-SPINE, by names or numbers")


def _numbered(names: tuple[str, ...], text: str, whole: str) -> int:
    found = _find(names, text)
    if found is None:
        raise InputError(f"{whole!r} names nothing here: give a number below {len(names)} or a name such as {names[0]}")
    return found


def _find(names: tuple[str, ...], text: str) -> int | None:
    if text in names:
        return names.index(text)
    return int(text) if text.isdecimal() and int(text) < len(names) else None
