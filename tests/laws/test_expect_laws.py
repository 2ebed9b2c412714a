"""Whatever part of a small cluster is slow, it is named, alone or with what no measurement tells from it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from slowed_clusters import measured, questions

from ropewalk.collectives.nccl import library_for
from ropewalk.expect.components import components_of
from ropewalk.expect.diagnosis import diagnosed
from ropewalk.expect.prices import CollectivePrices
from ropewalk.expect.series import series_of
from ropewalk.hardware import Given, read_cluster

CLUSTER = read_cluster("4x2", Given(device="a100", network="leaf-spine:4x2x2"))
PRICES = CollectivePrices(CLUSTER, library_for(CLUSTER))
ASKED = questions(PRICES, np.random.default_rng(5))
USED = np.stack([series.largest.expected.wired.load for series in series_of(
    measured(PRICES, ASKED, None, 1.0, np.random.default_rng(0), 0.0, 0.0), PRICES)]).max(axis=0)  # fmt: skip
PARTS = [part for part in components_of(PRICES.fabric) if USED[list(part.links)].max() > 0]


@settings(max_examples=5, deadline=None)
@given(st.sampled_from(PARTS), st.floats(0.1, 0.7), st.integers(0, 2**32))
def test_the_slow_part_is_named(guilty, speed, seed):
    times = measured(PRICES, ASKED, guilty, speed, np.random.default_rng(seed), 0.02, 0.05)
    found = diagnosed(series_of(times, PRICES), PRICES)
    slowed = (USED[list(guilty.links)] > 0).any()
    assert slowed
    if not found.healthy:  # a part with room to spare may be slow and slow nobody
        assert guilty.name in found.best.names


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**32))
def test_noise_alone_makes_no_cluster_unhealthy(seed):
    times = measured(PRICES, ASKED, None, 1.0, np.random.default_rng(seed), 0.04, 0.08)
    assert diagnosed(series_of(times, PRICES), PRICES).healthy
