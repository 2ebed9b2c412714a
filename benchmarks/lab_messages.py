"""How many messages per second the ranks of a lab keep up with: `python benchmarks/lab_messages.py [hosts] [messages]`.

Hosts on one fast switch send small messages round a ring, each after the one before it has arrived, in as many chains
as there are hosts: links are idle almost always, so the time is that of the ranks and of the kernel.
"""

from __future__ import annotations

import sys
from statistics import median

from ropewalk.fabric import IdealSwitch
from ropewalk.lab.forwarding import pinned
from ropewalk.lab.job import LabWork, job_of_graph
from ropewalk.lab.lab import built
from ropewalk.lab.measure import measured
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.request import routes_by_name
from ropewalk.task import Sketch

BYTES = 200


def main() -> None:
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else 16
    messages = int(sys.argv[2]) if len(sys.argv) > 2 else 16_000
    network, sketch = LabNetwork(IdealSwitch(hosts, bandwidth=1.25e8).build()), Sketch()
    _, routes = routes_by_name(network.fabric, "shortest")
    assert routes is not None
    for chain in range(hosts):
        before: list[int] = []
        for step in range(messages // hosts):
            src = (chain + step) % hosts
            before = [sketch.transfer(src, (src + 1) % hosts, BYTES, after=before)]
    graph = sketch.graph()
    with built(network, pinned(routes)) as lab:
        work = LabWork("messages", {}, job_of_graph(graph, routes, {}, "cubic"), routes, False, 1.0)
        runs = measured(lab, "shortest", work, 3).runs
    seconds = median(run.seconds for run in runs)
    own = median(run.machine.own_s for run in runs)
    print(f"{graph.tasks} messages of {BYTES} B between {hosts} hosts: {graph.tasks / seconds:,.0f} per second, "
          f"{1e6 * own / graph.tasks:.0f} us of CPU time each")  # fmt: skip


if __name__ == "__main__":
    main()
