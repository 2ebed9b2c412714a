"""Trees over servers do what an all-reduce promises, and spread it over all NICs."""

import numpy as np
import pytest

from ropewalk.collectives.server_trees import server_trees


@pytest.mark.parametrize("servers", [(2,), (4, 4), (1, 1, 1, 1, 1), (8, 8, 8), (3, 2)])
@pytest.mark.parametrize("segments", [1, 3])
def test_every_rank_ends_with_the_sum_of_all(servers, segments):
    server_trees(servers, segments).check()


def test_between_two_servers_every_nic_carries_its_part_of_the_buffer_once_each_way():
    program = server_trees((4, 4))
    sent = np.zeros(8)
    for one in program.rounds:
        crosses = one.pattern.src // 4 != one.pattern.dst // 4
        np.add.at(sent, one.pattern.src[crosses], one.pattern.chunks[crosses])
    assert (sent / program.buffer_chunks == 1 / 4).all()
