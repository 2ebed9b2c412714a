"""Against figures of ASTRA-sim: 1,024 ranks, 1 GiB, a ring all-reduce round by round and an all-to-all.

ASTRA-sim cannot be installed from a registry, so it is not run here: its figures below (congestion-aware analytical
back end, one process) were measured once on another two-core machine. They give the scale, not a race on one track.
Ours: every transfer is simulated, symmetry is off; the run by symmetry stands apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from measure import best_cpu, cpu, machine, options, short, summary, table, warm_up
from ropewalk.collectives import Program, direct_all_to_all, ring_all_reduce
from ropewalk.fabric import Builder, IdealSwitch, Ring
from ropewalk.routing import Routes, shortest
from ropewalk.sim import simulate, simulate_rounds
from ropewalk.task import Lockstep, lockstep, unroll

SIZE_BYTES = 2.0**30
BANDWIDTH = 50 * 2.0**30
START_UP_S = 500e-9
RANKS = 1024
BUILD_REPEATS, RUN_REPEATS = 3, 3


@dataclass(frozen=True)
class Case:
    name: str
    program: Callable[[], Program]
    fabric: Builder
    bound_s: float
    """The time that cannot be beaten: every rank's bytes over its link and the start-up of every round."""
    astra_cpu_s: float | None
    astra_sim_ms: float | None


def main() -> None:
    chosen = options(__doc__).parse_args()
    ranks = 64 if chosen.quick else RANKS
    print(f"against figures of ASTRA-sim, measured on another two-core machine. {machine()}")
    warm_up()
    rows = []
    for case in _cases(ranks):
        row, total_s = _measured(case)
        rows.append(row)
        if case.astra_cpu_s is not None:
            summary(
                f"{case.name}: {short(total_s)} CPU s for building and running, {case.astra_cpu_s / total_s:.1f}x "
                f"ASTRA-sim's {case.astra_cpu_s} CPU s (other machine)"
            )
    table(
        f"{ranks} ranks, 1 GiB per rank, links of 50 GiB/s, 500 ns of start-up per transfer",
        ["collective on fabric", "transfers", "ours ms", "bound ms", "over", "program+routes s", "unroll s", "run s",
         "all CPU s", "by symmetry s", "ASTRA CPU s", "ASTRA ms", "ratio"],
        rows,
    )  # fmt: skip


def _cases(ranks: int) -> list[Case]:
    send_s = (ranks - 1) / ranks * SIZE_BYTES / BANDWIDTH
    ring_s = 2 * send_s + 2 * (ranks - 1) * START_UP_S
    # (CPU s, simulated ms) for 1,024 ranks.
    figures = {"ring": (7.01, 43.014), "switch": (6.01, 83.998), "all-to-all": (11.25, 20.001)}
    known = figures if ranks == RANKS else dict.fromkeys(figures, (None, None))

    def ring() -> Program:
        return ring_all_reduce([np.arange(ranks)])

    return [
        Case("ring all-reduce on a ring", ring, Ring(ranks, BANDWIDTH), ring_s, *known["ring"]),
        Case("ring all-reduce on a switch", ring, IdealSwitch(ranks, BANDWIDTH), ring_s, *known["switch"]),
        Case(
            "direct all-to-all on a switch",
            lambda: direct_all_to_all(ranks),
            IdealSwitch(ranks, BANDWIDTH),
            send_s + START_UP_S,
            *known["all-to-all"],
        ),
    ]


def _measured(case: Case) -> tuple[list[str], float]:
    (rounds, routes), program_s = best_cpu(lambda: _routed(case), BUILD_REPEATS)
    graph, unroll_s = best_cpu(lambda: unroll(rounds), BUILD_REPEATS)
    trace, run_s = best_cpu(lambda: simulate(graph, routes, symmetry=False), RUN_REPEATS)
    folded, folded_s = cpu(lambda: simulate_rounds(rounds, routes))
    if abs(folded.makespan / trace.makespan - 1) > 1e-12:
        raise SystemExit(f"{case.name}: {folded.makespan} s by symmetry, {trace.makespan} s without")
    over = trace.makespan / case.bound_s - 1
    if not -1e-9 < over < 1e-6:
        raise SystemExit(f"{case.name}: {trace.makespan} s is not the bound {case.bound_s} s")
    total_s = program_s + unroll_s + run_s
    row = [
        case.name, f"{rounds.transfers:,}", f"{trace.makespan * 1e3:.3f}", f"{case.bound_s * 1e3:.3f}", f"{over:.0e}",
        short(program_s), short(unroll_s), short(run_s), short(total_s), short(program_s + folded_s),
        *(["-"] * 3 if case.astra_cpu_s is None or case.astra_sim_ms is None
          else [short(case.astra_cpu_s), f"{case.astra_sim_ms:.3f}", f"{case.astra_cpu_s / total_s:.1f}"]),
    ]  # fmt: skip
    return row, total_s


def _routed(case: Case) -> tuple[Lockstep, Routes]:
    rounds = lockstep(case.program(), SIZE_BYTES, START_UP_S)
    return rounds, shortest(case.fabric.build(), *rounds.all_pairs())


if __name__ == "__main__":
    main()
