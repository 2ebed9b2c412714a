"""The page of a training study: the step of a model on a cluster, with its strategy and its memory."""

from __future__ import annotations

from ropewalk.device.held import device_in_words
from ropewalk.report import quantity
from ropewalk.report.step import step_page
from ropewalk.report.step_bars import MemoryBar
from ropewalk.strategy.by_stack import gradients_in_words
from ropewalk.training import TrainingAnswer
from ropewalk.training.collectives import GroupCollective


def training_page(answer: TrainingAnswer) -> str:
    """One self-contained HTML page for the answer to a question about training."""
    return step_page(
        answer.run,
        answer.statistics,
        subject=f"{answer.workload.name} on {quantity.count(answer.strategy.ranks)} GPUs",
        facts=_facts(answer),
        stage_of_rank=answer.stage_of_rank,
        memory=memory_bars(answer),
        notes=[*answer.notes, *_reading(answer)],
    )


def memory_bars(answer: TrainingAnswer) -> list[MemoryBar]:
    """What a GPU of each stage holds, at its fullest moment."""
    parts, stages = answer.memory.parts(), answer.strategy.pipeline
    return [
        MemoryBar(
            f"stage {stage}" if stages > 1 else "every gpu",
            {name: float(bytes_by_stage[stage]) for name, bytes_by_stage in parts.items()},
            answer.capacity_bytes,
        )
        for stage in range(stages)
    ]


def _facts(answer: TrainingAnswer) -> list[tuple[str, str]]:
    asked = answer.question
    facts = [
        ("Strategy", answer.strategy.said()),
        ("Global batch, samples", quantity.count(answer.strategy.global_batch)),
        ("Sequence length, tokens", quantity.count(answer.workload.sequence) if answer.workload.sequence else ""),
        ("Parameters", quantity.count(answer.workload.parameters())),
        ("GPU", f"{device_in_words(asked.device)}, {asked.precision}"),
        ("Peak memory", f"{quantity.size(answer.memory.most)} of {quantity.size(answer.capacity_bytes)}"),
        ("Fabric", answer.fabric.name),
        ("Routing", answer.router),
        ("Collectives", f"{asked.network.algorithm}, {asked.network.collectives}"),
        *((f"Collective of {', '.join(one.purposes)}", _runs(one)) for one in answer.collectives),
        ("Gradients", gradients_in_words(answer.strategy)),
        ("Costs", answer.cost_source),
        ("Interval of the step time", answer.expected.said()),
        ("Seed", str(asked.network.seed)),
    ]
    return [(name, value) for name, value in facts if value]


def _runs(one: GroupCollective) -> str:
    """What a group runs, in a few words."""
    groups = "1 group" if one.groups == 1 else f"{one.groups} groups"
    made = "" if one.promise is None else f", built for its {one.links} links: {quantity.bandwidth(one.promise)}"
    return f"{one.act}: {one.name}, {groups} of {one.ranks}{made}"


def _reading(answer: TrainingAnswer) -> list[str]:
    """What is assumed, where that is not a fact of the run."""
    transport = answer.transport
    return [
        f"Times of computation: {answer.cost_source}. Communication is simulated transfer by transfer on the fabric.",
        f"A collective or send has a start-up latency of {quantity.seconds(transport.start_up_s)}; each round takes "
        f"{quantity.seconds(transport.round_inside_s)} inside a server and "
        f"{quantity.seconds(transport.round_across_s)} between servers; "
        f"{quantity.percent(transport.efficiency_inside)} and {quantity.percent(transport.efficiency_across)} of "
        "link bandwidth is payload.",
        "Model flops utilisation counts the arithmetic of the model once, without recomputation.",
    ]
