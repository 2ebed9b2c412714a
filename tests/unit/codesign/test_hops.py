"""Fewest cables between servers, against walking from server to server."""

import numpy as np
import pytest

from ropewalk.codesign.cable_draft import CableDraft


def plain_hops(count, servers):
    """Hop by hop from each server, all that one more cable reaches."""
    hops = np.full((servers, servers), servers)
    for root in range(servers):
        reached, far = {root}, 0
        front = {root}
        while front:
            for node in front:
                hops[root, node] = far
            front = {int(there) for node in front for there in np.flatnonzero(count[node])} - reached
            reached |= front
            far += 1
    return hops


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("duplex", [True, False])
def test_hops_are_those_of_walking_from_server_to_server(seed, duplex):
    draw, servers = np.random.default_rng(seed), 11
    draft = CableDraft(servers, 8, duplex=duplex)
    for a, b in draw.integers(0, servers, (9, 2)):
        if a != b and draft.sending[a] and draft.receiving[b]:
            draft.add(np.array([a]), np.array([b]))
    assert draft.hops().tolist() == plain_hops(draft.count, servers).tolist()
