"""Collectives as the network sees them: who sends to whom, how often, how much."""

from __future__ import annotations

import numpy as np
import pytest
from job_exchanges import EXCHANGES, applies

from ropewalk.collectives.group import Group
from ropewalk.errors import ClusterError
from ropewalk.tenancy.collectives import job_group, program_of
from ropewalk.tenancy.rounds import MOST_PATTERNS, RECEIVERS, groups_of, patterns, patterns_of
from ropewalk.tenancy.work import JobExchange

SIZES = ((8,), (3, 3), (4, 4, 4), (1, 1, 1), (5, 7), (6, 6, 4))


def _sent(collective: str, group: Group) -> dict[tuple[int, int], float]:
    """Part of the vector that goes from one member to another, over all rounds."""
    sent: dict[tuple[int, int], float] = {}
    for pattern in patterns(collective, group):
        for pair in zip(pattern.src.tolist(), pattern.dst.tolist(), strict=True):
            sent[pair] = sent.get(pair, 0.0) + pattern.share * pattern.repeat
    return sent


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("collective", EXCHANGES)
def test_what_jobs_run_is_a_proved_program_with_all_its_bytes(collective: str, sizes: tuple[int, ...]) -> None:
    group = job_group(sizes)
    if not applies(collective, group):
        pytest.skip("does not apply to so many ranks")
    program = program_of(collective, group)
    program.check()
    sent: dict[tuple[int, int], float] = {}
    for each in program.rounds:
        pattern = each.pattern
        for src, dst, count in zip(pattern.src.tolist(), pattern.dst.tolist(), pattern.chunks.tolist(), strict=True):
            sent[src, dst] = sent.get((src, dst), 0.0) + count / program.buffer_chunks
    assert _sent(collective, group) == pytest.approx(sent)


@pytest.mark.parametrize("collective", ["all-to-all", "xor"])
def test_all_to_all_sends_the_same_to_everybody(collective: str) -> None:
    assert _sent(collective, job_group((8,))) == pytest.approx(
        {(a, b): 1 / 8 for a in range(8) for b in range(8) if a != b}
    )


@pytest.mark.parametrize(("collective", "size"), [("shift", 32), ("shift", 24), ("xor", 32)])
def test_rounds_of_a_long_all_to_all_are_rounds_of_the_program(collective: str, size: int) -> None:
    program = program_of(collective, job_group((size,)))
    for number, each in enumerate(program.rounds, 1):
        assert each.pattern.dst.tolist() == RECEIVERS[collective](np.arange(size), number).tolist()


def test_a_long_all_to_all_is_seen_through_some_of_its_rounds() -> None:
    some = patterns("all-to-all", job_group((1024,)))
    assert len(some) == MOST_PATTERNS
    assert sum(pattern.repeat for pattern in some) == pytest.approx(1023)
    shifts = [int(pattern.dst[0]) for pattern in some]
    assert len(set(shifts)) == MOST_PATTERNS
    assert min(shifts) >= 1
    assert max(shifts) <= 1023


def test_halving_doubling_of_six_folds_under_the_leafs() -> None:
    found = patterns("halving-doubling", job_group((3, 3)))
    assert [pattern.src.tolist() for pattern in found] == [[2, 5], [0, 1, 3, 4], [0, 1, 3, 4], [0, 3]]
    assert [pattern.dst.tolist() for pattern in found] == [[0, 3], [1, 0, 4, 3], [3, 4, 0, 1], [2, 5]]
    assert [pattern.share * pattern.repeat for pattern in found] == [1.0, 1.0, 0.5, 1.0]


def test_leafs_with_one_rank_each_fold_onto_their_neighbours() -> None:
    first, *_, last = patterns("halving-doubling", job_group((1, 1, 1)))
    assert (first.src.tolist(), first.dst.tolist()) == ([1], [0])
    assert (last.src.tolist(), last.dst.tolist()) == ([0], [1])


def test_groups_that_leafs_cut_alike_fold_under_their_leafs() -> None:
    leafs = np.array([0, 0, 0, 1, 1, 1])
    (src, dst, _), *_ = patterns_of(JobExchange("halving-doubling", 1.0), 6, leafs, np.arange(6))
    assert (leafs[src] == leafs[dst]).all()
    strided = JobExchange("halving-doubling", 1.0, group=3, stride=2)
    (src, dst, _), *_ = patterns_of(strided, 6, np.array([0, 0, 0, 0, 1, 1]), np.arange(6))
    assert list(zip(src.tolist(), dst.tolist(), strict=True)) == [(2, 0), (3, 1)]


def test_servers_with_unequal_numbers_of_ranks_share_one_flat_ring() -> None:
    servers = np.array([0, 0, 0, 1, 1])
    ((src, dst, _),) = patterns_of(JobExchange("hierarchical-ring", 1.0), 5, np.zeros(5, int), servers)
    assert (dst == (src + 1) % 5).all()


def test_groups_of_tensor_and_data_ranks_interleave() -> None:
    assert groups_of(8, 4, 1).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert groups_of(8, 0, 4).tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_groups_that_do_not_fill_the_job_and_unknown_collectives_are_refused() -> None:
    with pytest.raises(ClusterError, match="do not fill 6 GPUs"):
        groups_of(6, 4, 1)
    with pytest.raises(ClusterError, match="no collective 'gossip'"):
        list(patterns_of(JobExchange("gossip", 1.0), 4, np.arange(4), np.arange(4)))


def test_groups_may_be_listed_instead_of_counted() -> None:
    counted = JobExchange("ring", 1.0, group=4, stride=2)
    listed = JobExchange("ring", 1.0, groups=((0, 2, 4, 6), (1, 3, 5, 7)))
    place = np.zeros(8, np.int64), np.arange(8) // 4
    for (a, b, _), (c, d, _) in zip(patterns_of(counted, 8, *place), patterns_of(listed, 8, *place), strict=True):
        assert (a.tolist(), b.tolist()) == (c.tolist(), d.tolist())
    with pytest.raises(ClusterError, match="do not name ranks 0 to 3"):
        list(patterns_of(listed, 4, np.zeros(4, np.int64), np.zeros(4, np.int64)))


@pytest.mark.parametrize("name", ["forest", "topoadopt", "best-ring", "breadth-first"])
def test_what_is_made_for_a_network_is_one_pattern_with_all_that_ranks_send(name: str) -> None:
    """Trees of a gather bring every rank what the 15 others have, once."""
    ((src, dst, pattern),) = patterns_of(
        JobExchange(f"all-gather:{name}", 1.0), 16, np.zeros(16, np.int64), np.arange(16) // 4
    )
    arrived = np.bincount(dst, pattern.share * pattern.weights(len(src)), minlength=16)
    assert arrived == pytest.approx(np.full(16, 15 / 16))
