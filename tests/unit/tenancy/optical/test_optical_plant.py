"""Plants with optical switches between leafs and spines."""

from __future__ import annotations

import numpy as np
import pytest
from optical_plants import optical_plant, published_512, published_8192

from ropewalk.errors import ClusterError, FabricError
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.fibres import free_fibres
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.plant import plant


def test_the_published_8192_has_fewer_spine_ports_than_leafs_and_two_fibres_to_every_switch() -> None:
    large = published_8192()
    assert (large.gpus, large.leafs, large.packet_spines, large.switches) == (8192, 256, 128, 32)
    assert set(large.ports_per_spine.tolist()) == {64}
    assert set(large.spine_fibres.ravel().tolist()) == {2}
    assert large.spine_fibres.sum(axis=0).tolist() == [256] * 32  # as many as leaf fibres at every switch


def test_the_published_512_has_128_servers_on_32_leafs() -> None:
    small = published_512()
    assert (small.gpus, small.servers, small.leafs, small.packet_spines, small.switches) == (512, 128, 32, 16, 16)


def test_switches_put_into_a_leaf_spine_plant_keep_its_servers_and_ports() -> None:
    electrical = plant("leaf-spine:6x4x8x2", gpus_per_server=4)
    optical = OpticalPlant.of_plant(electrical)
    assert optical.switches == 8
    assert optical.ports_per_spine.tolist() == electrical.cables.sum(axis=0).tolist()
    assert np.array_equal(optical.server_leaf, electrical.server_leaf)
    assert np.ptp(optical.spine_fibres.sum(axis=0)) == 0
    assert optical.spine_names[:5] == (*electrical.spine_names, "ocs0")


def test_a_drained_switch_spine_or_fibre_is_not_free() -> None:
    state = Occupancy(optical_plant(leafs=3, spines=2, gpus_per_leaf=4, gpus_per_server=2))
    before = free_fibres(state)
    state.drain(Drained(spines=[1, 2 + 3], links=[(0, 2 + 1)]))
    after = free_fibres(state)
    assert after.spine[1].sum() == 0
    assert after.spine[0].tolist() == [*before.spine[0, :3].tolist(), 0]
    assert after.leaf.tolist() == [[True, False, True, False], [True, True, True, False], [True, True, True, False]]


def test_a_plant_that_cannot_be_is_refused_with_the_remedy() -> None:
    with pytest.raises(FabricError, match=r"setting up circuits takes -1\.0 s: give 0 or more"):
        OpticalPlant.of_plant(plant("leaf-spine:2x2x4", gpus_per_server=4), reconfiguration_s=-1.0)


def test_a_cable_past_the_switches_is_refused() -> None:
    with pytest.raises(FabricError, match="lead all of them through the switches"):
        OpticalPlant(
            name="odd",
            gpus_per_server=1,
            server_leaf=np.zeros(1, np.int32),
            cables=np.ones((1, 2), np.int32),
            spine_fibres=np.ones((1, 1), np.int32),
        )


def test_an_electrical_plant_has_no_fibres_to_ask_for() -> None:
    with pytest.raises(ClusterError, match=r"has no optical switches: put them in with OpticalPlant\.of_plant"):
        free_fibres(Occupancy(plant("leaf-spine:2x2x2", gpus_per_server=1)))
