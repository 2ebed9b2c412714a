"""What ordering gradients gains, by model, network speed, number of workers, and method of synchronising.

The baseline hands whole tensors over as they appear; against it stands the best partition size and credit. Workers are
GPUs in servers that share a NIC; they sum inside a server first, which costs little beside the network and is left out.
Around servers goes a ring, or as many parameter servers as there are servers of workers stand on hosts of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ropewalk.device.pricer import pricer
from ropewalk.errors import StrategyError
from ropewalk.overlap.link import ExchangeKind, Link, ring_link, server_link
from ropewalk.overlap.policy import fifo
from ropewalk.overlap.scheduler import step_seconds
from ropewalk.overlap.tensors import Tensors, tensors_of
from ropewalk.overlap.tuner import cost_of, exhaustive, space_of
from ropewalk.workload.source import open_workload

MODELS: Mapping[str, tuple[str, int, int | None]] = {
    "VGG16": ("vgg16", 32, None),
    "ResNet50": ("resnet50", 32, None),
    "BERT-large": ("bert-large", 1, 512),
    "GPT-2": ("gpt2", 1, 512),
    "Transformer": ("gpt:layers=12,hidden=1024,heads=16", 1, 512),
}
"""By name: model, samples a GPU, tokens a sample; batches as in ByteScheduler's evaluation (32 images, 512 tokens).

The last stands for the translation model of that evaluation: as many blocks of the same width, without the attention
from decoder to encoder.
"""

TCP_ALPHA_S, RDMA_ALPHA_S = 30e-6, 8e-6
"""Cost of a round: start-ups that MG-WFBP's authors fitted to 16 workers (0.91 ms on 10 Gbps Ethernet, 0.24 ms on
56 Gbps InfiniBand) over the 30 rounds of a ring."""
RDMA_FROM_GBPS = 40.0


@dataclass(frozen=True)
class Gain:
    """One row of the study."""

    model: str
    gbps: float
    workers: int
    kind: ExchangeKind
    compute_s: float
    fifo_s: float
    scheduled_s: float
    partition_bytes: float
    credit_bytes: float

    @property
    def gain(self) -> float:
        """By how much more training a second does: 0.44 is 44 % faster."""
        return self.fifo_s / self.scheduled_s - 1


def alpha_s(gbps: float) -> float:
    """The cost of a round on a network of this speed: faster ones are taken to bypass the kernel."""
    return RDMA_ALPHA_S if gbps >= RDMA_FROM_GBPS else TCP_ALPHA_S


def _all_reduce(servers: int, gbps: float) -> Link:
    return ring_link(servers, gbps * 1e9 / 8, alpha_s(gbps), latency_s=alpha_s(gbps))


def _parameter_server(servers: int, gbps: float) -> Link:
    return server_link(servers, servers, gbps * 1e9 / 8, alpha_s(gbps), latency_s=alpha_s(gbps))


LINKS: Mapping[ExchangeKind, Callable[[int, float], Link]] = {
    ExchangeKind.ALL_REDUCE: _all_reduce,
    ExchangeKind.PARAMETER_SERVER: _parameter_server,
}
"""By method of synchronising: the link of this many servers with NICs of this many Gbps."""


def gain(tensors: Tensors, link: Link, *, model: str, gbps: float, workers: int) -> Gain:
    """Baseline and best order of one model on one link."""
    best = exhaustive(cost_of(tensors, link), space_of(tensors)).best
    return Gain(
        model, gbps, workers, link.kind, tensors.compute_s, step_seconds(tensors, link, fifo(barrier=False)),
        best.step_s, best.partition_bytes, best.credit_bytes,
    )  # fmt: skip


def study(
    models: Iterable[str] = tuple(MODELS),
    gbps: Sequence[float] = (10.0, 25.0, 100.0),
    workers: Sequence[int] = (8, 16, 32, 64),
    kinds: Sequence[ExchangeKind] = tuple(ExchangeKind),
    *,
    device: str = "v100",
    precision: str = "fp32",
    gpus_per_server: int = 4,
) -> list[Gain]:
    """Every combination, model by model."""
    for count in workers:
        if count % gpus_per_server or count < 2 * gpus_per_server:
            raise StrategyError(
                f"{count} workers do not fill two or more servers of {gpus_per_server} GPUs: "
                f"give a multiple of {gpus_per_server} from {2 * gpus_per_server}"
            )
    prices = pricer(device, precision)
    rows = []
    for model in models:
        if model not in MODELS:
            raise StrategyError(f"the study has no model {model!r}: use one of {', '.join(MODELS)}")
        name, batch, sequence = MODELS[model]
        tensors = tensors_of(open_workload(name, batch, sequence), prices)
        rows += [
            gain(tensors, LINKS[kind](count // gpus_per_server, speed), model=model, gbps=speed, workers=count)
            for speed in gbps
            for count in workers
            for kind in kinds
        ]
    return rows
