"""Proposals a second of the search for seats: DLRM with 64 tables on 128 servers, on a switch and on a circulant."""

from __future__ import annotations

from measure import cpu, machine, options, summary, table
from ropewalk.codesign.estimate import SeatingEstimate
from ropewalk.codesign.link_loads import LinkLoads
from ropewalk.codesign.metropolis import SearchPatience, search
from ropewalk.codesign.network import StepNetwork, one_ring
from ropewalk.codesign.seats import space_of
from ropewalk.device.pricer import pricer
from ropewalk.fabric import Circulant, IdealSwitch
from ropewalk.fabric.wiring import regular_rings
from ropewalk.routing import ecmp, shortest
from ropewalk.strategy.server import Server
from ropewalk.task.lower.seat_pricer import SeatPricer
from ropewalk.workload import zoo
from ropewalk.workload.zoo.topoopt import JOBS

MODEL, PORTS, PORT_BANDWIDTH, JUMPS = "topoopt-dlrm-dedicated", 4, 12.5e9, (1, 15)


def main() -> None:
    chosen = options(__doc__).parse_args()
    job = JOBS[MODEL]
    servers, budget = job.servers, 500 if chosen.quick else 4000
    seats = SeatPricer(
        zoo.build(MODEL, job.batch), pricer("a100", "tf32"), job.global_batch, Server(job.gpus, memory_bytes=80e9)
    )
    space = space_of(seats, servers)
    networks = (
        StepNetwork("ideal switch", IdealSwitch(servers, PORTS * PORT_BANDWIDTH, 1e-6).build(), shortest, one_ring),
        StepNetwork(
            f"circulant {JUMPS}", Circulant(servers, JUMPS, PORT_BANDWIDTH, 1e-6).build(), ecmp(0),
            lambda size: regular_rings(size, JUMPS if size == servers else (1,), both_ways=True),
        ),
    )  # fmt: skip
    rows = []
    for network in networks:
        loads, routed_s = cpu(lambda network=network: LinkLoads(network, servers))  # type: ignore[misc]
        costs = SeatingEstimate(seats, loads, space.seats, servers)
        costs.place(space.start)
        search(space, costs, seed=1, patience=SearchPatience(10))  # load the kernel
        found, seconds = cpu(lambda costs=costs: search(space, costs, seed=0, patience=SearchPatience(budget)))  # type: ignore[misc]
        rows.append([network.name, f"{routed_s:.2f}", f"{budget / seconds:.0f}", f"{found.seconds * 1e3:.1f}"])
    title = f"proposals: one chain of {budget}, {MODEL} on {servers} servers, by CPU seconds. {machine()}"
    table(title, ["network", "routing, s", "proposals/s", "best step, ms"], rows)
    summary(f"{' and '.join(row[2] for row in rows)} proposals/s on {' and '.join(row[0] for row in rows)}")


if __name__ == "__main__":
    main()
