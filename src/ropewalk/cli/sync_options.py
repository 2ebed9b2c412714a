"""Options of `ropewalk sync` alone: what is combined with what, and how large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import typer

from ropewalk import units
from ropewalk.cli.idle_options import refuse
from ropewalk.cli.lists import each, not_empty, split, split_fabrics, whole_number
from ropewalk.cli.mix_options import MixOptions
from ropewalk.cli.packet_options import PacketChoices
from ropewalk.cli.sync_scale import usual_scale, with_comparison
from ropewalk.documents.numbers import is_count
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.sync import SyncQuestion

LOGICAL = typer.Option(
    "ps,mesh,ring,halving-doubling,hips",
    help="Logical topologies: {collectives.all_reduces}.",
)
PHYSICAL = typer.Option(
    "fat-tree,leaf-spine,bcube,torus,switch",
    help="Physical topologies: families sized by --hosts ({fabrics}), expressions (bcube:5,2) or fabric files.",
)
HOSTS = typer.Option(
    None, help="Hosts of each family; give several for a sweep: 16,64,256.  [default: 64; at packet level 16]"
)
AXES = typer.Option(
    None,
    help="k at the same number of hosts, for families with n^k of them: levels of bcube, axes of torus and mesh. "
    "Give several for a sweep (1,2,3), or all.  [default: the usual shape of each family]",
)
SIZE = typer.Option(
    None, help="Bytes to all-reduce; give several for a sweep: 64MB,575MB.  [default: 575MB; at packet level 4MB]"
)
BANDWIDTH = typer.Option("40Gbps", help="Bandwidth of a link per direction; give several for a sweep.")
LATENCY = typer.Option("10us", help="Start-up latency of a transfer (α of the closed forms).")
HOP_LATENCY = typer.Option(
    None, help="Latency of every link of the path, on top of --latency.  [default: 0us; at packet level 1us]"
)
LEVEL = typer.Option(
    "closed,flow",
    help="Method: closed (formula), flow (fluid), wire (fluid with headers), packet (every packet), "
    "auto (wire if sufficient, otherwise packet). packet and auto add closed and flow for comparison.",
)
ROUTING = typer.Option(
    "default",
    help="Routing: default (avoids collisions), {routers}; give several to compare.",
)
SEED = typer.Option(0, help="Seed of hashed routing and of ECN marks.")
SYMMETRY = typer.Option(True, help="Simulate one of each class of equal transfers (exact).")
NEAREST = typer.Option(False, help="If a family has no such size, use its nearest size.")


@dataclass(frozen=True)
class SyncStudyOptions:
    """The study as typed; what was left out depends on the levels that were asked for."""

    logical: str
    physical: str
    hosts: str | None
    axes: str | None
    size: str | None
    bandwidth: str
    latency: str
    hop_latency: str | None
    level: str
    routing: str
    seed: int
    symmetry: bool
    nearest: bool

    @property
    def levels(self) -> tuple[str, ...]:
        """Those that were asked for, without what they are compared with."""
        return not_empty(split(self.level), "--level")

    @property
    def scale(self) -> dict[str, str | None]:
        """How large, as far as somebody said."""
        return {"--hosts": self.hosts, "--size": self.size, "--hop-latency": self.hop_latency}

    def question(self, packets: PacketChoices, mixing: MixOptions) -> SyncQuestion:
        from ropewalk.collectives.mixer import FREE
        from ropewalk.sync import SyncQuestion

        levels, given = self.levels, self.scale
        physical = not_empty(split_fabrics(self.physical), "--physical")
        self._refuse_idle_hosts(physical)
        scale = {name: usual if (said := given[name]) is None else said for name, usual in usual_scale(levels).items()}
        return SyncQuestion(
            logical=not_empty(split(self.logical), "--logical"),
            physical=physical,
            hosts=not_empty(each(scale["--hosts"], whole_number), "--hosts"),
            axes=_axes(self.axes),
            sizes=not_empty(each(scale["--size"], units.size), "--size"),
            bandwidths=not_empty(each(self.bandwidth, units.bandwidth), "--bandwidth"),
            start_up_s=units.seconds(self.latency),
            hop_latency_s=units.seconds(scale["--hop-latency"]),
            levels=with_comparison(levels),
            routing=not_empty(split(self.routing), "--routing"),
            seed=self.seed,
            symmetry=self.symmetry,
            nearest=self.nearest,
            transports=not_empty(split(packets.transport), "--transport"),
            packet=packets.options(),
            most_events=packets.most_events,
            mixer=mixing.mixer() or FREE,
        )

    def _refuse_idle_hosts(self, physical: Sequence[str]) -> None:
        from ropewalk.fabric.expression import has_open_size

        if self.hosts is not None and not any(map(has_open_size, physical)):
            names = ", ".join(physical[:3]) + (" …" if physical[3:] else "")
            refuse(["--hosts"], f"--physical {names} already says how many: leave it out, or name only a family")


def _axes(text: str | None) -> tuple[int, ...] | Literal["all"] | None:
    if text is None or text.strip() == "all":
        return None if text is None else "all"
    numbers = not_empty(split(text), "--axes")
    if any(not is_count(number) or int(number) < 1 for number in numbers):
        raise InputError(f"--axes {text}: write whole numbers from 1 on, such as --axes 1,2,3, or --axes all")
    return tuple(dict.fromkeys(map(int, numbers)))
