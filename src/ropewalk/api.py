"""The few functions that most scripts need; `import ropewalk as rw` has them all.

Quantities are numbers (bytes/s, seconds, bytes) or text with a unit (`"400Gbps"`). Everything heavy is imported when a
function is called.

>>> import ropewalk as rw
>>> pod = rw.cluster("2x8", device="h100", bandwidth="400Gbps")
>>> rw.simulate("gpt2", pod, batch=64).statistics.step_time_s > 0
True
"""

from __future__ import annotations

from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropewalk import units
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.fabric import Fabric
    from ropewalk.hardware import Cluster
    from ropewalk.plans import Plan
    from ropewalk.synthesis import CollectiveAnswer
    from ropewalk.training import TrainingAnswer
    from ropewalk.workload.workload import Workload


def cluster(
    name: str | Path | None = None,
    *,
    gpus: int | None = None,
    device: str | None = None,
    power: str | None = None,
    gpus_per_server: int | None = None,
    nics: int | None = None,
    bandwidth: float | str | None = None,
    nvlink_bandwidth: float | str | None = None,
    fabric: str | None = None,
    hop_latency: float | str | None = None,
    rails: bool | None = None,
    degree: int | None = None,
) -> Cluster:
    """A cluster from a file, a preset (`dgx-h100:64`), a shape (`4x8`) or a number of GPUs.

    Its GPUs are held to `power` (`"500W"`): to the limit of their data sheet unless given, `"none"` for full clock.
    With `degree`, every server has so many ports that are still to be wired, for `plan`.

    >>> cluster("dgx-h100:4").device, cluster("dgx-h100:4", power="none").device
    ('h100@700W', 'h100@none')
    """
    from ropewalk.hardware import Given, GivenPorts, held, read_cluster

    given = Given(
        gpus=gpus,
        device=device,
        gpus_per_server=gpus_per_server,
        nics=nics,
        nic_bandwidth=_bandwidth(bandwidth),
        nvlink_bandwidth=_bandwidth(nvlink_bandwidth),
        network=fabric,
        latency_s=units.seconds(hop_latency) if isinstance(hop_latency, str) else hop_latency,
        rails=rails,
        ports=None if degree is None else GivenPorts(degree),
    )
    return held(read_cluster(name, given), power)


def model(name: str, *, batch: int | None = None, sequence: int | None = None, **options: Any) -> Workload:
    """A model of the zoo, a module (`file.py:Net`) or a file, as layers and operators.

    >>> round(model("gpt2").parameters() / 1e6)
    124
    """
    from ropewalk.workload.source import open_workload

    return open_workload(name, batch, sequence, **options)


def simulate(
    what: str | Workload | Plan, place: str | Cluster | None = None, *, level: str | None = None, **decided: Any
) -> TrainingAnswer:
    """How long a step takes and why: of a model on a cluster, or of a plan; ports are wired for the step.

    What is decided has the names of `TrainingQuestion` (batch, micro_batch, data, tensor, pipeline, expert, context,
    sequence, precision) and of `Strategy` (zero, schedule, recompute, ...).

    >>> found = simulate("gpt2", "1x8", tensor=2, batch=16, zero=1)
    >>> found.strategy.said()
    'dp 4, tp 2, zero 1, 1 micro-batch of 4'
    """
    from ropewalk.hardware import Ports, held
    from ropewalk.plans import Plan
    from ropewalk.sim.level import LevelUse
    from ropewalk.training import NetworkUse, TrainingQuestion, answer
    from ropewalk.training.planned import question_of

    if isinstance(what, Plan):
        if place is not None or decided:
            said = ", ".join(["place"] * (place is not None) + sorted(decided))
            raise InputError(f"the plan fixes {said}: leave it out, or simulate the model instead of the plan")
        return answer(question_of(what, None if level is None else LevelUse(level)))
    asked, usual = _asked(decided)
    where = cluster(place) if isinstance(place, str) else place
    if level is not None:
        asked.setdefault("network", NetworkUse(level=LevelUse(level)))
    question = TrainingQuestion(what, where, usual=usual, **asked)
    if where is None:
        question = replace(question, cluster=held(question.place))
    if isinstance(question.place.network, Ports):
        from ropewalk.codesign.wiring_for import wired

        question = wired(question)
    return answer(question)


def plan(what: str, place: str | Cluster, **options: Any) -> Plan:
    """What to do with a model on a cluster, as a plan with the step time that it promises.

    On a network that exists: stages, replicas, places and timetable; options have the names of `PipelineQuestion`.
    On ports to be wired: cables, routes and seats; options have the names of `PlanQuestion`.

    >>> wired = plan("vgg16", cluster("4x1", device="a100", degree=2), budget=20, rounds=1, compare=())
    >>> wired.prediction.step_time_s == simulate(wired).statistics.step_time_s
    True
    """
    from ropewalk.codesign import study as wirings
    from ropewalk.codesign.planned import plan_of
    from ropewalk.codesign.question import PlanQuestion
    from ropewalk.hardware import Ports
    from ropewalk.pipeline import study as pipelines
    from ropewalk.pipeline.question import PipelineQuestion

    where = cluster(place) if isinstance(place, str) else place
    if isinstance(where.network, Ports):
        return plan_of(wirings.answer(PlanQuestion(what, where, **options)))
    return pipelines.plan_of(pipelines.answer(PipelineQuestion(what, where, **options)))


def collective(kind: str, place: str | Fabric | Cluster | Plan, **options: Any) -> CollectiveAnswer:
    """The best possible bandwidth of a collective on a fabric, and a schedule that reaches it.

    Options have the names of `CollectiveQuestion`: group, root, method, size_bytes, compare, ...

    >>> collective("allgather", "torus:3x3", compare=False).made.depth
    2
    """
    from ropewalk.fabric import Fabric
    from ropewalk.fabric.expression import fabric
    from ropewalk.synthesis import CollectiveQuestion, answer

    found = fabric(place) if isinstance(place, str) else place if isinstance(place, Fabric) else place.fabric()
    return answer(CollectiveQuestion(kind, found, **options))


def load(path: str | Path) -> Plan:
    """A plan from its file."""
    from ropewalk.plans import read_plan

    return read_plan(path)


def _asked(decided: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """What of the names belongs to the question, and a strategy with the rest."""
    from ropewalk.strategy import Strategy
    from ropewalk.training import TrainingQuestion

    of_question = {field.name for field in fields(TrainingQuestion)} - {"model", "cluster", "usual"}
    of_strategy = {field.name for field in fields(Strategy)} - of_question
    for name in decided:
        if name not in of_question | of_strategy:
            near = get_close_matches(name, [*of_question, *of_strategy], n=2)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            raise InputError(f"there is no setting {name!r}: {hint}see TrainingQuestion and Strategy")
    usual = Strategy(**{name: value for name, value in decided.items() if name in of_strategy})
    return {name: value for name, value in decided.items() if name in of_question}, usual


def _bandwidth(value: float | str | None) -> float | None:
    return units.bandwidth(value) if isinstance(value, str) else value
