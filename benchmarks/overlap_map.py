"""Where the streamed all-reduce wins: 1,056 simulated steps over models, rings, mixing, launches and speeds.

Every case is one data-parallel step on a symmetric ring. The wire is as fast as makes the bytes of a step take `rho`
times as long as computing; mixing runs at `m` times the speed of the wire. A case is planned and run beside every
published scheme in its best setting, and beside the bound that no scheme can pass.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np

from map_chart import write_map
from measure import machine, options, summary, table
from ropewalk.collectives.mixer import Mixer
from ropewalk.overlap.ring import RankRing
from ropewalk.overlap.stream_plan import plan_stream
from ropewalk.overlap.tensors import Tensors, from_layers, tensors_of
from ropewalk.workload.source import open_workload

MODELS = {"vgg16": (32, None), "resnet50": (32, None), "bert-large": (4, 512), "gpt2-xl": (1, 1024)}
"""Samples and tokens of a GPU in a step, on an H200."""
SETTINGS = {
    "gpu": (1e-6, 0.5e-6, 5e-6),
    "cluster": (10e-6, 2e-6, 0.1e-3),
    "tcp": (50e-6, 10e-6, 1e-3),
    "coordinated": (50e-6, 10e-6, 10e-3),
}
"""Latency of a message, what it costs its port, what a launch costs."""
RHO = (0.5, 1.0, 2.0)
MIXING = (math.inf, 2.0, 1.0, 0.5)
TENSORS = (8, 32, 128, 512)
WINS = 0.01
"""What counts as a gain."""


def even(layers: int) -> np.ndarray:
    return np.ones(layers)


def head_heavy(layers: int) -> np.ndarray:
    """The first layer holds half of all bytes, as an embedding does: ready last, needed first."""
    return np.array([layers - 1.0, *[1.0] * (layers - 1)])


def tail_heavy(layers: int) -> np.ndarray:
    """The last layer holds half of all bytes, as a classifier does: ready first, needed last."""
    return head_heavy(layers)[::-1]


def skewed(layers: int) -> np.ndarray:
    """Sizes fall as 1/k and are shuffled: a few tensors hold most."""
    return np.random.default_rng(layers).permutation(1.0 / np.arange(1, layers + 1))


SHAPES: dict[str, Callable[[int], np.ndarray]] = {
    "even": even,
    "head-heavy": head_heavy,
    "tail-heavy": tail_heavy,
    "skewed": skewed,
}


@dataclass(frozen=True)
class Case:
    """A model, or a made-up shape of so many tensors, on one ring."""

    model: str
    tensors: int | None
    ranks: int
    mixing: float
    setting: str
    rho: float


@dataclass(frozen=True)
class Found:
    """What came out of a case; steps in parts of computing."""

    case: Case
    compute_s: float
    stream: float
    bound: float
    bound_is: str
    schemes: dict[str, float]
    best_published: str
    gain: float
    gain_beside: float


def cases(quick: bool) -> Iterator[Case]:
    """The 1,056 cases: four models on rings of 4, 8, 32 and some of 128 ranks, and sixteen shapes on 8 ranks."""
    if quick:
        yield from (Case("vgg16", None, 8, mixing, "cluster", 1.0) for mixing in MIXING)
        return
    for rho, ranks, model, setting, mixing in product((1.0, 0.5, 2.0), (8, 4, 32), MODELS, SETTINGS, MIXING):
        yield Case(model, None, ranks, mixing, setting, rho)
    for shape, layers, mixing, setting, rho in product(SHAPES, TENSORS, (math.inf, 0.5), SETTINGS, RHO):
        yield Case(shape, layers, 8, mixing, setting, rho)
    for model, mixing, setting, rho in product(MODELS, (math.inf, 0.5), SETTINGS, RHO):
        yield Case(model, None, 128, mixing, setting, rho)


def tensors_for(case: Case) -> Tensors:
    """The layers of a model on an H200, or of a shape: 100 MB and 100 ms, a third of it forward."""
    if case.tensors is None:
        return tensors_of(open_workload(case.model, *MODELS[case.model]), whole_layers=True)
    share = SHAPES[case.model](case.tensors)
    each = 0.1 / case.tensors
    return from_layers(
        100e6 * share / share.sum(),
        backward_s=[each * 2 / 3] * case.tensors,
        forward_s=[each / 3] * case.tensors,
        model=case.model,
    )


def run_case(case: Case, tensors: Tensors) -> Found:
    """Plan one case."""
    latency, message, launch = SETTINGS[case.setting]
    wire = 2 * (case.ranks - 1) / case.ranks * tensors.total_bytes
    bandwidth = wire / (case.rho * tensors.compute_s)
    ring = RankRing(case.ranks, bandwidth, Mixer(case.mixing * bandwidth), latency, message, launch)
    plan = plan_stream(tensors, ring)
    alone = tensors.compute_s
    return Found(
        case,
        alone,
        plan.run.step_s / alone,
        plan.bounds.step_s / alone,
        plan.bounds.in_words(),
        {name: found.step_s / alone for name, found in plan.published.items()},
        plan.best_published,
        plan.gain,
        plan.gain_beside,
    )


def show(found: list[Found]) -> None:
    """Medians over models, by ring and mixing; then what the shapes say; then where nothing is won."""
    for rho in RHO:
        title = f"gain over the best published scheme, rho = {rho:g}: median (least … most) over models, %"
        rows = []
        for ranks, mixing in product((4, 8, 32, 128), MIXING):
            mine = [one for one in found if one.case.tensors is None and one.case.rho == rho]
            mine = [one for one in mine if (one.case.ranks, one.case.mixing) == (ranks, mixing)]
            if mine:
                cells = (_spread([one.gain for one in mine if one.case.setting == name]) for name in SETTINGS)
                rows.append((str(ranks), f"{mixing:g}", *cells))
        table(title, ("ranks", "m", *SETTINGS), rows)
    _show_shapes([one for one in found if one.case.tensors is not None])
    gains = np.array([one.gain for one in found])
    above = np.array([one.stream / one.bound - 1 for one in found])
    beside = np.array([one.gain_beside for one in found])
    print(
        f"\n{len(found)} cases: over 1 % in {(gains > WINS).mean():.0%}, over 5 % in {(gains > 0.05).mean():.0%}, over "
        f"10 % in {(gains > 0.1).mean():.0%}, most {gains.max():.1%}, least {gains.min():.1%}; over side by side: "
        f"median {np.median(beside):.1%}, most {beside.max():.1%}, least {beside.min():.1%}; "
        f"above the bound: median {np.median(above):.1%}, nine in ten below {np.quantile(above, 0.9):.1%}"
    )
    idle = [one for one in found if one.gain <= WINS]
    closed = sum(one.schemes[one.best_published] / one.bound - 1 <= 0.02 for one in idle)
    print(f"{len(idle)} cases gain 1 % or less; in {closed} the best published scheme is within 2 % of the bound")


def _show_shapes(found: list[Found]) -> None:
    if not found:
        return
    title = "gain by number of tensors and skew of sizes, 8 ranks, rho = 1, %: free mixing / mixing at half the wire"
    rows = []
    for shape, layers in product(SHAPES, TENSORS):
        mine = [one for one in found if (one.case.model, one.case.tensors, one.case.rho) == (shape, layers, 1.0)]
        cells = []
        for setting in SETTINGS:
            both = [
                one.gain
                for mixing in (math.inf, 0.5)
                for one in mine
                if (one.case.mixing, one.case.setting) == (mixing, setting)
            ]
            cells.append(" / ".join(f"{100 * gain:.1f}" for gain in both))
        rows.append((shape, str(layers), *cells))
    table(title, ("sizes", "tensors", *SETTINGS), rows)


def _draw(found: list[Found], path: Path) -> None:
    rings = [
        (ranks, mixing)
        for ranks, mixing in product((4, 8, 32, 128), MIXING)
        if ranks < 128 or mixing in (math.inf, 0.5)
    ]
    named = {ring: f"{ring[0]} ranks, m = {'∞' if math.isinf(ring[1]) else f'{ring[1]:g}'}" for ring in rings}
    panels = []
    for rho in RHO:
        cells = {}
        for ring, setting in product(rings, SETTINGS):
            gains = [
                one.gain
                for one in found
                if one.case.tensors is None and (one.case.ranks, one.case.mixing) == ring
                if (one.case.setting, one.case.rho) == (setting, rho)
            ]
            if gains:
                cells[named[ring], setting] = median(gains)
        panels.append((f"wire time = {rho:g} × computing", cells))
    write_map(panels, list(named.values()), list(SETTINGS), path)


def _spread(gains: Iterable[float]) -> str:
    known = [100 * gain for gain in gains]
    return f"{median(known):.1f} ({min(known):.1f} … {max(known):.1f})" if known else ""


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--json", type=Path, help="write every case to this file, and read what is there already")
    parser.add_argument("--chart", type=Path, help="write the map as SVG to this file")
    chosen = parser.parse_args()
    print(machine())
    known = {}
    if chosen.json is not None and chosen.json.exists():
        listed = [Found(Case(**one.pop("case")), **one) for one in json.loads(chosen.json.read_text())]
        known = {one.case: one for one in listed}
    found, tensors = [], {}
    for case in cases(chosen.quick):
        if case not in known:
            if (key := (case.model, case.tensors)) not in tensors:
                tensors[key] = tensors_for(case)
            known[case] = run_case(case, tensors[key])
        found.append(known[case])
        if chosen.json is not None and len(found) % 16 == 0:
            chosen.json.write_text(json.dumps([asdict(one) for one in known.values()]))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([asdict(one) for one in known.values()]))
    show(found)
    if chosen.chart is not None:
        _draw(found, chosen.chart)
    summary(f"median gain {median(one.gain for one in found):.1%} over {len(found)} cases")


if __name__ == "__main__":
    main()
