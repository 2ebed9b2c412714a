"""Closed forms: formulas against counting, bounds against both."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from collective_names import PUBLISHED

from ropewalk.collectives import dedicated_servers, shared_servers
from ropewalk.collectives.cost import ClosedForm, bandwidth_bound, closed_form, closed_forms, counted, counted_at_hosts
from ropewalk.collectives.cost import dedicated_servers as dedicated_form
from ropewalk.collectives.halving_doubling import halving_doubling_all_reduce
from ropewalk.collectives.table import program_on
from ropewalk.errors import FabricError, ProgramError, RouteError
from ropewalk.fabric import (
    BCube,
    Dragonfly,
    Fabric,
    FabricDraft,
    FatTree,
    Hypercube,
    IdealSwitch,
    LeafSpine,
    Mesh,
    Ring,
    Torus,
)
from ropewalk.routing import ROUTERS

NIC = 12.5e9
ON_TREES, ON_GRIDS = ("dmodk", "spray"), ("dimension", "dimension-rotated")
WITHOUT_TREE = tuple(name for name in PUBLISHED if name != "double-tree")

SWITCHES = [IdealSwitch(hosts) for hosts in range(2, 14)]
FAT_TREES = [FatTree(2), FatTree(4), FatTree(4, 2), FatTree(4, 3), FatTree(6), FatTree(6, 3), FatTree(8, 4)]
LEAF_SPINES = [
    LeafSpine(leafs, spines, hosts, cables, uplink)
    for leafs, spines, hosts, cables, uplink in product(
        (1, 2, 3, 4), (1, 2), (1, 3, 4), (1, 2), (None, NIC / 3, NIC * 2)
    )
    if leafs * hosts > 1
]
BCUBES = [BCube(ports, levels) for ports in range(2, 7) for levels in (1, 2, 3)] + [BCube(2, 4), BCube(2, 5)]
EQUAL_TORI = [Torus((side,) * axes) for side in range(2, 7) for axes in (1, 2, 3)] + [Torus((8, 8))]
UNEQUAL_TORI = [
    Torus(shape) for shape in [(2, 4), (4, 2), (8, 2, 4), (3, 4), (5, 2), (2, 5), (4, 1, 4), (4, 1, 3), (2, 3, 5)]
]
RINGS = [Ring(hosts) for hosts in (2, 3, 4, 5, 6, 8)] + [Hypercube(dimensions) for dimensions in (1, 2, 3, 4)]


def count(logical, builder, routing, seed=0):
    fabric = builder.build()
    program = program_on(fabric, logical)
    src = np.concatenate([pattern.src for pattern in program.patterns])
    dst = np.concatenate([pattern.dst for pattern in program.patterns])
    return counted(program, ROUTERS[routing].make(seed)(fabric, src, dst), builder.bandwidth)


def assert_formulas_equal_counting(builders, routings, without_formula=()):
    """Every combination has a formula, but for those named, and it is the counted sum of hottest links."""
    seen = 0
    for builder, routing, logical in product(builders, routings, WITHOUT_TREE):
        form = closed_form(logical, builder, routing)
        if form.edition == "counted":
            assert logical in without_formula, f"{logical} on {builder.expression} has no formula"
            continue
        brute = count(logical, builder, routing)
        where = f"{logical} on {builder} by {routing}: {form.formula}"
        assert not form.is_bound, where
        assert (form.edition, form.bandwidth_term, form.rounds) == ("exact", brute.bandwidth_term, brute.rounds), where
        seen += 1
    return seen


def test_every_formula_on_a_switch_is_what_counting_gives():
    seen = assert_formulas_equal_counting(SWITCHES, ON_TREES, without_formula=("halving-doubling",))
    folded = sum(switch.hosts & (switch.hosts - 1) != 0 for switch in SWITCHES)
    assert seen == len(SWITCHES) * 2 * 9 - 2 * folded


@pytest.mark.parametrize("hosts", [3, 5, 6, 7, 12])
def test_ranks_that_fold_send_their_whole_buffer_in_and_out(hosts):
    """In step, the busiest rank of every round adds up to the form, although it is an estimate."""
    form, program = closed_form("halving-doubling", IdealSwitch(hosts), "dmodk"), halving_doubling_all_reduce(hosts)
    busiest = (
        max(np.bincount(ends, one.pattern.chunks).max() for ends in (one.pattern.src, one.pattern.dst))
        for one in program.rounds
    )
    assert form.bandwidth_term == sum(Fraction(int(chunks), program.chunks) for chunks in busiest)
    assert (form.edition, form.rounds) == ("counted", len(program.rounds))


def test_every_formula_on_fat_trees_is_what_counting_gives():
    seen = assert_formulas_equal_counting(FAT_TREES, ON_TREES, without_formula=("halving-doubling",))
    # Only the folded halving-doubling of 12, 54 and 27 hosts is counted.
    assert seen == len(FAT_TREES) * 2 * 9 - 2 * 3
    counted_too = ("halving-doubling", "mesh", "ps-sharded", "hips")
    narrow = [FatTree(4, aggregations=1), FatTree(8, 2, 2)]
    assert assert_formulas_equal_counting(narrow, ON_TREES, counted_too) == len(narrow) * 2 * (9 - len(counted_too))


def test_every_formula_on_leaf_spines_of_any_oversubscription_is_what_counting_gives():
    seen = assert_formulas_equal_counting(
        LEAF_SPINES, ON_TREES, without_formula=("halving-doubling", "double-ring", "hips")
    )
    assert seen > len(LEAF_SPINES) * 2 * 7


def test_every_formula_on_bcubes_is_what_counting_gives():
    seen = assert_formulas_equal_counting(BCUBES, ON_GRIDS, without_formula=("halving-doubling",))
    assert seen == len(BCUBES) * 2 * 8 + 2 * sum(cube.ports in (2, 4) for cube in BCUBES)


def test_every_formula_on_tori_is_what_counting_gives():
    seen = assert_formulas_equal_counting(EQUAL_TORI, ON_GRIDS, without_formula=("halving-doubling",))
    assert seen == len(EQUAL_TORI) * 2 * 8 + 2 * sum(torus.shape[0] in (2, 4, 8) for torus in EQUAL_TORI)


def test_every_formula_on_unequal_tori_is_what_counting_gives():
    seen = assert_formulas_equal_counting(UNEQUAL_TORI, ON_GRIDS, without_formula=("halving-doubling", "hips"))
    assert seen >= len(UNEQUAL_TORI) * 2 * 7


def test_every_formula_on_rings_and_hypercubes_is_what_counting_gives():
    assert assert_formulas_equal_counting(RINGS, ON_GRIDS, without_formula=("halving-doubling",)) >= len(RINGS) * 2 * 8


@pytest.mark.parametrize("routing", ["ecmp", "ecmp-polarised", "murmur"])
def test_hashing_is_never_faster_than_the_form_without_collisions(routing):
    builders = [
        FatTree(4),
        FatTree(6, 3),
        LeafSpine(4, 2, 4),
        LeafSpine(3, 2, 4, 2, NIC / 3),
        BCube(3, 2),
        Torus((4, 4)),
        Torus((3, 5)),
    ]
    slower = 0
    for builder, logical in product(builders, PUBLISHED):
        form, hashed = closed_form(logical, builder, routing), count(logical, builder, routing, seed=7)
        assert form.rounds == hashed.rounds
        if form.is_bound:
            assert "lower bound" in form.note
            assert hashed.bandwidth_term >= form.bandwidth_term, (logical, builder)
            slower += hashed.bandwidth_term > form.bandwidth_term
        else:
            assert hashed.bandwidth_term == form.bandwidth_term, (logical, builder)
    assert slower > 0


def test_a_ring_on_a_fat_tree_is_exact_even_when_flows_are_hashed():
    form = closed_form("ring", FatTree(8), "ecmp")
    assert not form.is_bound
    assert form.bandwidth_term == Fraction(2 * 127, 128)


def test_a_mesh_on_a_fat_tree_is_only_bounded_when_flows_are_hashed():
    form = closed_form("mesh", FatTree(8), "ecmp")
    assert form.is_bound
    assert form.note == "lower bound: per-flow hashing adds collisions"
    assert form.bandwidth_term == closed_form("mesh", FatTree(8), "dmodk").bandwidth_term


def test_shortest_paths_without_a_formula_are_counted():
    # All antipodal transfers go the same way round: (n+2)/8 of P in each phase instead of n/8.
    form = closed_form("mesh", Ring(4), "shortest")
    assert (form.edition, form.is_bound) == ("counted", False)
    assert form.bandwidth_term == count("mesh", Ring(4), "shortest").bandwidth_term > 1


def test_seconds_are_bytes_over_bandwidth_and_a_charge_for_each_round():
    form = ClosedForm(Fraction(3, 2), 4, "exact", "3/2 · P/B + 4α")
    assert form.seconds(1000, 100) == 15.0
    assert form.seconds(1000, 100, alpha_s=0.5) == 17.0


@pytest.mark.parametrize(
    ("logical", "builder", "formula"),
    [
        ("mesh", FatTree(4), "2(N-1)/N · P/B + 2α"),
        ("hips", FatTree(4), "2(N-1)/N · P/B + 6α"),
        ("hips", BCube(4, 2), "2(N-1)/(kN) · P/B + 2kα"),
        ("hips", Torus((4, 4)), "(N-1)/(kN) · P/B + 2k(n-1)α"),
        ("mesh", Torus((5, 5)), "(n²-1)/(4n) · P/B + 2α"),
    ],
)
def test_formulas_read_as_people_write_them(logical, builder, formula):
    routing = "dmodk" if isinstance(builder, FatTree) else "dimension"
    assert closed_form(logical, builder, routing).formula == formula


@pytest.mark.parametrize(("workers", "servers"), [(4, 1), (4, 2), (4, 4), (5, 3), (3, 7)])
def test_dedicated_servers_are_as_slow_as_the_busier_of_server_and_worker(workers, servers):
    program, switch = dedicated_servers(workers, servers), IdealSwitch(workers + servers)
    assert dedicated_form(workers, servers).bandwidth_term == on_switch(program, switch)
    assert dedicated_form(workers, servers).bandwidth_term == 2 * max(Fraction(workers, servers), 1)


@pytest.mark.parametrize(("hosts", "servers"), [(4, 1), (4, 3), (4, 4), (9, 2), (9, 5), (9, 9)])
def test_shared_servers_spread_their_load_until_they_are_a_mesh(hosts, servers):
    program, switch = shared_servers(hosts, servers), IdealSwitch(hosts)
    busiest = Fraction(hosts - 1, hosts) if servers == hosts else max(Fraction(hosts - 1, servers), Fraction(1))
    assert on_switch(program, switch) == 2 * busiest


def on_switch(program, switch):
    fabric = switch.build()
    everyone = np.arange(switch.hosts)
    routes = ROUTERS["dmodk"].make(0)(fabric, *np.nonzero(everyone[:, None] != everyone))
    return counted(program, routes, switch.bandwidth).bandwidth_term


def test_no_parameter_servers_are_refused():
    with pytest.raises(ProgramError, match="use 1 or more"):
        dedicated_form(4, 0)


def test_a_double_tree_in_lockstep_is_counted_and_says_so():
    form = closed_form("double-tree", IdealSwitch(16), "dmodk")
    # 16 ranks make trees of depth 4: 2·4 rounds up and down, and one more for each of the 15 segments that follow.
    assert (form.edition, form.rounds) == ("counted", 2 * 4 + 15)
    assert "16 segments: rounds in lockstep" in form.note
    # An inner rank receives from two children, and as a leaf of the other tree sends and receives once more.
    assert 2 <= form.bandwidth_term <= 3


BOUNDED = [
    *(FatTree(4), LeafSpine(3, 1, 2), BCube(3, 2), BCube(2, 3), Torus((3, 4)), Torus((2, 2, 3))),
    *(Ring(5), Mesh((3, 3)), Dragonfly(3, 2, 2, 1)),
]


@pytest.mark.parametrize("builder", BOUNDED, ids=lambda builder: builder.expression)
def test_no_form_beats_the_bandwidth_bound(builder):
    bound = bandwidth_bound(builder.build(), 1e9)
    assert bound > 0
    for logical, routing in product(PUBLISHED, ("shortest", "ecmp")):
        form = closed_form(logical, builder, routing)
        assert form.seconds(1e9, builder.bandwidth) >= bound * (1 - 1e-12), (logical, routing)


@pytest.mark.parametrize(
    "builder", [IdealSwitch(8), FatTree(4), BCube(4, 2), BCube(3, 3), Torus((5, 5)), Torus((4, 4, 4))]
)
def test_hierarchies_and_rings_reach_the_bandwidth_bound(builder):
    routing = "dmodk" if isinstance(builder, IdealSwitch | FatTree) else "dimension"
    for logical in ("ring", "hips"):
        seconds = closed_form(logical, builder, routing).seconds(1e9, builder.bandwidth)
        assert seconds == pytest.approx(bandwidth_bound(builder.build(), 1e9), rel=1e-12)


def two_speeds(fast: float, slow: float) -> Fabric:
    draft = FabricDraft("two speeds")
    hosts = draft.add_hosts(["a", "b", "c"])
    draft.add_links(hosts, draft.add_switches(["s"], level=1), np.array([fast, fast, slow]))
    return draft.freeze()


def test_the_bound_of_unequal_hosts_is_what_all_send_together_or_the_slowest_alone():
    assert bandwidth_bound(two_speeds(1.0, 1.0), 3.0) == pytest.approx(4.0)
    # A slow host only has to send its own buffer and to receive the result, at the same time.
    assert bandwidth_bound(two_speeds(10.0, 0.5), 3.0) == pytest.approx(6.0)


def test_a_host_that_cannot_receive_has_no_bound():
    draft = FabricDraft("deaf")
    hosts = draft.add_hosts(["a", "b"])
    draft.add_links(hosts[:1], hosts[1:], 1.0, duplex=False)
    with pytest.raises(FabricError, match="connect it"):
        bandwidth_bound(draft.freeze(), 1.0)


def test_counting_hosts_alone_never_exceeds_counting_links():
    fabric = Torus((3, 4)).build()
    for logical in PUBLISHED:
        at_hosts = counted_at_hosts(program_on(fabric, logical), fabric, NIC)
        assert at_hosts.is_bound
        assert 0 < at_hosts.bandwidth_term <= count(logical, Torus((3, 4)), "dimension").bandwidth_term


def test_forms_of_sixteen_thousand_hosts_need_no_counting():
    for builder, routing in (
        (FatTree(40, 40), "dmodk"),
        (BCube(128, 2), "dimension"),
        (Torus((128, 128)), "dimension"),
    ):
        for logical in ("ring", "mesh", "ps", "hips"):
            assert closed_form(logical, builder, routing).edition == "exact"
    assert closed_form("double-tree", Torus((128, 128)), "dimension") is None


def test_the_printed_edition_stands_behind_the_exact_one_only_where_it_differs():
    assert [form.edition for form in closed_forms("mesh", Torus((4, 4)), "dimension")] == ["exact", "paper"]
    assert [form.edition for form in closed_forms("mesh", Torus((4, 8)), "dimension")] == ["exact"]
    assert [form.edition for form in closed_forms("ring", BCube(5, 2), "dimension")] == ["exact", "paper"]
    assert [form.edition for form in closed_forms("hips", BCube(5, 2), "dimension")] == ["exact"]


def test_unknown_names_are_refused_with_the_names_that_exist():
    with pytest.raises(ProgramError, match="halving-doubling"):
        closed_form("spiral", FatTree(4), "dmodk")
    with pytest.raises(RouteError, match="dimension-rotated"):
        closed_form("mesh", Torus((4, 4)), "dmodk")
