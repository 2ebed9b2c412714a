"""The table of collectives: complete, proved on every seating, and polite about what it does not have."""

import subprocess
import sys
from itertools import product

import pytest
from collective_names import fitting

from ropewalk.collectives.act import EXCHANGES, Act
from ropewalk.collectives.choice import collective_choice
from ropewalk.collectives.group import Group, group_on, whole_fabric
from ropewalk.collectives.optimum import network_of
from ropewalk.collectives.table import COLLECTIVES, beside, with_rings
from ropewalk.errors import ProgramError
from ropewalk.fabric import Dgx, IdealSwitch, Torus

SERVERS = [(2,), (8,), (1, 1), (1,) * 8, (4, 4), (2, 2, 2, 2), (3, 2), (5,)]
MADE_FOR_NETWORKS = tuple(name for name, one in COLLECTIVES.items() if one.own_paths)


@pytest.mark.parametrize("servers", SERVERS, ids=str)
@pytest.mark.parametrize("act", EXCHANGES, ids=lambda act: act.words)
def test_every_program_proves_itself_on_every_seating_it_applies_to(act, servers):
    group = Group(servers)
    for name in fitting(act, group):
        program = COLLECTIVES[name].program(act, group)
        assert program.ranks == sum(servers)
        program.check()


@pytest.mark.parametrize("act", EXCHANGES, ids=lambda act: act.words)
@pytest.mark.parametrize("name", MADE_FOR_NETWORKS)
def test_every_schedule_of_a_network_proves_itself_and_its_paths(act, name):
    if act not in COLLECTIVES[name].make:
        pytest.skip("has no such act")
    group = group_on(network_of(Dgx(2, gpus=2).build()))
    schedule = COLLECTIVES[name].schedule(act, group)
    assert schedule.name == name or act is Act.ALL_TO_ALL or name == "topoadopt"
    schedule.program.check()
    schedule.routes.check()


def test_what_stands_in_for_an_act_has_it_for_any_group():
    for act, servers in product(EXCHANGES, SERVERS):
        assert COLLECTIVES.refusal(beside(act), act, Group(servers)) is None


@pytest.mark.parametrize(
    ("name", "act", "group", "message"),
    [
        ("direct", Act.ALL_REDUCE, Group((4,)), "is no all-reduce, but an all-to-all: use one of ring"),
        ("hierarchical", Act.ALL_TO_ALL, Group((3, 2)), "equally many ranks per server, and servers have 2, 3"),
        ("xor", Act.ALL_TO_ALL, Group((3,)), "a power of two of ranks, and there are 3: use one of hierarchical"),
        ("hips", Act.ALL_REDUCE, Group((1,) * 5), "5 ranks have no divisors"),
        ("forest", Act.ALL_REDUCE, Group((4,)), "the network is unknown here"),
        ("forest", Act.ALL_REDUCE, whole_fabric(IdealSwitch(4).build()), "the network routes transfers"),
        ("ps-dedicated", Act.ALL_REDUCE, Group((4,)), "has a rank that only serves"),
    ],
)
def test_what_does_not_apply_is_refused_with_the_reason_and_what_does_apply(name, act, group, message):
    refusal = COLLECTIVES.refusal(name, act, group)
    assert message in refusal
    with pytest.raises(ProgramError, match=f"collective {name} "):
        COLLECTIVES.fitting(name, act, group)


def test_a_ring_takes_all_cycles_of_a_torus_and_every_gpu_of_a_server():
    on_torus, on_servers = (
        COLLECTIVES["ring"].program(Act.ALL_REDUCE, whole_fabric(one.build())) for one in (Torus((3, 3)), Dgx(2))
    )
    assert (on_torus.lanes, on_servers.lanes) == (4, 8)


def test_rings_may_be_given_by_the_size_of_a_group():
    laid = with_rings(lambda ranks: [range(ranks), range(ranks)[::-1]])
    assert laid["ring"].program(Act.ALL_REDUCE, Group((4, 4))).lanes == 2
    assert laid["mesh"] is COLLECTIVES["mesh"]


def test_a_broadcast_starts_at_its_root_whoever_makes_it():
    group = Group((2, 2), root=2)
    for name in fitting(Act.BROADCAST, group):
        program = COLLECTIVES[name].program(Act.BROADCAST, group)
        program.check()
        assert program.pre([0]).ravel().tolist() == [False, False, True, False]


def test_reading_the_table_loads_neither_numba_nor_scipy():
    code = "import sys, ropewalk.collectives.choice; print({'numba', 'scipy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("text", "said", "data", "tensor"),
    [
        ("ring", "ring", "ring", "ring"),
        ("auto", "auto", "auto", "auto"),
        ("data=forest, tensor=ring", "data=forest,tensor=ring", "forest", "ring"),
        ("hips,data=forest", "hips,data=forest", "forest", "hips"),
        ("auto,tensor=ring", "auto,tensor=ring", "auto", "ring"),
    ],
)
def test_a_choice_names_one_for_all_and_one_for_each_purpose(text, said, data, tensor):
    choice = collective_choice(text)
    assert (str(choice), choice.name_for("data"), choice.name_for("tensor")) == (said, data, tensor)
    assert collective_choice(str(choice)) == choice


def test_mistakes_in_a_choice_are_said_at_once():
    with pytest.raises(ProgramError) as refusal:
        collective_choice("data=star,sums=ring,tensor=ring,tensor=mesh,hips,mesh")
    for part in (
        "no collective 'star'",
        "'sums' is not a purpose",
        "tensor has two collectives, ring and mesh",
        "hips and mesh both apply to all purposes",
    ):
        assert part in str(refusal.value)
