"""How long `ropewalk pipeline` plans, and what the restrictions of large searches cost.

Times are of made-up models: layers that differ by up to three times in everything, four samples a GPU. Restrictions are
those of `pipeline/width.py`; what they cost is measured on published profiles, where the unrestricted search is quick.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from measure import cpu, machine, options, summary, table
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.planner import searched
from ropewalk.pipeline.profile import Profile, from_states
from ropewalk.pipeline.terms import Terms
from ropewalk.pipeline.width import Width, round_counts, width_for

LAYERS, GPUS = (48, 128, 1024), (16, 64, 512)
PROFILES = Path(__file__).parents[1] / "tests" / "data" / "pipeline_profiles.json"
BATCHES = {"vgg-19": 2048, "bert-48": 64, "xlnet-36": 128, "amoeba-36": 128}
ONE_EACH = tuple(range(1, 17))
NETWORKS = (Machines(16, (8, 16)), Machines(16, ONE_EACH), Machines(16, ONE_EACH, 1.25e9, 1.25e9))


def model(layers: int) -> Profile:
    draw = np.random.default_rng(0)

    def spread(middle: float) -> np.ndarray:
        return draw.uniform(0.5, 1.5, layers) * middle

    forward = spread(1e-3)
    return from_states(
        f"{layers} layers", 1, forward_s=forward, backward_s=2 * forward, parameter_bytes=spread(50e6),
        crossing_bytes=spread(8e6), kept_bytes=spread(30e6),
    )  # fmt: skip


def costs(layers: int, gpus: int) -> Costs:
    machines = Machines(gpus, tuple(range(8, gpus + 1, 8)), 12.5e9, 12.5e9, 200e9, nics=8, switched=True)
    return Costs(model(layers), machines, Terms(4 * gpus, 1, memory_bytes=80e9))


def published(name: str) -> Profile:
    """A V100 profile of DAPPLE, layers in their order; what the last one hands on is what crosses a cut."""
    found = json.loads(PROFILES.read_text())[name]
    return from_states(
        name, found["batch"], forward_s=np.array(found["forward_ms"]) / 1e3,
        backward_s=np.array(found["backward_ms"]) / 1e3, parameter_bytes=found["parameter_bytes"],
        crossing_bytes=found["activation_bytes"], kept_bytes=found["activation_bytes"],
    )  # fmt: skip


def main() -> None:
    quick = options(__doc__).parse_args().quick
    print(f"planning pipelines. {machine()}")
    searched(costs(8, 16))  # loads the kernels
    rows = []
    for layers in LAYERS[:1] if quick else LAYERS:
        for gpus in GPUS[:1] if quick else GPUS:
            contest, seconds = cpu(lambda layers=layers, gpus=gpus: searched(costs(layers, gpus)))
            best = contest.best
            rows.append(
                [
                    str(layers),
                    str(gpus),
                    f"{seconds:.1f}",
                    str(contest.timed),
                    best.plan.strategy[:24],
                    best.plan.schedule,
                ]
            )
    table("planning time", ["layers", "GPUs", "CPU s", "plans timed", "strategy", "schedule"], rows)
    summary(f"the largest pipeline ({rows[-1][0]} layers, {rows[-1][1]} GPUs) is planned in {rows[-1][2]} CPU s")
    restricted = {
        "up to 128 GPUs": Width(slots=6, sets=6, replicas=round_counts(16, between=True), groups=64, sizes=3),
        "beyond": Width(slots=4, sets=2, replicas=round_counts(16), groups=64, timed=32, moves=100, sizes=3),
    }
    rows = []
    for name, width in restricted.items():
        slower = []
        for model_name, batch in list(BATCHES.items())[: 1 if quick else None]:
            profile = published(model_name)
            for machines in NETWORKS:
                asked = Costs(profile, machines, Terms(batch, profile.batch, memory_bytes=16e9))
                slower.append(searched(asked, width).best_s / searched(asked, width_for(asked)).best_s - 1)
        rows.append([name, f"{np.mean(slower):.2%}", f"{max(slower):.2%}"])
    table(
        "published profiles on 16 GPUs, against the unrestricted search",
        ["restrictions", "slower steps, mean", "most"],
        rows,
    )


if __name__ == "__main__":
    main()
