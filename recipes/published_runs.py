"""Published training runs as questions: one function a set, from a row of the data to what the simulator is asked.

The rows are in `tests/data/published_runs.csv`, each with its source. What a row does not say is said here, once for a
whole set, from the source itself; nothing is chosen by row and nothing was searched for.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

from ropewalk.device.device import DEVICES, device, device_choice
from ropewalk.device.held import held_to
from ropewalk.hardware import Given, read_cluster
from ropewalk.strategy import Order, Strategy
from ropewalk.task.step import Act, StepSketch
from ropewalk.training import NetworkUse, TrainingQuestion, answer
from ropewalk.training.network import expand_on, run_on

DATA = Path(__file__).parent.parent / "tests" / "data" / "published_runs.csv"
CALIBRATION_STRIDE = 10
"""Every tenth row of vTrain's single-node runs, by id, sets how slow the host of an A100 is; all others validate."""


CALIBRATION_IDS = {"g00069", "g00084"}
"""Rows from which NCCL's share of NVLink on an H100 and of a NIC were taken."""
GPT2_WORDS = 50257
ONE_BUCKET = 1e13
"""Bytes of a bucket that all gradients of any model fit in."""


@dataclass(frozen=True)
class PublishedRun:
    """A row: what ran where, and what was measured. Numbers that a set does not have are 0."""

    id: str
    set: str
    source: str
    accelerator: str
    gpus: int
    gpus_per_server: int
    software: str
    model: str
    layers: int
    hidden: int
    heads: int
    vocabulary: int
    sequence: int
    batch: int
    micro_batch: int
    tensor: int
    pipeline: int
    data: int
    interleave: int
    recompute: str
    sharding: str
    precision: str
    bytes: int
    value: float
    unit: str

    @property
    def measured_s(self) -> float:
        """Seconds of the step, or of the collective."""
        return _MEASURED[self.unit](self)

    @property
    def said(self) -> str:
        """The row in a few words."""
        if self.bytes:
            return f"{self.gpus} x {self.accelerator}, {self.software}, {self.bytes / 2**20:g} MiB"
        model = self.model or f"{self.layers} x {self.hidden}"
        split = f"tp {self.tensor} pp {self.pipeline} dp {self.data}"
        kept = f", recompute {self.recompute}" if self.recompute else ""
        return f"{model}, {split}, batch {self.batch} by {self.micro_batch} x {self.sequence}{kept}"


def published_runs(name: str | None = None) -> list[PublishedRun]:
    """All rows, or those of one set, in the order of the file."""
    return [run for run in _rows() if name is None or run.set == name]


@cache
def _rows() -> tuple[PublishedRun, ...]:
    makers: dict[object, Callable[[str], object]] = {
        "int": lambda text: int(text or 0), "float": lambda text: float(text or 0), "str": str,
    }  # fmt: skip
    made = {field.name: makers[field.type] for field in fields(PublishedRun)}
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = [{key: made[key](text) for key, text in row.items()} for row in csv.DictReader(file)]
    return tuple(PublishedRun(**row) for row in rows)  # type: ignore[arg-type]


def calibration_rows() -> list[PublishedRun]:
    """The rows on which the A100's host is calibrated."""
    return published_runs("vtrain-single")[::CALIBRATION_STRIDE]


def is_calibration(run: PublishedRun) -> bool:
    """Was this row used to set a constant?"""
    return run.set == "nccl-a100" or run.id in CALIBRATION_IDS or run in calibration_rows()


