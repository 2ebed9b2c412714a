"""Steps of real training on links of limited speed: what plans predict beside what the clock says.

Four processes train a small network with a large last part over Gloo, each a host of a lab: a network namespace whose
one link is slowed by the kernel. First the clock looks at layers without communication and at all-reduces without
computing; from that alone every step time is predicted. Then every way is run, by turns, several times. Needs root,
iproute2, PyTorch and a core for each process, better two:

    python recipes/measured_overlap.py [Mbit/s ...]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from statistics import median
from typing import Any

from ropewalk.errors import StrategyError
from ropewalk.execute import LocalRanks
from ropewalk.execute.overlap import (
    CommunicationOrder,
    order_of_groups,
    order_of_launches,
    order_of_run,
    order_of_streamed,
    streamed_through,
)
from ropewalk.execute.overlap.layer_times import LayerTimes
from ropewalk.execute.overlap.link_times import LinkTimes
from ropewalk.execute.overlap.trial import (
    Make,
    join,
    look_at_layers,
    look_at_links,
    train_alone,
    train_by_ddp,
    train_by_order,
)
from ropewalk.fabric import IdealSwitch
from ropewalk.lab.forwarding import hashed
from ropewalk.lab.lab import Lab, built
from ropewalk.lab.network import LabNetwork, LabSettings
from ropewalk.overlap.bounds import lower_bounds
from ropewalk.overlap.buckets import MIB, bucket_caps, buckets, groups_with_barrier_s
from ropewalk.overlap.groups import Groups
from ropewalk.overlap.link import Link
from ropewalk.overlap.plans import fused_plan
from ropewalk.overlap.scheduler import schedule
from ropewalk.overlap.tensors import Tensors
from ropewalk.overlap.tuner import cost_of, exhaustive, space_of

RANKS = 4
SPEEDS_MBPS = (500.0, 1000.0, 2000.0)


def vgg_like() -> tuple[Any, Callable[[Any], Any]]:
    """Convolutions that compute and a classifier that weighs: 2.9 million parameters, nine tenths in three layers."""
    import torch
    from torch import nn

    def block(inputs: int, outputs: int) -> list[Any]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]

    net = nn.Sequential(
        *block(3, 32), *block(32, 64), nn.MaxPool2d(2), *block(64, 128), nn.MaxPool2d(2), *block(128, 128),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(),
        nn.Linear(512, 10),
    )  # fmt: skip
    images, classes = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    return net, lambda model: nn.functional.cross_entropy(model(images), classes)


def even() -> tuple[Any, Callable[[Any], Any]]:
    """Twelve layers of the same width, read by many tokens: computing and bytes are spread evenly."""
    import torch
    from torch import nn

    layers = [part for _ in range(12) for part in (nn.Linear(512, 512), nn.ReLU())]
    given = torch.randn(1024, 512)
    return nn.Sequential(*layers), lambda model: model(given).square().mean()


def wide_first() -> tuple[Any, Callable[[Any], Any]]:
    """A first layer that holds nearly everything, ready last and needed first: no order can hide it."""
    import torch
    from torch import nn

    layers = [nn.Linear(8192, 256), nn.ReLU(), *(part for _ in range(4) for part in (nn.Linear(256, 256), nn.ReLU()))]
    given = torch.randn(128, 8192)
    return nn.Sequential(*layers), lambda model: model(given).square().mean()


MODELS: dict[str, Make] = {"vgg-like": vgg_like, "even": even, "wide-first": wide_first}


@dataclass(frozen=True)
class Way:
    """One way to train, with the step that is predicted for it."""

    name: str
    predicted_s: float
    job: Callable[..., list[float]]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Row:
    """One way on one model and speed."""

    model: str
    mbps: float
    way: str
    predicted_s: float
    measured_s: float
    """Median over all runs, ranks and steps."""
    runs_s: tuple[float, ...]
    """The medians of the single runs."""

    @property
    def error(self) -> float:
        return self.predicted_s / self.measured_s - 1


def ways(layers: LayerTimes, alone: LinkTimes, in_a_row: LinkTimes, model: str) -> list[Way]:
    """Everything that is compared, planned and predicted from measured layers and all-reduces."""
    tensors, link = layers.tensors(model), alone.link()
    rounds_s = min(link.start_up_s, in_a_row.link().start_up_s)
    best = schedule(tensors, link, exhaustive(cost_of(tensors, link), space_of(tensors)).policy())
    fused, streamed = fused_plan(tensors, link), streamed_through(tensors, link, rounds_s=rounds_s)
    ready = Groups.singles(tensors.in_ready_order)

    def by_ddp(name: str, cap_mib: float | None) -> Way:
        groups = buckets(tensors, bucket_caps(None if cap_mib is None else cap_mib * MIB))
        settings = {} if cap_mib is None else {"bucket_cap_mb": cap_mib}
        return Way(name, groups_with_barrier_s(tensors, link, groups), train_by_ddp, (settings,))

    def by_order(name: str, predicted_s: float, order: CommunicationOrder) -> Way:
        return Way(name, predicted_s, train_by_order, (order,))

    return [
        Way("no communication", tensors.compute_s, train_alone, ()),
        by_ddp("ddp, default buckets", None),
        by_ddp("ddp, 1 MiB buckets", 1.0),
        by_order("as ready, barrier", groups_with_barrier_s(tensors, link, ready), order_of_groups(tensors, ready)),
        by_order("priority, pieces", best.step_s, order_of_run(best)),
        by_order("fused and cut", fused.step_s, order_of_launches(tensors, fused.launches)),
        by_order("fused, streamed", streamed.step_s, order_of_streamed(tensors, streamed, credit_bytes=1 << 18)),
    ]


def measured(
    models: Sequence[str] = tuple(MODELS), speeds_mbps: Sequence[float] = SPEEDS_MBPS, runs: int = 3, steps: int = 6
) -> Iterator[tuple[Row, ...]]:
    """For every model and speed, one row a way."""
    if unknown := sorted(set(models) - MODELS.keys()):
        raise StrategyError(f"there is no model {unknown[0]}: choose {', '.join(MODELS)}")
    for mbps in speeds_mbps:
        with one_switch(mbps) as lab, LocalRanks(RANKS) as processes:
            processes.call(join, [(lab.namespace(rank),) for rank in range(RANKS)])
            times = [_slowest(processes.call(look_at_links, [(window,)] * RANKS)) for window in (1, 4)]
            for model in models:
                make = MODELS[model]
                seen = processes.call(look_at_layers, [(make, 10)] * RANKS)
                layers = sorted(seen, key=lambda one: one.compute_s)[RANKS // 2]
                compared = ways(layers, *times, model)
                taken: dict[str, list[float]] = {way.name: [] for way in compared}
                for _ in range(runs):
                    for way in compared:
                        ranks = processes.call(way.job, [(make, steps, *way.arguments)] * RANKS)
                        taken[way.name].append(median(one for rank in ranks for one in rank))
                yield (
                    *(
                        Row(model, mbps, way.name, way.predicted_s, median(taken[way.name]), tuple(taken[way.name]))
                        for way in compared
                    ),
                    _bound(layers.tensors(model), times[0].link(), model, mbps),
                )


def one_switch(mbps: float) -> AbstractContextManager[Lab]:
    """All ranks on one switch, with large frames and windows: with small ones, fast links never fill."""
    fabric = IdealSwitch(RANKS, mbps * 1e6 / 8).build()
    return built(LabNetwork(fabric, settings=LabSettings(mtu=9000, window_bytes=4 << 20)), hashed(fabric))


def _bound(tensors: Tensors, link: Link, model: str, mbps: float) -> Row:
    """What no order can beat on these links, for the last line of a table."""
    return Row(model, mbps, "lower bound", lower_bounds(tensors, link).step_s, float("nan"), ())


def _slowest(seen: Sequence[LinkTimes]) -> LinkTimes:
    return max(seen, key=lambda one: sum(one.seconds))


def main(speeds_mbps: Sequence[float]) -> None:
    for rows in measured(speeds_mbps=speeds_mbps or SPEEDS_MBPS):
        print(f"\n{rows[0].model} at {rows[0].mbps:g} Mbit/s, ms a step{'':12}predicted  measured   error   runs")
        for row in rows:
            spread = " ".join(f"{1e3 * one:.0f}" for one in row.runs_s)
            print(
                f"  {row.way:40}{1e3 * row.predicted_s:9.1f}{1e3 * row.measured_s:10.1f}{row.error:8.0%}   {spread}",
                flush=True,
            )


if __name__ == "__main__":
    # Processes look functions up by the name of their module, so this file must not be the main one.
    import measured_overlap

    measured_overlap.main([float(word) for word in sys.argv[1:]])
