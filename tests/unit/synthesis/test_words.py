"""Answers in words: whose data crosses which links, and in which direction."""

import pytest

from ropewalk import synthesis
from ropewalk.fabric import FabricDraft, IdealSwitch, Mesh, Ring
from ropewalk.synthesis import CollectiveQuestion
from ropewalk.synthesis.words import limit_of


def limit(kind, fabric, **options):
    return limit_of(synthesis.answer(CollectiveQuestion(kind, fabric, compare=False, **options)))


def path_of_three():
    draft = FabricDraft("path", ["a", "b", "c"])
    draft.add_links([0, 1], [1, 2], [1e9, 3e9])
    return draft.freeze()


def test_a_broadcast_is_limited_by_what_gets_out_of_its_root():
    found = limit("broadcast", path_of_three(), root=0)
    assert found.sentence == "traffic from a must leave by a->b, which carries 1 GB/s"
    assert found.cut.members == (0,)


def test_a_reduce_is_limited_by_what_comes_in_at_its_root():
    assert limit("reduce", path_of_three(), root=0).sentence == (
        "traffic to a must enter by b->a, which carries 1 GB/s"
    )


def test_most_ranks_are_named_by_those_that_are_missing():
    assert "3 of 4 ranks (all but h" in limit("allgather", Ring(4, bandwidth=1e9).build()).sentence


def test_many_cuts_together_are_counted():
    found = limit("allreduce", Mesh((3, 3), bandwidth=1e9).build())
    assert found.sentence.startswith("the cuts around 9 ranks together")
    assert found.cut is not None


def test_the_limit_of_a_host_is_named_instead_of_its_links():
    fabric = IdealSwitch(3, bandwidth=1e9).build()
    assert "the limit of h" in limit("broadcast", fabric, host_limits=[5e8] * 3).sentence


@pytest.mark.parametrize("kind", ["allgather", "allreduce", "alltoall", "reducescatter"])
def test_every_collective_has_a_reason(kind):
    assert limit(kind, Ring(5, bandwidth=1e9).build()).sentence
