"""A plan made by hand: four rings' worth of cables on a circle, one layer in tables, every part of a page filled."""

import numpy as np

from ropewalk.codesign.alternate import HistoryEntry
from ropewalk.codesign.answer import PlanAnswer, route_facts
from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.design import Design, TimedBaseline
from ropewalk.codesign.evaluate import time_step
from ropewalk.codesign.network import wired_network
from ropewalk.codesign.question import PlanQuestion, published_servers
from ropewalk.fabric.wiring import GroupRings, Wiring
from ropewalk.routing import shortest
from ropewalk.routing.listed import listed
from ropewalk.strategy.seating import Manner, Seat, Seating
from ropewalk.task.step import Act, Step, StepSketch
from ropewalk.training.checked import Expected


def circle(servers: int = 12, jumps: tuple[int, ...] = (1, 5), *, matched: bool = True) -> Wiring:
    """Duplex rings by these jumps and, where asked for, a cable between opposite servers."""
    rings = {tuple(sorted((server, (server + jump) % servers))) for jump in jumps for server in range(servers)}
    cables = [(a, b, 1) for a, b in sorted(rings)]
    if matched:
        cables += [(server, server + servers // 2, 1) for server in range(servers // 2)]
    return Wiring(
        servers, 2 * len(jumps) + matched, True, 12.5e9, 1e-6, (GroupRings(servers, jumps),), tuple(sorted(cables)),
        2 * len(jumps), int(matched),
    )  # fmt: skip


def tables_and_stack(servers: int = 12) -> Step:
    """A table on server 0 feeds a stack on all servers; the stack's weights are summed."""
    sketch = StepSketch(servers, ("compute", "pipeline", "data"))
    looked_up = sketch.compute(0, 1e-3, label="table forward")
    sent = [sketch.send(0, peer, 4e6, after=[looked_up], stream=1, label="table rows") for peer in range(1, servers)]
    forward = [
        sketch.compute(server, 2e-3, after=[looked_up if server == 0 else sent[server - 1]], label="stack forward")
        for server in range(servers)
    ]
    backward = [
        sketch.compute(server, 3e-3, after=[forward[server]], label="stack backward") for server in range(servers)
    ]
    total = sketch.collective(Act.ALL_REDUCE, range(servers), 2e8, after=backward, stream=2, label="stack gradients")
    for server in range(servers):
        sketch.compute(server, 4e-4, after=[total], label="stack update")
    return sketch.step()


def plan_by_hand(model: str = "dlrm", servers: int = 12) -> PlanAnswer:
    wiring = circle(servers)
    timed = time_step(tables_and_stack(servers), wired_network(wiring, shortest))
    pairs = np.zeros((servers, servers))
    pairs[0, 1:] = 4e6
    demands = Demands(servers, (GroupSum(tuple(range(servers)), 2e8),), pairs)
    found = timed.statistics
    seconds = timed.seconds
    design = Design(
        question=PlanQuestion(model, published_servers(servers, wiring.degree)),
        layers=("table", "stack"),
        seating=Seating(servers, (Seat((0,), Manner.PINNED), Seat(tuple(range(servers))))),
        wiring=wiring,
        routes=route_facts(timed.run.trace.routes),
        step_time_s=seconds,
        expected=Expected(None, None, 0, "no comparable runs were checked"),
        compute_s=found.compute_s,
        exposed_communication_s=found.exposed_communication_s,
        estimate_s=0.9 * seconds,
        tax=timed.tax,
        allreduce_bytes=demands.sum_wire_bytes,
        mp_bytes=demands.pair_bytes,
        cost=48_000.0,
        baselines={
            "ideal-switch": TimedBaseline(0.9 * seconds, 136_000.0, "a switch that never blocks", None),
            "fat-tree": TimedBaseline(2.2 * seconds, 48_000.0, "full bisection at the cost of the plan", None),
            "sip-ml": TimedBaseline(1.7 * seconds, 68_000.0, "circuits without relays", "ideal-switch"),
        },
        history=(
            HistoryEntry(0, "start", 1.5 * seconds, True),
            HistoryEntry(1, "strategy", 1.1 * seconds, True),
            HistoryEntry(1, "topology", 1.2 * seconds, False),
            HistoryEntry(2, "strategy", seconds, True),
        ),
        ended="rounds",
        notes=("Made by hand.",),
    )  # fmt: skip
    return PlanAnswer(design, timed, demands, listed(timed.run.trace.routes))
