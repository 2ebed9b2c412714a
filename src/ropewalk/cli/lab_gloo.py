"""`ropewalk lab run --ranks gloo`: collectives of torch.distributed on a lab, a process per host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ropewalk.cli.idle_options import refuse
from ropewalk.cli.screen import shown_progress

if TYPE_CHECKING:
    from ropewalk.cli.cluster_options import ClusterOptions
    from ropewalk.cli.lab_options import BuildOptions
    from ropewalk.cli.lab_run import LabRunOptions
    from ropewalk.lab.gloo import GlooAnswer


def gloo_run(
    named: str | None, what: LabRunOptions, place: ClusterOptions, build: BuildOptions, page: Path | None
) -> GlooAnswer:
    """Run a collective over Gloo on the lab that is up, or on one for this run alone."""
    from ropewalk.execute.torch_extra import require_torch

    require_torch()
    given = {
        "--collective": what.collective, "--shrink": what.shrink, "--fault": what.fault or None, "--page": page,
        "--level": None if what.level == "flow" else what.level,
        "--segments": what.segments if what.segments > 1 else None,
    }  # fmt: skip
    refuse(
        [name for name, value in given.items() if value is not None], "Gloo chooses the algorithm itself: leave it out"
    )
    from ropewalk.lab.gloo import measured_gloo
    from ropewalk.lab.lab import built
    from ropewalk.lab.lifecycle import opened, routes_in

    question = what.question()
    if named is None and place.cluster is None:
        typed = {**build.typed(), **place.typed()}
        refuse([word for word, value in typed.items() if value is not None], "the running lab fixes it")
        with opened(build.name) as (state, lab), shown_progress() as progress:
            asked = replace(question, groups=what.groups(lab.network.fabric))
            routes = routes_in(state, lab.network)
            return measured_gloo(lab, routes, asked, rates=dict(state.slowed), progress=progress)
    request = build.request(named, place)
    asked = replace(question, groups=what.groups(request.network.fabric))
    asked.check()
    with built(request.network, request.tables()) as lab, shown_progress() as progress:
        return measured_gloo(lab, request.routes, asked, progress=progress)
