"""The flow level reproduces every exact closed form, combination by combination."""

from __future__ import annotations

import pytest
from collective_names import PUBLISHED

from ropewalk.collectives.cost import closed_form
from ropewalk.collectives.table import program_on
from ropewalk.fabric import BCube, FatTree, IdealSwitch, LeafSpine, Ring, Torus
from ropewalk.routing import ROUTERS, default_router_name
from ropewalk.sim import simulate, simulate_rounds
from ropewalk.task import lockstep, unroll
from ropewalk.task.routed import route_rounds

SIZE, BANDWIDTH, START_UP = 575e6, 5e9, 10e-6

SMALL = [
    FatTree(4), FatTree(6), FatTree(4, 2), LeafSpine(4, 4, 4), LeafSpine(4, 2, 4), LeafSpine(4, 2, 4, cables=2),
    BCube(3, 2), BCube(4, 2), BCube(2, 3), BCube(3, 3), Torus((3, 3)), Torus((4, 4)), Torus((5, 5)), Torus((3, 3, 3)),
    IdealSwitch(2), IdealSwitch(7), IdealSwitch(16), Ring(8),
]  # fmt: skip
LARGE = [FatTree(8), FatTree(12, 6), LeafSpine(16, 16, 16), BCube(16, 2), BCube(4, 4), Torus((16, 16)),
         Torus((4, 4, 4, 4)), IdealSwitch(256)]  # fmt: skip


def _case(builder, logical, *, symmetry=False):
    fabric = type(builder)(**{**builder.__dict__, "bandwidth": BANDWIDTH}).build()
    router = default_router_name(fabric)
    form = closed_form(logical, builder, router)
    rounds = lockstep(program_on(fabric, logical), SIZE, START_UP)
    return fabric, rounds, route_rounds(rounds, fabric, ROUTERS[router].make(0), symmetry=symmetry), form


@pytest.mark.parametrize("builder", SMALL, ids=lambda builder: builder.expression)
@pytest.mark.parametrize("logical", PUBLISHED)
def test_flow_level_equals_the_exact_closed_form_on_small_fabrics(builder, logical):
    _, rounds, routes, form = _case(builder, logical)
    folded = simulate_rounds(rounds, routes).makespan
    plain = simulate(unroll(rounds), routes, symmetry=False).makespan
    assert folded == pytest.approx(plain, rel=1e-12)
    if form is not None and form.edition == "exact" and not form.is_bound:
        assert folded == pytest.approx(form.seconds(SIZE, BANDWIDTH, START_UP), rel=1e-9)
    elif form is not None and not form.is_bound:
        # Counted forms add up the rounds as if all ranks were in step. In the simulation ranks run ahead, which can
        # help (idle links are used earlier) and hurt (two rounds share a link).
        assert folded == pytest.approx(form.seconds(SIZE, BANDWIDTH, START_UP), rel=0.25)


@pytest.mark.parametrize("builder", LARGE, ids=lambda builder: builder.expression)
@pytest.mark.parametrize("logical", ["ps", "mesh", "ring", "halving-doubling", "hips"])
def test_flow_level_equals_the_exact_closed_form_up_to_256_hosts(builder, logical):
    _, rounds, routes, form = _case(builder, logical)
    if form is None or form.edition != "exact" or form.is_bound:
        pytest.skip("no exact form: this combination is counted")
    assert simulate_rounds(rounds, routes).makespan == pytest.approx(form.seconds(SIZE, BANDWIDTH, START_UP), rel=1e-9)


@pytest.mark.parametrize(
    ("builder", "logical"),
    [
        (IdealSwitch(16384), "ring"),
        (IdealSwitch(16384), "ps"),
        (IdealSwitch(16384), "halving-doubling"),
        (Torus((128, 128)), "ring"),
        (Torus((128, 128)), "hips"),
        (Torus((128, 128)), "halving-doubling"),
        (BCube(4, 7), "hips"),
        (BCube(128, 2), "ring"),
        (BCube(128, 2), "halving-doubling"),
        (BCube(128, 2), "ps"),
        (Torus((128, 128)), "ps"),
        (LeafSpine(128, 128, 128), "ring"),
        (LeafSpine(128, 128, 128), "ps"),
        (FatTree(40), "hips"),
        (FatTree(40), "ps"),
        (IdealSwitch(16384), "mesh"),
        (IdealSwitch(16384), "ps-sharded"),
        (LeafSpine(128, 128, 128), "mesh"),
        (LeafSpine(128, 128, 128), "ps-sharded"),
        (LeafSpine(128, 32, 128), "mesh"),
        (FatTree(40), "mesh"),
        (FatTree(40), "ps-sharded"),
        (BCube(128, 2), "mesh"),
        (BCube(128, 2), "ps-sharded"),
        (BCube(4, 7), "mesh"),
        (Torus((128, 128)), "mesh"),
        (Torus((128, 128)), "ps-sharded"),
        (Torus((16, 32, 32)), "mesh"),
    ],
    ids=lambda value: getattr(value, "expression", value),
)
def test_flow_level_equals_the_exact_closed_form_for_16384_hosts_by_symmetry(builder, logical):
    _, rounds, routes, form = _case(builder, logical, symmetry=True)
    assert form is not None
    assert form.edition == "exact"
    trace = simulate_rounds(rounds, routes)
    assert trace.makespan == pytest.approx(form.seconds(SIZE, BANDWIDTH, START_UP), rel=1e-9)
    assert trace.classes < rounds.transfers / 7


@pytest.mark.parametrize(("seed", "worse"), [(0, 154 / 127), (1, 162 / 127), (2, 154 / 127), (3, 146 / 127)])
def test_ecmp_on_a_fat_tree_is_worse_by_the_load_of_the_hottest_link(seed, worse):
    fabric = FatTree(8, bandwidth=BANDWIDTH).build()
    rounds = lockstep(program_on(fabric, "mesh"), SIZE)
    routes = ROUTERS["ecmp"].make(seed)(fabric, *rounds.all_pairs())
    trace = simulate_rounds(rounds, routes)
    ideal = closed_form("mesh", FatTree(8), "dmodk").seconds(SIZE, BANDWIDTH)
    hottest = trace.link_bytes.max() / BANDWIDTH
    # All flows are equal and start together, so the hottest link is busy from start to end of each phase.
    assert trace.makespan == pytest.approx(hottest, rel=1e-9)
    assert trace.makespan / ideal == pytest.approx(worse, abs=5e-5)
