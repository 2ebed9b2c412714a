"""Studies of topology and strategy together, as published for TopoOpt (NSDI 2023): one function a study.

`python recipes/codesign.py` lists them, `python recipes/codesign.py NAME` runs one and prints its rows as CSV. What
comes out beside what was published, and why they differ: docs/validation.md.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator

from ropewalk.codesign import study
from ropewalk.codesign.baselines import BASELINES
from ropewalk.codesign.evaluate import time_step
from ropewalk.codesign.job import job_of
from ropewalk.codesign.question import PlanQuestion, published_servers
from ropewalk.hardware import Cluster

Row = dict[str, object]
GBPS = 1e9 / 8
MODELS = ("dlrm", "candle", "bert", "ncf", "resnet50", "vgg16")


def _asked(model: str, cluster: Cluster, compare: tuple[str, ...]) -> PlanQuestion:
    """A question as the published study asks it, in its precision."""
    return PlanQuestion(model, cluster, precision="tf32", compare=compare)


def four_shared_models_on_16_servers_ideal_switch_100_to_800_gbps() -> list[PlanQuestion]:
    """The 16-server table: ideal switches with 100, 200, 400 and 800 Gbps a server, plans of 4 and 8 x 100 Gbps."""
    shared = [f"topoopt-{model}-shared" for model in ("dlrm", "bert", "vgg16", "candle")]
    return [
        _asked(model, published_servers(16, degree, bandwidth=gbps * GBPS), ("ideal-switch", "fat-tree"))
        for model in shared
        for degree, gbps in ((4, 25), (4, 50), (4, 100), (8, 100))
    ]


def six_dedicated_models_on_128_servers_4_x_100_gbps() -> list[PlanQuestion]:
    """Speed-up over the cost-equivalent fat-tree (published: up to 3.4) and distance to the ideal switch (none)."""
    return [_asked(model, published_servers(128), ("all",)) for model in MODELS]


def six_dedicated_models_on_128_servers_8_x_100_gbps() -> list[PlanQuestion]:
    """The same with eight ports."""
    return [_asked(model, published_servers(128, 8), ("all",)) for model in MODELS]


def dlrm_and_bert_on_16_servers_reconfigured_within_1us_to_10ms() -> list[PlanQuestion]:
    """Circuits that follow the demand, with and without relays, beside the plan that never changes."""
    kinds, delays = ("ocs-reconfig", "ocs-reconfig-no-relay"), ("1us", "10us", "100us", "1ms", "10ms")
    compare = ("ideal-switch", *(f"{kind}:{delay}" for kind in kinds for delay in delays))
    return [_asked(model, published_servers(16), compare) for model in ("topoopt-dlrm-shared", "topoopt-bert-shared")]


def dlrm_all_to_all_on_128_servers_batch_64_to_2048() -> Iterator[Row]:
    """One table a server and everything else on all servers, no search: what the tax of relayed bytes costs."""
    for degree in (4, 8):
        for batch in (64, 128, 256, 512, 1024, 2048):
            cluster = published_servers(128, degree)
            asked = PlanQuestion("topoopt-dlrm-all-to-all", cluster, precision="tf32", batch=batch * cluster.gpus)
            job = job_of(asked)
            seating = job.space.seating(job.space.start)
            wiring, step, demands = job.wire(seating), job.step(seating), job.demands(seating)
            found = time_step(step, job.network(seating, wiring))
            times = {
                name: time_step(step, network).seconds
                for name in ("ideal-switch", "fat-tree")
                if (network := BASELINES[name].make(job.site).network) is not None
            }
            yield {
                "degree": degree,
                "batch": batch,
                "all_to_all_of_all_reduce": demands.pair_bytes / 128 / demands.sums[0].size_bytes,
                "jumps": " ".join(str(jump) for rings in wiring.rings for jump in rings.jumps),
                "tax": found.tax,
                "plan_s": found.seconds,
                **{f"{name}_s": seconds for name, seconds in times.items()},
            }


PLANS: tuple[Callable[[], list[PlanQuestion]], ...] = (
    four_shared_models_on_16_servers_ideal_switch_100_to_800_gbps,
    six_dedicated_models_on_128_servers_4_x_100_gbps,
    six_dedicated_models_on_128_servers_8_x_100_gbps,
    dlrm_and_bert_on_16_servers_reconfigured_within_1us_to_10ms,
)
SWEEPS: tuple[Callable[[], Iterator[Row]], ...] = (dlrm_all_to_all_on_128_servers_batch_64_to_2048,)


def planned(questions: list[PlanQuestion]) -> Iterator[Row]:
    """One row a plan: its time, and the times of what it is compared with."""
    for asked in questions:
        design = study.answer(asked).design
        yield {
            "model": asked.model,
            "servers": asked.servers,
            "degree": asked.degree,
            "gbps": asked.bandwidth / GBPS,
            "plan_s": design.step_time_s,
            "compute_s": design.compute_s,
            "tax": design.tax,
            "degree_mp": design.wiring.degree_pairs,
            **{f"{name}_s": row.step_time_s for name, row in design.baselines.items()},
        }


def main(arguments: list[str]) -> None:
    known = {recipe.__name__: recipe for recipe in (*PLANS, *SWEEPS)}
    if not arguments or arguments[0] not in known:
        for name, recipe in known.items():
            print(f"{name}\n    {(recipe.__doc__ or '').splitlines()[0]}")
        sys.exit(0 if not arguments else 2)
    made = known[arguments[0]]()
    rows = planned(made) if isinstance(made, list) else made
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n", restval="")
            writer.writeheader()
        writer.writerow({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()})
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
