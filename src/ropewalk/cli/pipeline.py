"""`ropewalk pipeline`: where should the model be cut, on which GPUs, and in which order do they work?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.memory_limit import within_memory
from ropewalk.cli.model_options import ModelOptions
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.overhead_options import OverheadOptions
from ropewalk.cli.packet_options import PacketChoices, refuse_without_packets
from ropewalk.cli.pipeline_options import RECOMPUTES, CostOptions, CutOptions, PiecesOptions, PipelineOutputs
from ropewalk.cli.pipeline_screen import print_answer, strategy_in_words
from ropewalk.cli.places import refuse_plan
from ropewalk.cli.screen import print_json, require_outputs, shown_progress, write_page
from ropewalk.cli.step_options import TalkOptions
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.pipeline.answer import PipelineAnswer
    from ropewalk.pipeline.costs import Costs
    from ropewalk.pipeline.judge import Judged

USUAL_CLUSTER = "2x8"


@within_memory
@with_options
def pipeline_command(
    context: typer.Context,
    model: str = typer.Argument(
        help="A name such as gpt2-xl, file.py:Class, .onnx, a workload file, or a profile of DAPPLE or PipeDream "
        "(.txt)."
    ),
    *,
    what: ModelOptions,
    pieces: PiecesOptions,
    place: ClusterOptions,
    costs: CostOptions,
    cut: CutOptions,
    talk: TalkOptions,
    overheads: OverheadOptions,
    packets: PacketChoices,
    outputs: PipelineOutputs,
) -> None:
    """Find the stages, replicas, placement and timetable with the shortest step, and compare with other planners.

    Example: `ropewalk pipeline gpt2-xl --cluster 2x8 --device a100 --nics 1 --bandwidth 100Gbps --batch 64`
    """
    require_outputs(outputs.csv, outputs.page, outputs.plan, read=(model, place.cluster, place.fabric))
    refuse_plan(model, f"name a model, with --cluster {model}, or run it with `ropewalk simulate`")
    if outputs.plan is not None and pieces.profile_batch is not None:
        _refuse_unnamed_batch(Path(model), pieces.profile_batch, outputs.plan)
    refuse_without_packets(context, (talk.level,))
    cluster = place.read(USUAL_CLUSTER)
    cut.check(cluster.gpus)

    from ropewalk.pipeline.question import PipelineQuestion
    from ropewalk.pipeline.study import answer
    from ropewalk.training import NetworkUse

    question = PipelineQuestion(
        what.named(model),
        cluster,
        batch=what.batch,
        micro_batch=pieces.micro_batch,
        sequence=what.seq,
        precision=what.dtype,
        optimiser=what.optimiser,
        profile_batch=pieces.profile_batch,
        memory_bytes=costs.memory_bytes,
        collective_bandwidth=costs.collective_bytes_per_s,
        start_up_s=units.seconds(costs.start_up),
        schedules=cut.schedules,
        tensor=cut.degrees,
        recompute=RECOMPUTES[cut.recompute],
        overlap_sums=cut.overlap_sums,
        network=NetworkUse(
            talk.routing, talk.algorithm, talk.collectives, transport=overheads.transport(cluster, talk.algorithm),
            level=packets.use(talk.level),
        ),
    )  # fmt: skip
    with shown_progress() as progress:
        found = answer(question, progress)
        # Whatever cannot be written is refused before anything is.
        timetable = None if outputs.csv is None else _timetable(found, question.costs, outputs.csv)
    _finish(found, timetable, outputs)


def _refuse_unnamed_batch(profile: Path, batch: int, plan: Path) -> None:
    """A plan names its profile and nothing besides, so the file has to say what its batch is."""
    named = profile.with_stem(f"{profile.stem}-pbs-{batch}").name
    raise InputError(
        f"cannot write {plan}: a plan refers to a profile by its file name, and {profile.name} does not contain its "
        f"batch size: rename it to {named} and leave --profile-batch out"
    )


def _finish(found: PipelineAnswer, timetable: tuple[str, str] | None, outputs: PipelineOutputs) -> None:
    """Write the files, print the table or the JSON."""
    if outputs.page is not None:
        from ropewalk.report.pipeline import pipeline_page

        write_page(outputs.page, pipeline_page(found))
    if outputs.csv is not None and timetable is not None:
        from ropewalk.files import write_whole

        text, whose = timetable
        write_whole(outputs.csv, text)
        typer.echo(f"timetable: {outputs.csv} ({whose})", err=True)
    if outputs.plan is not None:
        from ropewalk.pipeline.study import plan_of
        from ropewalk.plans import write_plan

        write_plan(plan_of(found), outputs.plan)
        typer.echo(f"plan: {outputs.plan}", err=True)
    if outputs.json:
        print_json(found.as_json())
    else:
        print_answer(found, outputs.page)


def _timetable(found: PipelineAnswer, costs: Costs, path: Path) -> tuple[str, str]:
    """The plan's timetable; where PyTorch cannot run it, that of the fastest other plan which it can; and whose it
    is."""
    from ropewalk.export.torch_pipeline import compute_only
    from ropewalk.pipeline.even_replicas import best_with_even_replicas

    if _runs_on_torch(found.best):
        return compute_only(found.best.run.timetable), "of the plan"
    even = best_with_even_replicas(costs)
    others = {other.name: other.judged for other in found.alternatives if other.judged is not None}
    runnable = {name: judged for name, judged in others.items() if _runs_on_torch(judged)}
    if even is not None:
        runnable["equal replicas"] = even
    if not runnable:
        raise InputError(
            f"cannot write {path}: PyTorch runs pipelines of two or more stages with equally many replicas, and no "
            "such plan was found: change the number of GPUs or --schedule"
        )
    name = min(runnable, key=lambda name: runnable[name].step_s)
    chosen = runnable[name]
    slower = chosen.step_s / found.step_s
    return compute_only(chosen.run.timetable), (
        f"of {name}, {strategy_in_words(chosen)} with {chosen.plan.schedule}, {slower:.3f} x the plan's step: PyTorch "
        "needs two or more stages with equally many replicas"
    )


def _runs_on_torch(judged: Judged) -> bool:
    plan, table = judged.plan, judged.run.timetable
    return len(plan.devices) > 1 and len(set(plan.replicas)) == 1 and table.copies == 1
