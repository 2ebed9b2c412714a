from __future__ import annotations

import pytest

from ropewalk.errors import ClusterError
from ropewalk.tenancy.sizing import rearrangeable, strictly_non_blocking


@pytest.mark.parametrize(("ports", "gpus", "switches"), [(32, 512, 48), (64, 2048, 96), (128, 8192, 192)])
def test_as_many_ways_up_as_down(ports, gpus, switches):
    size = rearrangeable(ports)
    assert (size.gpus, size.switches) == (gpus, switches) == (ports**2 // 2, 3 * ports // 2)


@pytest.mark.parametrize(("ports", "gpus", "switches"), [(32, 352, 53), (64, 1344, 105), (128, 5504, 213)])
def test_strictly_non_blocking_costs_two_thirds_more_switches_a_gpu(ports, gpus, switches):
    size = strictly_non_blocking(ports)
    assert (size.gpus, size.switches) == (gpus, switches)
    ratio = size.switches_per_gpu / rearrangeable(ports).switches_per_gpu
    assert float(ratio) == pytest.approx(5 / 3, rel=0.05)


@pytest.mark.parametrize("ports", range(2, 70))
def test_every_radix_keeps_both_conditions_and_its_ports(ports):
    for size in (rearrangeable(ports), strictly_non_blocking(ports)):
        assert size.gpus_per_leaf + size.spines + size.unused_leaf_ports == ports
        assert size.leafs <= ports
        assert size.unused_leaf_ports >= 0
    assert rearrangeable(ports).spines >= rearrangeable(ports).gpus_per_leaf
    strict = strictly_non_blocking(ports)
    assert strict.spines >= 2 * strict.gpus_per_leaf - 1
    # One more GPU on a leaf would not fit.
    assert (strict.gpus_per_leaf + 1) + 2 * (strict.gpus_per_leaf + 1) - 1 > ports


def test_the_cluster_can_be_written_down():
    assert rearrangeable(64).expression == "leaf-spine:64x32x32"


def test_one_port_joins_nothing():
    with pytest.raises(ClusterError, match="2 ports or more"):
        rearrangeable(1)
