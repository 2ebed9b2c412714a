"""`ropewalk sync`: how should gradients be synchronised on this fabric?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.memory_limit import within_memory
from ropewalk.cli.mix_options import MixOptions
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.packet_options import PacketChoices, refuse_without_packets
from ropewalk.cli.screen import JSON, PAGE, print_json, require_outputs, shown_progress, write_page
from ropewalk.cli.sync_options import SyncStudyOptions
from ropewalk.cli.sync_scale import scaled_down
from ropewalk.cli.sync_table import print_tables

if TYPE_CHECKING:
    from ropewalk.sync import SyncStudy


@within_memory
@with_options
def sync_command(
    context: typer.Context,
    *,
    study: SyncStudyOptions,
    json: bool = JSON,
    page: Path | None = PAGE,
    mixing: MixOptions,
    packets: PacketChoices,
) -> None:
    """Compare all-reduce topologies on physical networks: closed form and simulation.

    Example: `ropewalk sync --logical ring,hips --physical bcube:4,2,torus --hosts 64 --size 64MB --page sync.html`

    At packet level: `ropewalk sync --level packet --transport rdma,tcp --page sync.html`
    """
    from ropewalk.sync import answer

    require_outputs(page)
    question = study.question(packets, mixing)
    refuse_without_packets(context, study.levels)
    with shown_progress() as progress:
        found = answer(question, progress)
    found = replace(found, notes=(*scaled_down(study.levels, study.scale, question.physical), *found.notes))
    if page is not None:
        from ropewalk.report import sync_page

        write_page(page, sync_page(found))
    if json:
        print_json(_as_json(found))
    else:
        print_tables(found, page)


def _as_json(answer: SyncStudy) -> dict[str, object]:
    return {"rows": [row.as_json() for row in answer.rows], "notes": list(answer.notes)}
