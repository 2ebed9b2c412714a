"""From a question about training to its answer: workload, strategy, prices, step, tasks, run."""

from __future__ import annotations

from dataclasses import replace

from ropewalk.progress import Progress, counting, silent
from ropewalk.room import foresee
from ropewalk.sim.step import statistics
from ropewalk.task.perturb import perturb
from ropewalk.task.step import Step
from ropewalk.training.answer import TrainingAnswer
from ropewalk.training.collectives import collectives_of, notes_of, settled
from ropewalk.training.network import expand_on, run_on
from ropewalk.training.prepared import prepared
from ropewalk.training.question import TrainingQuestion
from ropewalk.training.steady import changes_from_step_to_step, steady_step

OPERATION_BYTES, OPERATION_S = 450.0, 3e-6
"""Of memory and time for each operation of each rank, written out and simulated as flows."""


def answer(question: TrainingQuestion, progress: Progress | None = None) -> TrainingAnswer:
    """How long a step takes, why, and whether it fits.

    >>> found = answer(TrainingQuestion("gpt2", gpus=2))
    >>> found.statistics.step_time_s > found.statistics.compute_s > 0
    True
    """
    say = progress or silent
    say(0, None, "reading the model")
    made = prepared(question)
    asked, workload, strategy, fabric = made.question, made.workload, made.strategy, made.fabric
    say(0, None, "writing the step")
    row = None if made.write_row is None else made.write_row()
    step = made.write() if row is None else row.step
    _foresee(step)
    if asked.jitter or asked.stragglers:
        step = perturb(step, asked.network.seed, jitter=asked.jitter, stragglers=asked.stragglers)
    say(0, None, "writing its tasks")
    network, chosen = settled(step, fabric, asked.network, lambda now: say(0, None, now))
    asked = replace(asked, network=network)
    expansion = expand_on(step, fabric, asked.network)
    run = run_on(step, expansion, fabric, asked.network, counting(say, "tasks done"))
    notes = [
        *made.notes,
        *notes_of(step, asked.network, chosen),
        *(run.network.sentences() if run.network is not None else ()),
    ]
    if row is not None:
        notes.append(f"Gradients overlap with the next step: times are of one of {len(row.ends)} consecutive steps.")
        if changes_from_step_to_step(run, row.ends):
            notes.append("The last two steps still differ: jitter, or a pipeline that is not in steady state.")
    window = None if row is None else steady_step(run, row.ends)
    found = statistics(
        run,
        peak_flops=made.peak_flops,
        samples=strategy.global_batch,
        tokens=made.tokens,
        window=window,
    )
    return TrainingAnswer(
        asked, workload, strategy, made.pieces, made.stage_of_rank, fabric, made.router,
        made.memory, made.prices, made.cost_source, run, found, tuple(notes),
        collectives_of(step, expansion), chosen, expansion, window,
    )  # fmt: skip


def _foresee(step: Step) -> None:
    operations = len(step.act)
    foresee(
        f"a step of {step.ranks:,} ranks, rank by rank",
        operations * OPERATION_BYTES,
        "use fewer GPUs or micro-batches, or ask for no file of all ranks",
        seconds=operations * OPERATION_S,
    )
