"""Studies of the order of communication: every way on models, speeds and start-ups; one function a study.

`python recipes/overlap.py` lists them, `python recipes/overlap.py NAME` runs one and prints its rows as CSV. What real
processes on slow links take beside what the model says is in `measured_overlap.py`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict

from ropewalk.device.pricer import pricer
from ropewalk.hardware import Given, read_cluster
from ropewalk.overlap.comparison import comparisons
from ropewalk.overlap.gains import study
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.study import answer, over_speeds
from ropewalk.overlap.tensors import tensors_of
from ropewalk.workload.source import open_workload

Row = dict[str, object]
MODELS = (("vgg16", 32, None), ("resnet50", 32, None), ("bert-large", 4, 512), ("gpt2", 4, 1024))
"""Model, samples of a GPU, tokens of a sample."""
A100S = read_cluster("4x8", Given(device="a100", nics=1))
"""Servers with one NIC each."""


def five_models_ordered_and_not_on_8_to_64_v100s_10_to_100_gbps() -> Iterator[Row]:
    """What priorities gain over whole tensors in order of readiness, for all-reduces and parameter servers."""
    for row in study():
        yield {**asdict(row), "kind": str(row.kind), "gain": row.gain}


def four_models_on_a_ring_of_16_a100s_cheap_and_dear_launches() -> Iterator[Row]:
    """First come, DDP's buckets, MG-WFBP, DeAR, PACE and streamed sums beside the bound, at 10, 25 and 100 Gbps."""
    prices = pricer("a100", "bf16")
    models = [tensors_of(open_workload(name, batch, tokens), prices) for name, batch, tokens in MODELS]
    for row in comparisons(models):
        yield row.row()


def vgg16_on_4_servers_of_8_a100s_1_to_400_gbps() -> Iterator[Row]:
    """Where order matters: every way over speeds of the network."""
    for row in over_speeds(OverlapQuestion("vgg16", A100S, batch=32 * A100S.gpus)):
        yield asdict(row)


def four_models_on_4_servers_of_8_a100s_25_gbps_on_a_leaf_spine() -> Iterator[Row]:
    """The model of each way beside the flow simulation of the same plan, step after step."""
    for name, batch, tokens in MODELS:
        asked = OverlapQuestion(name, A100S.at_bandwidth(3.125e9), batch=batch * A100S.gpus, sequence=tokens)
        for way in answer(asked).methods:
            if way.simulated_s is not None:
                deviation = way.simulated_s / way.step_s - 1
                yield {"model": name, "way": way.name, "model_s": way.step_s, "network_s": way.simulated_s,
                       "deviation": deviation}  # fmt: skip


RECIPES: tuple[Callable[[], Iterator[Row]], ...] = (
    five_models_ordered_and_not_on_8_to_64_v100s_10_to_100_gbps,
    four_models_on_a_ring_of_16_a100s_cheap_and_dear_launches,
    vgg16_on_4_servers_of_8_a100s_1_to_400_gbps,
    four_models_on_4_servers_of_8_a100s_25_gbps_on_a_leaf_spine,
)


def main(arguments: list[str]) -> None:
    known = {recipe.__name__: recipe for recipe in RECIPES}
    if len(arguments) != 1 or arguments[0] not in known:
        for name, recipe in known.items():
            print(f"{name}\n    {(recipe.__doc__ or '').splitlines()[0]}")
        sys.exit(2 if arguments else 0)
    writer: csv.DictWriter[str] | None = None
    for row in known[arguments[0]]():
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