def vtrain(run: PublishedRun) -> TrainingQuestion:
    """Megatron-DeepSpeed on A100s: gradients reduced after the backward pass, in DeepSpeed's buckets of 5e8 elements.

    Vocabulary: GPT-2's 50,257 words, cut into parts for tensor ranks and not padded, as vTrain's own configuration has
    it: one tensor rank multiplies by an odd width. The cluster has 800 Gbps a server.
    """
    usual = Strategy(order=Order(1e9, overlap=False), recompute=run.recompute or "none")
    words = run.tensor * (GPT2_WORDS // run.tensor)
    return _megatron(replace(run, vocabulary=words), usual, nic_bandwidth=12.5e9)


def korthikanti(run: PublishedRun) -> TrainingQuestion:
    """Megatron-LM on Selene: no data parallelism, three pieces a stage where the paper says so."""
    selective = "selective" in run.recompute
    usual = Strategy(recompute="selective" if selective else "full", sequence_parallel="sequence" in run.recompute)
    return _megatron(run, usual, nic_bandwidth=25e9)


def narayanan(run: PublishedRun) -> TrainingQuestion:
    """Megatron-LM on Selene, with micro-batches and pieces of the paper's own scripts.

    Without a pipeline they use PyTorch's data parallelism, which reduces gradients during the backward pass; with one,
    Megatron's, which reduces all of them after it.
    """
    alone = run.pipeline == 1
    usual = Strategy(order=Order(overlap=alone), recompute="full")
    if not alone:
        usual = Strategy(order=Order(ONE_BUCKET, overlap=False), recompute="full")
    return _megatron(run, usual, nic_bandwidth=25e9)


def _megatron(run: PublishedRun, usual: Strategy, nic_bandwidth: float) -> TrainingQuestion:
    """GPT as Megatron cuts it: as many layers in every piece, the embedding in the first, the loss in the last."""
    vocabulary = run.vocabulary or 51200
    pieces = run.pipeline * max(run.interleave, 1)
    cuts = (0, *(1 + number * run.layers // pieces for number in range(1, pieces)))
    return TrainingQuestion(
        f"megatron:layers={run.layers},hidden={run.hidden},heads={run.heads},vocabulary={vocabulary}",
        read_cluster(given=Given(run.gpus, "a100", min(8, run.gpus), nic_bandwidth=nic_bandwidth)),
        batch=run.batch, micro_batch=run.micro_batch, sequence=run.sequence,
        data=run.data, tensor=run.tensor, pipeline=run.pipeline,
        usual=replace(
            usual, stages=cuts if pieces > 1 else None, interleave=max(run.interleave, 1),
            schedule="interleaved" if run.interleave > 1 else "1f1b",
        ),
        precision="fp16", memory_check=False,
    )  # fmt: skip


def llm_foundry(run: PublishedRun) -> TrainingQuestion:
    """MPT under PyTorch's first FSDP: every block gathered before each of its passes, gradients scattered behind.

    `bf16` is Composer's PURE mode, which reduces gradients in bf16; `amp_bf16` its DEFAULT mode, which reduces them in
    float32. Servers have 1600 Gbps (A100) or, as H100 servers usually do, 3200 Gbps (not stated in the tables).
    """
    usual = Strategy(
        zero=3, regather=run.sharding == "FULL_SHARD", recompute=run.recompute or "none",
        gradient_bytes=4.0 if run.precision.startswith("amp") else None,
    )  # fmt: skip
    device = {"a100_80gb": "a100", "a100_40gb": "a100-40gb", "h100_80gb": "h100"}[run.accelerator]
    return TrainingQuestion(
        f"{run.model}:positions={run.sequence},stack=fsdp", read_cluster(given=Given(run.gpus, held_to(device))),
        data=run.data, usual=usual, batch=run.batch, micro_batch=run.micro_batch, sequence=run.sequence,
        memory_check=False,
    )  # fmt: skip


QUESTIONS: dict[str, Callable[[PublishedRun], TrainingQuestion]] = {
    "vtrain-single": vtrain,
    "vtrain-multi": vtrain,
    "korthikanti": korthikanti,
    "narayanan": narayanan,
    "llm-foundry": llm_foundry,
}
"""From a row to a question, by set."""


@dataclass(frozen=True)
class Wiring:
    """What joins the GPUs of a collective: which GPU's transport, and bytes/s one way of its links."""

    gpu: str
    nvlink_bandwidth: float | None = None
    nic_bandwidth: float | None = None


WIRINGS: dict[str, Wiring] = {
    "A100": Wiring("a100"),
    "A100-SXM4-80GB": Wiring("a100"),
    "H100-SXM": Wiring("h100"),
    "HGX H100": Wiring("h100"),
    "H200-SXM": Wiring("h200"),
    "H200 SXM": Wiring("h200"),
    "H800": Wiring("h100", nvlink_bandwidth=200e9),
    "H20": Wiring("h100", nvlink_bandwidth=450e9, nic_bandwidth=50e9),
    "H100-PCIe NVLink bridge": Wiring("h100", nvlink_bandwidth=300e9),
    "MI300X": Wiring("mi300x"),
}
"""By the accelerator of a row; vendors' figures where they differ from the usual server of that GPU."""
PAIR_OF_MI300X = 64e9
"""Two of the eight MI300X of a server have one Infinity Fabric link between them."""


def all_reduce_s(run: PublishedRun) -> float:
    """Seconds of one all-reduce of these bytes between these GPUs, by what NCCL chooses where a row names NCCL.

    By a ring where it names that, under RCCL, and in vTrain's tables.
    """
    wiring = WIRINGS[run.accelerator]
    pair = run.gpus == 2 and wiring.gpu == "mi300x"
    given = Given(
        run.gpus, wiring.gpu, min(run.gpus, run.gpus_per_server), nic_bandwidth=wiring.nic_bandwidth,
        nvlink_bandwidth=PAIR_OF_MI300X if pair else wiring.nvlink_bandwidth,
    )  # fmt: skip
    cluster = read_cluster(given=given)
    fabric = cluster.fabric()
    sketch = StepSketch(run.gpus)
    sketch.collective(Act.ALL_REDUCE, range(run.gpus), float(run.bytes))
    chooses = run.software.startswith("NCCL") and "Ring" not in run.software and "RCCL" not in run.software
    use = NetworkUse(algorithm="nccl" if chooses else "ring").settled(wiring.gpu, cluster)
    step = sketch.step()
    return run_on(step, expand_on(step, fabric, use), fabric, use).trace.makespan


def why_not_comparable(run: PublishedRun) -> str:
    """Why a row says nothing about this simulation; empty where it does."""
    if run.precision == "amp_fp8":
        return "FP8, which is not priced"
    if "Tree" in run.software:
        return "a tree, on NICs of unknown speed"
    if run.accelerator == "H20":
        return "its owner asks why it is slow (NCCL issue 1244)"
    return "hardware not stated" if run.accelerator.startswith("unspecified") else ""


@dataclass(frozen=True)
class Prediction:
    """What is simulated for a row, beside what was measured."""

    run: PublishedRun
    seconds: float
    compute_s: float = 0.0
    exposed_s: float = 0.0
    bubble_s: float = 0.0

    @property
    def error(self) -> float:
        """Relative, above 0 where the simulation is too slow."""
        return self.seconds / self.run.measured_s - 1


def predict(run: PublishedRun) -> Prediction | None:
    """Simulate a row; None where it cannot be: the reason is `why_not_comparable`."""
    if run.bytes:
        return Prediction(run, all_reduce_s(run)) if run.accelerator in WIRINGS else None
    if why_not_comparable(run):
        return None
    found = answer(QUESTIONS[run.set](run)).statistics
    return Prediction(run, found.step_time_s, found.compute_s, found.exposed_communication_s, found.bubble_s)


@dataclass(frozen=True)
class Agreement:
    """How predictions agree with what was measured: relative errors, in parts of what was measured."""

    rows: int
    mape: float
    mean: float
    worst: float


def agreement(predictions: Iterable[Prediction]) -> Agreement:
    """The errors of predictions in four numbers."""
    errors = [prediction.error for prediction in predictions]
    sizes = [abs(error) for error in errors]
    return Agreement(len(errors), sum(sizes) / len(sizes), sum(errors) / len(errors), max(sizes))


def fit_host_factor(tried: Sequence[float]) -> tuple[float, dict[float, float]]:
    """The host factor of the A100 with the least mean square of logarithmic errors on the calibration rows.

    Returned with the error of every factor tried. The devices are left as they were.
    """
    known, rows = device("a100"), calibration_rows()
    errors: dict[float, float] = {}
    for factor in tried:
        with DEVICES.including(device_choice(replace(known, host_factor=factor))):
            found = [prediction for prediction in map(predict, rows) if prediction is not None]
        errors[factor] = sum(math.log1p(one.error) ** 2 for one in found) / len(found)
    return min(errors, key=errors.__getitem__), errors


def _from_teraflops(run: PublishedRun) -> float:
    """Narayanan et al. give FLOP/s by their formula for a step with full recomputation (equation 3)."""
    length, width, words = run.sequence, run.hidden, run.vocabulary
    share = 1 + length / (6 * width) + words / (16 * run.layers * width)
    return 96 * run.batch * length * run.layers * width**2 * share / (run.gpus * run.value * 1e12)


_MEASURED: dict[str, Callable[[PublishedRun], float]] = {
    "s": lambda run: run.value,
    "us": lambda run: run.value * 1e-6,
    "TFLOP/s/GPU": _from_teraflops,
    "tokens/s": lambda run: run.batch * run.sequence / run.value,
    "GB/s": lambda run: 2 * (run.gpus - 1) / run.gpus * run.bytes / (run.value * 1e9),
}
"""Seconds from what a source reports; GB/s are nccl-tests' bus bandwidth of an all-reduce."""
