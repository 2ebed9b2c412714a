"""The table of algorithms: complete, proven, and polite about names it does not know."""

import pytest

from ropewalk.errors import ProgramError
from ropewalk.task.algorithms import ALGORITHMS, DEFAULT_NAMES, FAMILIES, choose_algorithms
from ropewalk.task.step import Act

EVERY = [(act, name) for act, named in ALGORITHMS.items() for name in named]


@pytest.mark.parametrize(("act", "name"), EVERY, ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("servers", [(2,), (8,), (1, 1), (1,) * 8, (4, 4), (2, 2, 2, 2)], ids=str)
def test_every_algorithm_proves_itself_on_every_seating(act, name, servers):
    program = ALGORITHMS[act][name](servers)
    assert program.ranks == sum(servers)
    program.check()


def test_every_family_names_an_algorithm_for_every_collective_that_moves_bytes():
    moving = {act for act in Act if act.is_collective} - {Act.BARRIER}
    assert set(DEFAULT_NAMES) == set(ALGORITHMS) == moving
    for family in FAMILIES:
        assert set(choose_algorithms(family=family)) == moving


def test_one_act_can_differ_from_its_family():
    chosen = choose_algorithms({Act.ALL_REDUCE: "mesh"}, "hierarchical")
    assert chosen[Act.ALL_REDUCE] is ALGORITHMS[Act.ALL_REDUCE]["mesh"]
    assert chosen[Act.ALL_GATHER] is ALGORITHMS[Act.ALL_GATHER]["hierarchical"]


@pytest.mark.parametrize(
    ("names", "family", "message"),
    [
        ({Act.ALL_REDUCE: "direct"}, "ring", "no all-reduce 'direct': choose ring, hierarchical"),
        ({Act.COMPUTE: "ring"}, "ring", "compute runs no algorithm"),
        ({}, "star", "no family of algorithms 'star': choose ring"),
    ],
)
def test_names_that_do_not_exist_are_refused_with_those_that_do(names, family, message):
    with pytest.raises(ProgramError, match=message):
        choose_algorithms(names, family)


def test_a_hierarchical_exchange_needs_servers_of_one_size():
    with pytest.raises(ProgramError, match="as many ranks in every server"):
        ALGORITHMS[Act.ALL_TO_ALL]["hierarchical"]((3, 2))
