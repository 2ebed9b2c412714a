"""Against csg-htsim and the RDMA fork of ns-3: the same flows on the same fat-trees, CPU seconds and makespans.

csg-htsim (github.com/Broadcom/csg-htsim, BSD-3) is built with `make` in `sim` and in `sim/datacenter`; give the path of
`htsim_roce`. The RDMA fork of ns-3 (github.com/alibaba-edu/High-Precision-Congestion-Control, GPL-2) is built with
`waf` under Python 2.7, or with g++ alone; give the path of `third`. htsim sends at line rate and pauses; ns-3 runs
DCQCN; ours runs both. Every run starts all flows together over links of 40 Gbps and 1 us with packets of 1000 bytes.
Events of the others were counted once by a counter in their loops. A simulator that is not given is left out.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from measure import cpu, machine, options, peak_mib, short, summary, table
from packet_simulators import Answer, Pairs, ask_htsim, ask_ns3
from ropewalk.fabric import Fabric, FatTree
from ropewalk.routing import murmur
from ropewalk.sim.packet import Completion, Dcqcn, PacketSettings, PacketTrace, Roce, simulate_packets
from ropewalk.sim.packet.transport import TransportSettings
from ropewalk.task import TaskKind, make_graph

GBPS = 40
PAPER_LIKE = Dcqcn(alpha_period_s=50e-6, cut_period_s=50e-6, grow_period_s=55e-6, fast_stages=5)
"""DCQCN with the clocks of its paper."""
RECORDED = Path(__file__).parents[1] / "tests" / "data" / "packet_runs.json"


@dataclass(frozen=True)
class Case:
    """Flows of one size between hosts of a fat-tree; and the events, in millions, that the others make of them."""

    name: str
    radix: int
    pairs: Pairs
    size: float
    htsim_events: float | None = None
    ns3_events: float | None = None
    htsim_aborts: bool = False
    """Whether an assertion of htsim stops it before the end."""

    @property
    def hosts(self) -> int:
        return self.radix**3 // 4

    def fabric(self) -> Fabric:
        return FatTree(self.radix, bandwidth=GBPS * 1e9 / 8, latency=1e-6).build()


def _ring(hosts: int) -> Pairs:
    return [(host, (host + 1) % hosts) for host in range(hosts)]


def _all_to_all(hosts: int) -> Pairs:
    return [(src, dst) for src in range(hosts) for dst in range(hosts) if src != dst]


def _permutation(hosts: int) -> Pairs:
    """Every host sends to another and hears from another: the first shuffle that leaves nobody in place."""
    chance = random.Random(1)
    while True:
        order = list(range(hosts))
        chance.shuffle(order)
        if all(src != dst for src, dst in enumerate(order)):
            return list(enumerate(order))


CASES = (
    Case("ring, 16 hosts, 1 MB", 4, _ring(16), 1e6, 0.320, 0.224),
    Case("ring, 128 hosts, 1 MB", 8, _ring(128), 1e6, 1.889, 1.345),
    Case("all-to-all, 16 hosts, 1 MB", 4, _all_to_all(16), 1e6, 7.686, 6.068),
    Case("permutation, 128 hosts, 10 MB", 8, _permutation(128), 1e7, 41.916, 30.706),
    Case("all-to-all, 128 hosts, 125 kB", 8, _all_to_all(128), 125e3, None, 75.986, htsim_aborts=True),
    Case("permutation, 1024 hosts, 2 MB", 16, _permutation(1024), 2e6),
)
QUICK = 3
"""How many of them a quick run compares."""

SEEDS = 4
"""Draws of what depends on chance."""


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--htsim", type=Path, default=None, help="the built htsim_roce")
    parser.add_argument("--ns3", type=Path, default=None, help="the built program `third` of the RDMA fork of ns-3")
    chosen = parser.parse_args()
    print(f"packets against htsim and ns-3: CPU seconds. {machine()}")
    _, first = cpu(lambda: _ours(CASES[0], Roce()))
    print(f"the first run took {first:.1f} s, which loads the kernels, or compiles them where they are not on disk yet")
    _growth(times=(1, 4) if chosen.quick else (1, 4, 16))
    ratios = [_compare(case, chosen.htsim, chosen.ns3) for case in (CASES[:QUICK] if chosen.quick else CASES)]
    if not chosen.quick:
        _against_recorded()
    for name, column in (("htsim", 0), ("ns-3", 1)):
        known = [found for row in ratios if (found := row[column]) is not None]
        if known:
            summary(f"{name} takes {min(known):.1f} to {max(known):.1f} times our CPU time for the same packets")


def _ours(case: Case, transport: TransportSettings, seed: int = 0) -> tuple[PacketTrace, float]:
    src, dst = np.array(case.pairs).T
    count = len(src)
    graph = make_graph(
        np.full(count, TaskKind.TRANSFER), src, dst, case.size, np.zeros(count + 1, int), np.zeros(0, int)
    )
    routes = murmur(100)(case.fabric(), src, dst)
    settings = PacketSettings(transport, truncate_ns=True, completion=Completion.SENDER, seed=seed)
    return cpu(lambda: simulate_packets(graph, routes, settings))


def _compare(case: Case, htsim: Path | None, ns3: Path | None) -> tuple[float | None, float | None]:
    """Times of the three on one case; how many times ours the others take."""
    pauses, pauses_s = _ours(case, Roce())
    rated, rated_s = _ours(case, Dcqcn())
    rows = [
        _row("ropewalk, pauses only", pauses, Answer(pauses.makespan * 1e6, pauses_s), pauses.events / 1e6),
        _row("ropewalk, DCQCN", rated, Answer(rated.makespan * 1e6, rated_s), rated.events / 1e6),
    ]
    by_htsim = by_ns3 = None
    if htsim is not None and not case.htsim_aborts:
        by_htsim = ask_htsim(htsim, case.hosts, case.pairs, case.size, GBPS)
        rows.append(_row("htsim, pauses only", pauses, by_htsim, case.htsim_events))
    if ns3 is not None:
        by_ns3 = ask_ns3(ns3, case.fabric(), case.pairs, case.size)
        rows.append(_row("ns-3, DCQCN", rated, by_ns3, case.ns3_events))
    table(case.name, ("simulator", "CPU s", "makespan us", "M hops/s", "M events/s"), rows)
    if case.htsim_aborts:
        print("  htsim stops at an assertion (FairPriorityQueue::beginService)")
    return (
        None if by_htsim is None else by_htsim.cpu_s / pauses_s,
        None if by_ns3 is None else by_ns3.cpu_s / rated_s,
    )


def _row(label: str, same: PacketTrace, answer: Answer, events: float | None) -> tuple[str, ...]:
    """Packets over links are the same work for all, so ours are counted for everybody."""
    return (
        label, short(answer.cpu_s), f"{answer.makespan_us:.1f}", f"{same.hops / answer.cpu_s / 1e6:.2f}",
        "-" if events is None else f"{events / answer.cpu_s:.2f}",
    )  # fmt: skip


def _against_recorded() -> None:
    """Makespans of 128 hosts against recorded runs of ns-3; those under DCQCN are one draw each, ours are several."""
    recorded = json.loads(RECORDED.read_text())
    all_to_all, permutation = recorded["fattree8_us"]["a2a_125KB"], recorded["permutation_us"]
    rows = []
    for case, known in ((CASES[4], all_to_all), (CASES[3], permutation)):
        for name, transport in (("pfc", Roce()), ("mlx", Dcqcn()), ("paper", PAPER_LIKE)):
            seeds = range(1 if name == "pfc" else SEEDS)
            ours = np.array([_ours(case, transport, seed)[0].makespan * 1e6 for seed in seeds])
            spread = f"{ours.min():.1f}" if len(ours) == 1 else f"{ours.min():.0f} to {ours.max():.0f}"
            rows.append((case.name, name, spread, f"{known[name]:.1f}", f"{ours.mean() / known[name] - 1:+.1%}"))
    table("against recorded runs of ns-3", ("what", "control", "ours, us", "recorded", "mean apart"), rows)


def _growth(times: tuple[int, ...]) -> None:
    """Time against hosts and bytes; memory against simulated time."""
    rows = []
    for radix in (4, 8, 16):
        for factor in times if radix < 16 else times[:1]:
            case = Case(f"ring, {radix**3 // 4} hosts, {factor} MB", radix, _ring(radix**3 // 4), factor * 1e6)
            trace, seconds = _ours(case, Roce())
            each = f"{seconds / trace.hops * 1e9:.0f}"
            rows.append((case.name, f"{trace.hops / 1e6:.2f}", short(seconds), each, f"{peak_mib():.0f}"))
    table("growth", ("what", "M packet hops", "CPU s", "ns a hop", "peak MiB"), rows)


if __name__ == "__main__":
    main()
