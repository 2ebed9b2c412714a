"""A collective poured as one flow a pair takes the time of its rounds, where every round keeps the same links busy.

They need not agree where that does not hold: over several servers with several ranks each, once a NIC and the wires
inside a server are close in speed, ranks of a written-out ring run ahead of each other; the levels of a hierarchy take
turns when written out and overlap when poured; a chain takes time to fill; and flows that meet others share links for
the length of the whole collective instead of that of a round.
"""

import numpy as np
import pytest

from ropewalk.collectives.choice import CollectiveChoice
from ropewalk.fabric import Dgx, FatTree, IdealSwitch, Torus
from ropewalk.routing import router_for
from ropewalk.sim import simulate
from ropewalk.task.expand import expand
from ropewalk.task.step import Act, StepSketch
from ropewalk.task.transport import Transport

COSTS = Transport(20e-6, 2e-6, 7e-6, 0.77, 0.9)
EVEN = Transport(20e-6, 7e-6, 7e-6, 0.77, 0.9)


def both(fabric, step, hosts, family="ring", costs=COSTS):
    times = []
    for mode in ("fluid", "rounds"):
        expansion = expand(step, hosts, fabric, collectives=CollectiveChoice(family), transport=costs, mode=mode)
        routes = router_for(fabric).make(0)(fabric, *expansion.pairs())
        times.append(simulate(expansion.with_path_latency(routes).graph, routes).makespan)
    return times


def step_of(act, group, ranks, size_bytes=64e6):
    sketch = StepSketch(ranks)
    late = sketch.compute(int(group[0]), 3e-3)
    sketch.collective(act, [int(rank) for rank in group], size_bytes, after=[late])
    return sketch.step()


@pytest.mark.parametrize("act", [Act.ALL_REDUCE, Act.ALL_GATHER, Act.REDUCE_SCATTER], ids=lambda act: act.name)
@pytest.mark.parametrize("latency", [0.0, 1e-6])
@pytest.mark.parametrize("group", [range(8), range(3), range(0, 32, 8), range(1, 32, 8)], ids=str)
def test_rings_inside_a_server_and_with_one_rank_a_server_agree(act, latency, group):
    fabric = Dgx(4, latency=latency).build()
    poured, written = both(fabric, step_of(act, group, 32), range(32))
    assert poured == pytest.approx(written, rel=1e-9)


@pytest.mark.parametrize(
    "builder", [IdealSwitch(16), FatTree(4), Torus((4, 4))], ids=lambda builder: builder.expression
)
def test_rings_over_neighbours_agree_on_fabrics_without_servers(builder):
    fabric = builder.build()
    # Along a torus neighbours are one link apart when the order turns at the end of every row.
    order = np.arange(16).reshape(4, 4)
    order[1::2] = order[1::2, ::-1]
    poured, written = both(fabric, step_of(Act.ALL_REDUCE, order.ravel(), 16), range(16))
    assert poured == pytest.approx(written, rel=1e-9)


@pytest.mark.parametrize("family", ["mesh", "halving-doubling"])
def test_meshes_and_halving_doubling_agree_on_one_switch(family):
    fabric = IdealSwitch(8).build()
    poured, written = both(fabric, step_of(Act.ALL_REDUCE, range(8), 8), range(8), family)
    assert poured == pytest.approx(written, rel=1e-9)


@pytest.mark.parametrize("servers", [2, 3, 4])
def test_rings_over_servers_whose_nics_are_far_slower_than_their_wires_agree(servers):
    fabric = Dgx(servers).build()
    ranks = 8 * servers
    poured, written = both(fabric, step_of(Act.ALL_REDUCE, range(ranks), ranks), range(ranks), costs=EVEN)
    assert poured == pytest.approx(written, rel=1e-9)


@pytest.mark.parametrize("servers", [2, 3, 4])
def test_poured_rings_over_servers_pay_for_crossing_only_in_the_rounds_in_which_a_chunk_crosses(servers):
    """Written out, a rank goes on when all its rings have, and one of them crosses in every round."""
    fabric = Dgx(servers).build()
    ranks = 8 * servers
    poured, written = both(fabric, step_of(Act.ALL_REDUCE, range(ranks), ranks), range(ranks))
    crossing = 2 * -(-(ranks - 1) // 8)
    spared = 2 * (ranks - 1) - crossing
    assert written - poured == pytest.approx(spared * (COSTS.round_across_s - COSTS.round_inside_s), rel=1e-6)
