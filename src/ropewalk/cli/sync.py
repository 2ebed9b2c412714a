"""`ropewalk sync`: how should gradients be synchronised on this fabric?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.lists import each, not_empty, split, split_fabrics, whole_number
from ropewalk.cli.memory_limit import within_memory
from ropewalk.cli.mix_options import MixOptions
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.packet_options import PacketChoices, refuse_without_packets
from ropewalk.cli.screen import JSON, PAGE, print_json, require_outputs, shown_progress, write_page
from ropewalk.cli.sync_scale import scaled_down, usual_scale, with_comparison
from ropewalk.cli.sync_table import print_tables

if TYPE_CHECKING:
    from ropewalk.sync import SyncStudy


@within_memory
@with_options
def sync_command(
    context: typer.Context,
    logical: str = typer.Option(
        "ps,mesh,ring,halving-doubling,hips",
        help="Logical topologies: {collectives.all_reduces}.",
    ),
    physical: str = typer.Option(
        "fat-tree,leaf-spine,bcube,torus,switch",
        help="Physical topologies: families sized by --hosts ({fabrics}), expressions (bcube:5,2) or fabric files.",
    ),
    hosts: str | None = typer.Option(
        None, help="Hosts of each family; give several for a sweep: 16,64,256.  [default: 64; at packet level 16]"
    ),
    size: str | None = typer.Option(
        None, help="Bytes to all-reduce; give several for a sweep: 64MB,575MB.  [default: 575MB; at packet level 4MB]"
    ),
    bandwidth: str = typer.Option("40Gbps", help="Bandwidth of a link per direction; give several for a sweep."),
    latency: str = typer.Option("10us", help="Start-up latency of a transfer (α of the closed forms)."),
    hop_latency: str | None = typer.Option(
        None, help="Latency of every link of the path, on top of --latency.  [default: 0us; at packet level 1us]"
    ),
    level: str = typer.Option(
        "closed,flow",
        help="Method: closed (formula), flow (fluid), wire (fluid with headers), packet (every packet), "
        "auto (wire or packet, whichever is enough). packet and auto add closed and flow for comparison.",
    ),
    routing: str = typer.Option(
        "default",
        help="Routing: default (avoids collisions), {routers}; give several to compare.",
    ),
    seed: int = typer.Option(0, help="Seed of hashed routing and of ECN marks."),
    symmetry: bool = typer.Option(True, help="Simulate one of each class of equal transfers (exact)."),
    nearest: bool = typer.Option(False, help="If a family has no such size, use its nearest size."),
    json: bool = JSON,
    page: Path | None = PAGE,
    *,
    mixing: MixOptions,
    packets: PacketChoices,
) -> None:
    """Sync time of every logical topology on every physical one: closed form beside simulation.

    Example: `ropewalk sync --logical ring,hips --physical bcube:4,2,torus --hosts 64 --size 64MB --page sync.html`

    Packet by packet: `ropewalk sync --level packet --transport rdma,tcp --page sync.html`
    """
    from ropewalk.collectives.mixer import FREE
    from ropewalk.sync import SyncQuestion, answer

    require_outputs(page)
    levels = not_empty(split(level), "--level")
    given = {"--hosts": hosts, "--size": size, "--hop-latency": hop_latency}
    scale = {name: usual if given[name] is None else str(given[name]) for name, usual in usual_scale(levels).items()}
    question = SyncQuestion(
        logical=not_empty(split(logical), "--logical"),
        physical=not_empty(split_fabrics(physical), "--physical"),
        hosts=not_empty(each(scale["--hosts"], whole_number), "--hosts"),
        sizes=not_empty(each(scale["--size"], units.size), "--size"),
        bandwidths=not_empty(each(bandwidth, units.bandwidth), "--bandwidth"),
        start_up_s=units.seconds(latency),
        hop_latency_s=units.seconds(scale["--hop-latency"]),
        levels=with_comparison(levels),
        routing=not_empty(split(routing), "--routing"),
        seed=seed,
        symmetry=symmetry,
        nearest=nearest,
        transports=not_empty(split(packets.transport), "--transport"),
        packet=packets.options(),
        most_events=packets.most_events,
        mixer=mixing.mixer() or FREE,
    )
    refuse_without_packets(context, levels)
    with shown_progress() as progress:
        found = answer(question, progress)
    found = replace(found, notes=(*scaled_down(levels, given, question.physical), *found.notes))
    if page is not None:
        from ropewalk.report import sync_page

        write_page(page, sync_page(found))
    if json:
        print_json(_as_json(found))
    else:
        print_tables(found, page)


def _as_json(answer: SyncStudy) -> dict[str, object]:
    return {"rows": [row.as_json() for row in answer.rows], "notes": list(answer.notes)}
