"""SimGrid's half of the comparison: one batch of flows over explicit routes, read as JSON, answered as JSON.

`against_simgrid.py` runs it with the Python that has SimGrid's binding (Debian's python3-simgrid); it needs no more.

Input on stdin: {"hosts": N, "bandwidth": [bytes/s of each directed link], "flows": [[src, dst, bytes, [links]], …]}.
Output: {"version", "build_cpu_s", "run_cpu_s", "clock_s", "finish_s": [of each flow]}.
"""

from __future__ import annotations

import json
import sys
import time

import simgrid

# Plain max-min sharing of the given capacities: no latency scaling, no bandwidth factor, no reverse cross-traffic.
MODEL = ["--cfg=network/model:CM02", "--cfg=network/crosstraffic:0", "--log=root.threshold:error"]


def main() -> None:
    problem = json.load(sys.stdin)
    engine = simgrid.Engine(["simgrid_side", *MODEL])

    began = time.process_time()
    zone = simgrid.NetZone.create_full_zone("fabric")
    hosts = [zone.create_host(f"host{number}", 1e9) for number in range(problem["hosts"])]
    points = [host.netpoint for host in hosts]
    # One shared link for each direction: the same object as one of our directed links.
    links = [zone.create_link(f"link{number}", float(rate)).seal() for number, rate in enumerate(problem["bandwidth"])]
    hops = [simgrid.LinkInRoute(link) for link in links]
    for src, dst, _, path in problem["flows"]:
        zone.add_route(points[src], points[dst], None, None, [hops[link] for link in path], False)
    zone.seal()
    built = time.process_time()

    started: list[simgrid.Comm] = []

    def start_all() -> None:
        # Nobody waits for the flows: an actor that woke up for each of them would only cost SimGrid time.
        for src, dst, size_bytes, _ in problem["flows"]:
            started.append(simgrid.Comm.sendto_async(hosts[src], hosts[dst], int(size_bytes)))

    simgrid.Actor.create("starter", hosts[0], start_all)
    engine.run()
    ran = time.process_time()

    answer = {
        "version": simgrid.simgrid_version,
        "build_cpu_s": built - began,
        "run_cpu_s": ran - built,
        "clock_s": engine.clock,
        "finish_s": [comm.finish_time for comm in started],
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
