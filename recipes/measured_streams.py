"""The streamed all-reduce beside published schemes on links of limited speed: predicted, and measured.

Four processes train a model of the shape of BERT-large, each a host of a lab: a network namespace whose one link is
slowed by the kernel. Computing is a timed wait, so that few cores do; copies, additions, updates and messages are real,
and all schemes run on the same library. Two cases, each with communication of 0.5, 1 and 2 times the computing:

- recomputing: blocks are recomputed in the backward pass, messages have a latency of 1 ms, adding is free;
- slow adder: adding runs at half the speed of the wire, messages have a latency of 0.2 ms.

First the clock looks at layers without communication and at chunks without computing; from that alone all steps are
predicted and all schemes planned. Then every scheme trains, by turns. Needs root, iproute2 and PyTorch:

    python recipes/measured_streams.py [--json streams.json] [--ratios 0.5 1 2] [--rounds 1] [--ranks 4]
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from math import inf
from statistics import median
from typing import Any

import numpy as np

from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.execute import LocalRanks
from ropewalk.execute.overlap import CommunicationOrder, in_two_halves, order_of_exchange
from ropewalk.execute.overlap.layer_times import LayerTimes
from ropewalk.execute.overlap.stream.trial import look_at_chunks, look_at_latency, train_by_stream
from ropewalk.execute.overlap.trial import LinkPlace, join, look_at_layers
from ropewalk.fabric import IdealSwitch
from ropewalk.lab.forwarding import hashed
from ropewalk.lab.lab import Lab, built
from ropewalk.lab.network import LabNetwork, LabSettings
from ropewalk.lab.priority import ahead
from ropewalk.lab.queues import rate_line
from ropewalk.overlap.buckets import buckets
from ropewalk.overlap.exchange import ChunkExchange, Overlaps, in_operations, run
from ropewalk.overlap.published import PUBLISHED
from ropewalk.overlap.ring import RankRing
from ropewalk.overlap.stream_answer import overlaps_label
from ropewalk.overlap.stream_bounds import stream_bounds
from ropewalk.overlap.stream_plan import plan_stream
from ropewalk.overlap.tensors import Tensors

MODEL_BYTES, COMPUTE_S = 10.5e6, 0.35
"""A BERT-large scaled down, and what it computes in a step."""
DDP_BUCKET_BYTES = 26.2e6 / 1.34e9 * MODEL_BYTES
"""The usual bucket, scaled down as much."""
WIRE_SHARE = 0.98
"""Of a link, what headers leave for gradients."""
BURST_BYTES = 10_000
"""A frame: what a link may send at once after a pause."""
STEPS = 7
"""Of a training that are timed; others warm up."""
DDP = "DDP, usual buckets"
ONE_OVERLAP = [Overlaps(*(at == one for at in range(3))) for one in range(3)]
SHOWN = ("best-buckets", "priority", "dear", "fused")


@dataclass(frozen=True)
class TimedLayers:
    """A model of which only sizes and times are known; calling it makes a module and its loss."""

    elements: tuple[int, ...]
    """Of the one parameter of each layer."""
    forward_s: tuple[float, ...]
    backward_s: tuple[float, ...]

    def __call__(self) -> tuple[Any, Any]:
        import torch
        from torch import nn

        class Waits(torch.autograd.Function):
            @staticmethod
            def forward(context, given, weight, forward_s, backward_s):
                time.sleep(forward_s)
                context.save_for_backward(weight)
                context.backward_s = backward_s
                return given + 0.0

            @staticmethod
            def backward(context, gradient):
                time.sleep(context.backward_s)
                return gradient, torch.zeros_like(context.saved_tensors[0]), None, None

        class Layer(nn.Module):
            def __init__(self, elements, forward_s, backward_s):
                super().__init__()
                self.weight = nn.Parameter(torch.zeros(elements))
                self.times = forward_s, backward_s

            def forward(self, given):
                return Waits.apply(given, self.weight, *self.times)

        layers = [Layer(*numbers) for numbers in zip(self.elements, self.forward_s, self.backward_s, strict=True)]
        given = torch.zeros(1, requires_grad=True)
        return nn.Sequential(*layers), lambda model: model(given).sum()


def bert_shaped(forward_share: float) -> TimedLayers:
    """Embeddings of 31.8 million parameters, which compute nothing, and 24 blocks of 12.6 million."""
    parameters = np.array([31.8e6] + [12.6e6] * 24)
    elements = np.rint(parameters / parameters.sum() * MODEL_BYTES / 4).astype(int)
    each = COMPUTE_S / 24
    forward, backward = each * forward_share, each * (1 - forward_share)
    return TimedLayers(tuple(elements.tolist()), (0.0, *[forward] * 24), (0.0, *[backward] * 24))


@dataclass(frozen=True)
class Case:
    """What is trained on which links."""

    name: str
    forward_share: float
    latency_s: float
    mix_ratio: float
    """How many times as fast as the wire adding is."""


CASES = (Case("recomputing", 1 / 4, 1e-3, inf), Case("slow adder", 1 / 3, 2e-4, 0.5))


@dataclass(frozen=True)
class Row:
    """One scheme in one case."""

    case: str
    ratio: float
    """Seconds of communication over seconds of computing."""
    scheme: str
    predicted_s: float
    measured_s: float
    """Median over all steps; a step takes as long as on its median rank."""
    steps_s: tuple[float, ...]

    @property
    def error(self) -> float:
        return self.predicted_s / self.measured_s - 1

    @property
    def spread(self) -> float:
        """Half of the range that the middle half of the steps covers, in parts of the median."""
        low, high = np.percentile(self.steps_s, [25, 75])
        return float(high - low) / 2 / self.measured_s


@dataclass(frozen=True)
class Scheme:
    """Something to train by, with the step that is predicted for it."""

    name: str
    predicted_s: float
    order: CommunicationOrder


def schemes(tensors: Tensors, ring: RankRing, planned_on: RankRing) -> tuple[list[Scheme], float]:
    """Everything that is compared, planned and predicted from what was measured; and the lower bound."""
    plan = plan_stream(tensors, planned_on)
    found = [(PUBLISHED[name].label, plan.published[name].exchange) for name in SHOWN]
    found = [(name, in_two_halves(one) if name == PUBLISHED["dear"].label else one) for name, one in found]
    several = (Overlaps(False, False, False), *ONE_OVERLAP, Overlaps())
    found += [(overlaps_label(one), plan.run.exchange.with_overlaps(one)) for one in several]
    found.append((DDP, usual_buckets(tensors, planned_on)))
    return [
        Scheme(name, run(exchange, tensors, ring).step_s, order_of_exchange(exchange, tensors, ring))
        for name, exchange in found
    ], stream_bounds(tensors, ring).step_s


def usual_buckets(tensors: Tensors, ring: RankRing) -> ChunkExchange:
    """Buckets of the usual size as they fill, then a barrier, on the better of a phased and a piped library."""
    members = buckets(tensors, (DDP_BUCKET_BYTES,)).members
    operations = [[(tensor, float(tensors.size_bytes[tensor])) for tensor in group] for group in members]
    tried = [in_operations(operations, slices=slices, barrier=True) for slices in (1, 4, 16)]
    return min(tried, key=lambda one: run(one, tensors, ring).step_s)


_stack = ExitStack()


def join_ahead(place: LinkPlace) -> None:
    """Move onto slow links, ahead of other processes of the machine, with all threads that are made from now on."""
    _stack.enter_context(ahead())
    join(place)


def measured(ratios: Sequence[float], rounds: int, ranks: int) -> Iterator[tuple[list[Row], RankRing, float]]:
    """For every ratio and case its rows, the ring that was measured, and the lower bound."""
    for ratio in ratios:
        rate = 2 * (ranks - 1) / ranks * MODEL_BYTES / (ratio * COMPUTE_S)
        with one_switch(ranks, rate / WIRE_SHARE) as lab, LocalRanks(ranks) as processes:
            processes.call(join_ahead, [(lab.namespace(rank),) for rank in range(ranks)])
            for case in CASES:
                ring = look_at_ring(processes, case, rate)
                make = bert_shaped(case.forward_share)
                seen: list[LayerTimes] = processes.call(look_at_layers, [(make, 3)] * ranks)
                layers = sorted(seen, key=lambda one: one.compute_s)[ranks // 2]
                compared, bound = schemes(layers.tensors("bert-shaped"), ring, cautious(processes, ring))
                yield _rows(processes, case, ratio, make, compared, ring, rounds), ring, bound


def _rows(
    processes: LocalRanks,
    case: Case,
    ratio: float,
    make: TimedLayers,
    compared: list[Scheme],
    ring: RankRing,
    rounds: int,
) -> list[Row]:
    taken: dict[str, list[float]] = {scheme.name: [] for scheme in compared}
    add_bytes_per_s = ring.mixer.rate
    for _ in range(rounds):
        for scheme in compared:
            given = (make, STEPS, scheme.order, case.latency_s, add_bytes_per_s)
            by_rank = processes.call(train_by_stream, [given] * processes.ranks)
            taken[scheme.name] += [median(step) for step in zip(*by_rank, strict=True)]
    return [
        Row(case.name, ratio, one.name, one.predicted_s, median(taken[one.name]), tuple(taken[one.name]))
        for one in compared
    ]


def look_at_ring(processes: LocalRanks, case: Case, rate: float) -> RankRing:
    """Speed, cost of a message and latency of the real ring, from messages and streamed all-reduce alone.

    All-reduces are as large as that of a step: links let half a megabyte pass at once after a pause. Their seconds are
    fitted by 2(n-1) (chunks x cost of a message + bytes / n / speed) and a constant.
    """
    ranks = processes.ranks
    latency_s = median(processes.call(look_at_latency, [(100,)] * ranks))
    cases = [(int(elements), chunks) for elements in (MODEL_BYTES / 8, MODEL_BYTES / 4) for chunks in (32, 256)]
    seconds = np.array(processes.call(look_at_chunks, [(cases, 3, case.latency_s)] * ranks)[0])
    rounds = 2 * (ranks - 1)
    terms = np.array([[rounds * chunks, rounds * 4 * elements / ranks, 1.0] for elements, chunks in cases])
    message_s, byte_s, _ = np.linalg.lstsq(terms, seconds, rcond=None)[0].tolist()
    mixer = FREE if case.mix_ratio == inf else Mixer(case.mix_ratio * rate)
    bandwidth = min(1 / byte_s, rate / WIRE_SHARE)  # no faster than the kernel lets it be, however noisy the clock
    return RankRing(ranks, bandwidth, mixer, case.latency_s + max(latency_s, 0.0), max(message_s, 0.0))


def cautious(processes: LocalRanks, ring: RankRing) -> RankRing:
    """The ring with the whole cost of a message, which the wire hides as long as it carries bytes meanwhile: with it
    schemes are planned, so that none of them depends on more messages than processes can handle."""
    chunks = 256
    (seconds, *_) = processes.call(look_at_chunks, [([(chunks * ring.ranks, chunks)], 5, 0.0)] * ring.ranks)
    return replace(ring, message_s=max(ring.message_s, seconds[0] / (chunks * 2 * ring.rounds)))


@contextmanager
def one_switch(ranks: int, rate: float) -> Iterator[Lab]:
    """All ranks on one switch, with large frames and windows: with small ones, fast links never fill.

    Links of a lab may send 8 ms of their speed at once after a pause, which would give back to schemes that wait what
    their waiting has cost. Here they may send a frame.
    """
    fabric = IdealSwitch(ranks, rate).build()
    network = LabNetwork(fabric, settings=LabSettings(mtu=9000, window_bytes=1 << 18))
    with built(network, hashed(fabric)) as lab:
        batches = []
        for link, (cable, end) in network.end_of_link.items():
            bits = network.rate_bits(link)
            line = re.sub(r"burst \d+", f"burst {BURST_BYTES}", rate_line(network, cable, bits))
            batches.append((network.cables[cable].nodes[end], "tc", [line]))
        lab.process.ask(batches=batches)
        yield lab


def shown(rows: list[Row], ring: RankRing, bound_s: float) -> Iterator[str]:
    case, best = rows[0], min((row for row in rows if row.scheme in _published()), key=lambda row: row.measured_s)
    yield (
        f"\n{case.case}, communication {case.ratio:g} x computing; {ring.ranks} ranks, "
        f"{ring.bandwidth / 1e6:.1f} MB/s, {1e6 * ring.message_s:.0f} us per message, "
        f"latency {1e3 * ring.latency_s:.2f} ms; ms per step"
    )
    yield f"  {'':36}predicted  measured  +- half of the middle half   error   over best published"
    for row in sorted(rows, key=lambda row: row.measured_s):
        gain = f"{best.measured_s / row.measured_s - 1:+.1%}"
        yield (
            f"  {row.scheme:36}{1e3 * row.predicted_s:9.1f}{1e3 * row.measured_s:10.1f}{row.spread:12.1%}"
            f"{row.error:22.1%}{gain:>12}"
        )
    yield f"  {'lower bound':36}{1e3 * bound_s:9.1f}"


def _published() -> set[str]:
    return {DDP, *(PUBLISHED[name].label for name in SHOWN)}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--json", default="measured_streams.json")
    words.add_argument("--ratios", nargs="+", type=float, default=[0.5, 1.0, 2.0])
    words.add_argument("--rounds", type=int, default=1)
    words.add_argument("--ranks", type=int, default=4)
    given = words.parse_args()
    everything = []
    for rows, ring, bound_s in measured(given.ratios, given.rounds, given.ranks):
        print("\n".join(shown(rows, ring, bound_s)), flush=True)
        link = {"bandwidth": ring.bandwidth, "message_s": ring.message_s, "latency_s": ring.latency_s}
        everything += [{**asdict(row), **link, "bound_s": bound_s, "spread": row.spread} for row in rows]
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=1)


if __name__ == "__main__":
    # Processes look functions up by the name of their module, so this file must not be the main one.
    import measured_streams

    measured_streams.main()
