"""Options of a cluster: the same words with the same meaning in every command that runs on GPUs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import typer

from ropewalk import units

if TYPE_CHECKING:
    from ropewalk.hardware import Cluster, Given

PLACE = "Where it runs"

CLUSTER = typer.Option(
    None,
    help="A cluster file, a preset (dgx-h100:4 is 4 servers; see `ropewalk list presets`), or servers x GPUs per "
    "server (4x8).",
    rich_help_panel=PLACE,
)
DEVICE = typer.Option(
    None, help="GPU type: {devices}, or a table written by `ropewalk profile`.  [default: h200]", rich_help_panel=PLACE
)
GPUS_PER_SERVER = typer.Option(
    None, min=1, help="GPUs per server.  [default: as in the reference server of that GPU]", rich_help_panel=PLACE
)
NICS = typer.Option(
    None, min=1, help="NICs per server.  [default: as in the reference server of that GPU]", rich_help_panel=PLACE
)
BANDWIDTH = typer.Option(
    None,
    help="Bandwidth of one NIC per direction, such as 400Gbps.  [default: as in the reference server of that GPU]",
    rich_help_panel=PLACE,
)
NVLINK_BANDWIDTH = typer.Option(
    None, "--nvlink-bandwidth", "--nvlink", help="Bandwidth of one GPU inside its server per direction, such as "
        "450GB/s.",
    rich_help_panel=PLACE,
)  # fmt: skip
FABRIC = typer.Option(
    None,
    help="The network: rails, rail-only, a family ({fabrics}), oversubscribed (leaf-spine:2to1), an expression "
    "(torus:8x8), or a fabric file.  [default: leaf-spine]",
    rich_help_panel=PLACE,
)
HOP_LATENCY = typer.Option(None, help="Latency of every link of the network, such as 1us.", rich_help_panel=PLACE)
RAILS = typer.Option(
    None,
    "--rails/--no-rails",
    help="Rail-optimised: NIC i of every server connects to the same leaf.",
    rich_help_panel=PLACE,
)


POWER = typer.Option(
    None,
    metavar="WATTS",
    help="Power limit per GPU, such as 500W, or none: steps run at the clock it sustains.  [default: its "
    "published limit]",
    rich_help_panel=PLACE,
)


@dataclass(frozen=True)
class ClusterOptions:
    """GPUs, servers and the network between them."""

    cluster: str | None
    device: str | None
    power: str | None
    gpus_per_server: int | None
    nics: int | None
    bandwidth: str | None
    nvlink_bandwidth: str | None
    fabric: str | None
    hop_latency: str | None
    rails: bool | None

    def typed(self) -> dict[str, str | int | None]:
        """Every option as it is typed, with what was said."""
        return {f"--{field.name.replace('_', '-')}": getattr(self, field.name) for field in fields(self)}

    def given(self, gpus: int | None = None) -> Given:
        """What the options say, in numbers."""
        from ropewalk.hardware import Given

        return Given(
            gpus=gpus,
            device=self.device,
            gpus_per_server=self.gpus_per_server,
            nics=self.nics,
            nic_bandwidth=None if self.bandwidth is None else units.bandwidth(self.bandwidth),
            nvlink_bandwidth=None if self.nvlink_bandwidth is None else units.bandwidth(self.nvlink_bandwidth),
            network=self.fabric,
            latency_s=None if self.hop_latency is None else units.seconds(self.hop_latency),
            rails=self.rails,
        )

    def read(self, usual: str) -> Cluster:
        """The cluster that is named, or the usual one of the command; completed by the options, its GPUs held."""
        from ropewalk.hardware import held, read_cluster

        return held(read_cluster(self.cluster or usual, self.given()), self.power)

    def described(self) -> Cluster:
        """The cluster that is named, for questions about its network: the clock of its GPUs does not matter."""
        from ropewalk.hardware import held, read_cluster

        found = read_cluster(self.cluster, self.given())
        return found if self.power is None else held(found, self.power)

    def of_gpus(self, gpus: int | None, otherwise: int) -> Cluster:
        """The cluster that is named, with this number of GPUs where one is asked for; else one of so many."""
        from ropewalk.hardware import held, read_cluster

        if self.cluster is not None:
            return held(read_cluster(self.cluster, self.given(gpus)), self.power)
        return held(read_cluster(given=self.given(otherwise if gpus is None else gpus)), self.power)
