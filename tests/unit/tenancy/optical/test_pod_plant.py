"""Three tiers with optical switches inside pods: what is joined where, and what is written down of it."""

from __future__ import annotations

import numpy as np
import pytest
from tree_states import rails_below_cores, three_tiers

from ropewalk.errors import ClusterError, FabricError
from ropewalk.export.cluster.prometheus import metrics
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.pod_fibres import free_pod_fibres
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.plant_document import plant_document, plant_from_document

PLANT = PodOpticalPlant.of_plant(three_tiers(pods=2, leafs=3, lanes=5, cores=2, servers=2), reconfiguration_s=0.2)


def test_every_pod_has_as_many_switches_as_its_leafs_have_cables_and_all_have_names_of_their_own() -> None:
    assert PLANT.switches_of_pod.tolist() == [5, 5]
    assert PLANT.first_switch.tolist() == [0, 5]
    assert PLANT.switch_names(1) == ("ocs1.0", "ocs1.1", "ocs1.2", "ocs1.3", "ocs1.4")


def test_cables_of_three_leafs_to_five_spines_all_have_a_switch_and_spines_three_fibres() -> None:
    leaf, _, cable = np.nonzero(PLANT.home_switch >= 0)
    assert (len(leaf), cable.max()) == (30, 0)
    assert PLANT.leaf_fibres.all()
    assert PLANT.spine_fibres.sum(axis=1).tolist() == [3] * 10


def test_a_pod_is_a_plant_of_two_tiers_with_its_part_of_servers_and_names() -> None:
    second = PLANT.pods[1]
    assert (second.leafs, second.packet_spines, second.switches, second.servers) == (3, 5, 5, 6)
    assert second.server_names == PLANT.server_names[6:]
    assert second.spine_names == (*PLANT.spine_names[5:], *PLANT.switch_names(1))
    assert second.reconfiguration_s == 0.2


def test_plants_without_pods_or_with_rails_and_negative_delays_are_refused_with_the_remedy() -> None:
    with pytest.raises(FabricError, match="put switches between all its leafs and spines"):
        PodOpticalPlant.of_plant(plant("leaf-spine:2x2x2", gpus_per_server=1))
    with pytest.raises(FabricError, match="give one leaf for all GPUs of a server"):
        PodOpticalPlant.of_plant(rails_below_cores())
    with pytest.raises(FabricError, match=r"setting up circuits takes -1\.0 s: give 0 or more"):
        PodOpticalPlant.of_plant(plant("fat-tree:4", gpus_per_server=1), reconfiguration_s=-1.0)


def test_its_document_reads_back_to_the_same_fibres() -> None:
    again = plant_from_document(plant_document(PLANT))
    assert isinstance(again, PodOpticalPlant)
    assert again.reconfiguration_s == 0.2
    assert np.array_equal(again.home_switch, PLANT.home_switch)
    assert plant_document(again) == plant_document(PLANT)


def test_a_drained_link_takes_the_fibre_of_its_leaf_and_a_drained_spine_all_of_its_own() -> None:
    state = Occupancy(PLANT)
    state.drain(Drained(links=[(4, 7)], spines=[2]))
    free = free_pod_fibres(state)
    assert np.argwhere(~free.leaf).tolist() == [[4, int(PLANT.home_switch[4, 7, 0])]]
    assert free.of_spine.tolist() == [3, 3, 0, 3, 3, 3, 3, 3, 3, 3]
    state.restore(Drained(links=[(4, 7)], spines=[2]))
    assert np.array_equal(free_pod_fibres(state).spine, PLANT.spine_fibres)


def test_a_plant_without_switches_has_no_fibres_to_ask_for() -> None:
    with pytest.raises(ClusterError, match=r"put them in with PodOpticalPlant\.of_plant"):
        free_pod_fibres(Occupancy(plant("fat-tree:4", gpus_per_server=1)))


def test_metrics_count_free_fibres() -> None:
    state = Occupancy(PLANT)
    state.drain(Drained(spines=[2]))
    lines = metrics(state).splitlines()
    assert f'ropewalk_cluster_leaf_free_uplinks{{leaf="{PLANT.leaf_names[0]}"}} 5' in lines
    assert f'ropewalk_cluster_spine_free_ports{{spine="{PLANT.spine_names[2]}"}} 0' in lines
    assert f'ropewalk_cluster_spine_free_ports{{spine="{PLANT.spine_names[3]}"}} 3' in lines
