"""Every pair as a pattern: its arrows are those of a mesh, and too many of them are never written out."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.collectives import arrows, direct_all_to_all, mesh_all_reduce, shared_servers
from ropewalk.collectives.every_pair import EveryPair
from ropewalk.errors import ProgramError


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("adds", [True, False])
def test_the_arrows_are_all_ordered_pairs_of_different_ranks(ranks, adds):
    pattern = EveryPair(ranks, adds=adds)
    plain = arrows(*np.nonzero(~np.eye(ranks, dtype=bool)), 1, reduces=adds)
    assert pattern.sends == plain.sends
    assert pattern.lanes == plain.lanes == 1
    for column in ("src", "dst", "chunks", "reduces", "lane"):
        ours, theirs = getattr(pattern, column), getattr(plain, column)
        assert ours.dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("make", [mesh_all_reduce, lambda ranks: shared_servers(ranks, ranks), direct_all_to_all])
def test_16384_ranks_are_a_program_but_cannot_be_written_out(make):
    program = make(16384)
    assert program.sends == len(program.rounds) * 16384 * 16383
    assert program.lanes == 1
    with pytest.raises(ProgramError, match=r"2\.68e\+08 sends at once.*prove it for fewer ranks"):
        program.check()
    for read in (lambda: program.patterns[0].dst, program.rounds[0].chunks, program.sent_chunks):
        with pytest.raises(ProgramError, match=r"the same routes from every host.*--level closed"):
            read()


def test_sharded_servers_are_the_program_of_the_mesh():
    ours, theirs = shared_servers(5, 5), mesh_all_reduce(5)
    for here, there in zip(ours.rounds, theirs.rounds, strict=True):
        assert here.pattern.src.tolist() == there.pattern.src.tolist()
        assert here.chunks()[1].tolist() == there.chunks()[1].tolist()
