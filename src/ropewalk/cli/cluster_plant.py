"""The cluster that a command is about: a leaf-spine expression or a scheduler's file, and what files leave out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.lists import split
from ropewalk.errors import ClusterError, InputError
from ropewalk.files import is_file, is_there

if TYPE_CHECKING:
    from ropewalk.tenancy.occupancy import Occupancy
    from ropewalk.tenancy.plant import Plant
    from ropewalk.tenancy.policies import Policy

WHERE = "The cluster"
USUAL_GPUS, USUAL_PORTS, USUAL_BANDWIDTH, USUAL_SERVER_BANDWIDTH = 8, 64, "100Gbps", "1000Gbps"
"""Where neither a cluster nor an option says otherwise."""
BARE = "leaf-spine"
"""Without numbers: the largest two tiers that its switches allow."""

CLUSTER = typer.Option(
    None,
    help="A cluster file, a preset, or servers x GPUs (64x8) on a leaf-spine, fat-tree or rail network (--fabric).",
    rich_help_panel=WHERE,
)
FABRIC = typer.Option(
    BARE, help="leaf-spine:LEAFSxSPINESxGPUS[xCABLES], by rail rails:LEAFSxSPINESxSERVERS, rail-only:UNITSxSERVERS, "
    "three tiers fat-tree:RADIX[,PODS[,UPLINKS]], or a file: Slurm topology.conf or .yaml, Volcano HyperNodes "
    "(.yaml), a table of leafs (.csv). leaf-spine, fat-tree, rails, rail-only alone, or with a ratio such as "
    "leaf-spine:2to1: the largest of switches with --ports.",
    rich_help_panel=WHERE,
)  # fmt: skip
PORTS = typer.Option(
    USUAL_PORTS, min=2, help="Ports per switch, for a --fabric without sizes, such as leaf-spine or fat-tree:2to1.",
    rich_help_panel=WHERE,
)  # fmt: skip
GPUS_PER_SERVER = typer.Option(
    None, min=1, rich_help_panel=WHERE,
    help="GPUs per server, each with its own NIC.  [default: 8, or fewer if leafs cannot hold whole servers of 8]",
)  # fmt: skip
BANDWIDTH = typer.Option(
    None, help="Bandwidth of one NIC per direction.  [default: that of the cluster, or 100Gbps]", rich_help_panel=WHERE
)
LINK_BANDWIDTH = typer.Option(
    None, help="Bandwidth of a cable between switches.  [default: that of a NIC]", rich_help_panel=WHERE
)
SERVER_BANDWIDTH = typer.Option(
    None,
    "--nvlink-bandwidth",
    "--server-bandwidth",
    help="Bandwidth of one GPU inside its server per direction.  [default: that of the cluster, or 1000Gbps]",
    rich_help_panel=WHERE,
)
SPINES = typer.Option(None, min=1, help="Number of spines, if the file does not list them.", rich_help_panel=WHERE)
CABLES = typer.Option(1, min=1, help="Parallel cables between a leaf and a spine, for files.", rich_help_panel=WHERE)
LEVELS = typer.Option(
    None, help="Columns of a .csv from the outermost switch to the leaf, such as ASW.", rich_help_panel=WHERE
)
UNDER = typer.Option(None, help="Only the leafs below this switch of the file.", rich_help_panel=WHERE)
JOIN_PODS = typer.Option(
    False, "--join-pods", help="Treat leafs below different switches as one cluster.", rich_help_panel=WHERE
)
NODES = typer.Option(
    None, metavar="FILE", help="Nodes with labels, for HyperNodes that select by pattern.", rich_help_panel=WHERE
)
TOPOLOGY_FORMAT = typer.Option(
    None, help="Format of the file, if its extension does not tell: slurm-conf, slurm-yaml, volcano, leaf-csv.",
    rich_help_panel=WHERE,
)  # fmt: skip
STATE = typer.Option(
    None, metavar="FILE", help="State file (JSON) with the current allocations; without it the cluster is empty."
)
ISOLATE_OF_STATE = typer.Option(
    None,
    "--isolate",
    help="Isolation policy: {policies.isolates}, or none.  [default: that of the state file, or vclos]",
)


@dataclass(frozen=True)
class PlantOptions:
    """What was typed about the cluster."""

    cluster: str | None = None
    fabric: str = BARE
    ports: int = USUAL_PORTS
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
    if not is_file_name(asked.fabric):
        return _built(asked, nic, link, inside)
    from ropewalk.tenancy.imports import AssumedCabling, Hints, read_nodes, read_plant

    hints = Hints(
        nodes=None if asked.nodes is None else read_nodes(asked.nodes),
        levels=() if asked.levels is None else split(asked.levels),
    )
    cabling = AssumedCabling(
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


def plant_for(asked: PlantOptions, state: Path | None) -> Plant:
    """The cluster that the options describe; where they say nothing, the one that a state file says it is of."""
    if state is not None and asked == PlantOptions() and is_file(state):
        from ropewalk.serve.state_file import plant_of_state

        kept = plant_of_state(state)
        if kept is not None:
            return kept[0]
    return plant_of(asked)


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


def is_file_name(text: str) -> bool:
    """Does it name a cluster file rather than a preset?"""
    from ropewalk.tenancy.plant_names import NAMES

    return text.partition(":")[0] not in NAMES and (bool(Path(text).suffix) or is_there(text))


def _built(asked: PlantOptions, nic: float, link: float, inside: float) -> Plant:
    from ropewalk.tenancy.plant import plant
    from ropewalk.tenancy.plant_names import complete, servers_of

    _refuse_options_of_files(asked, asked.fabric)
    text = complete(asked.fabric, asked.ports, asked.gpus_per_server)
    if text == asked.fabric and asked.ports != USUAL_PORTS:
        raise InputError(f"--ports is for networks without sizes, and {text} has its own: leave it out")
    each = asked.gpus_per_server or servers_of(text)
    found = plant(text, each, bandwidth=nic, server_bandwidth=inside)
    if asked.gpus_per_server is None and each != USUAL_GPUS:
        plural = "s" * (each != 1)
        typer.echo(f"servers of {each} GPU{plural}, which leafs of {text} hold whole (--gpus-per-server)", err=True)
    return found if found.link_bandwidth == link else replace(found, link_bandwidth=link)


def _refuse_options_of_files(asked: PlantOptions, named: str) -> None:
    only_files = {
        "--spines": asked.spines,
        "--levels": asked.levels,
        "--under": asked.under,
        "--nodes": asked.nodes,
        "--topology-format": asked.topology_format,
        "--join-pods": asked.join_pods or None,
        "--cables": None if asked.cables == 1 else asked.cables,
    }
    for option, value in only_files.items():
        if value is not None:
            raise InputError(f"{option} is for topology files, and {named} is not one: leave it out")


def read_state(policy: Policy, plant: Plant, path: Path | None) -> Occupancy:
    """The state in a file, or the empty plant; refused where the policy does not know such a plant."""
    from ropewalk.tenancy.occupancy import Occupancy
    from ropewalk.tenancy.policies import instead_of
    from ropewalk.tenancy.saved_state import read_state_document

    refused = policy.applies((), plant)
    if refused is not None:
        raise ClusterError(f"policy {policy.name} {refused}: {instead_of(policy, (), plant)}")
    if path is None:
        return policy.occupancy(plant)
    return Occupancy.from_document(policy.plant(plant), read_state_document(path))
