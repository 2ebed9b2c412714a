"""Links that other commands cut and slow: refused before a job that needs them, told after one that met them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_labs import answer_of_slow_link

from ropewalk.errors import LabError
from ropewalk.fabric import FatTree, Ring
from ropewalk.lab.changes import cable_name, changed_links, require_whole
from ropewalk.lab.collective import collective_work
from ropewalk.lab.network import LabNetwork, LabSettings
from ropewalk.lab.question import LabQuestion
from ropewalk.lab.request import HASH, routes_by_name
from ropewalk.lab.saved import SavedFabric, saved_paths
from ropewalk.lab.state import Holder, LabState

FABRIC = Ring(4, 1.25e9).build()
NETWORK = LabNetwork(FABRIC, scale=500.0)


def a_state(**changed):
    router, routes = routes_by_name(FABRIC, "default")
    state = LabState(
        "pod", "ring:4", Holder(1, 1, "boot"), (1, 2, 3, 4), SavedFabric.of(FABRIC), NETWORK.scale, LabSettings(),
        router, saved_paths(routes),
    )  # fmt: skip
    return replace(state, **changed)


def ring_of(members):
    _, routes = routes_by_name(FABRIC, "default")
    return collective_work(NETWORK, routes, LabQuestion("ring", size_bytes=8_000, groups=(members,)))


def test_a_job_over_a_cable_that_is_down_is_refused_with_what_brings_it_up():
    (number,) = [at for at in NETWORK.cables if cable_name(NETWORK, at) == "h0-h1"]
    down = a_state(cut=(number,))
    with pytest.raises(LabError, match=r"^h0-h1 is down in lab pod.* over it.*--name pod --link h0-h1 --up"):
        require_whole(down, NETWORK, ring_of((0, 1)))
    require_whole(down, NETWORK, ring_of((2, 3)))
    require_whole(a_state(), NETWORK, ring_of((0, 1)))
    require_whole(replace(down, routing=HASH), NETWORK, ring_of((0, 1)))


def test_all_cables_that_are_needed_and_down_are_named():
    both = [at for at in NETWORK.cables if cable_name(NETWORK, at) in ("h0-h1", "h1-h2")]
    with pytest.raises(LabError, match=r"^h0-h1, h1-h2 are down in lab pod.* over them"):
        require_whole(a_state(cut=tuple(both)), NETWORK, ring_of((0, 1, 2)))


def test_parallel_cables_have_their_number():
    fabric = FatTree(4).build()
    twice = replace(
        fabric,
        link_src=np.append(fabric.link_src, fabric.link_src[:2]),
        link_dst=np.append(fabric.link_dst, fabric.link_dst[:2]),
        bandwidth=np.append(fabric.bandwidth, fabric.bandwidth[:2]),
        latency=np.append(fabric.latency, fabric.latency[:2]),
        cables=np.append(fabric.cables, fabric.cables[:2]),
    )
    network = LabNetwork(twice)
    names = [cable_name(network, cable) for cable in network.cables]
    assert len(set(names)) == len(names)
    assert sum(name.endswith((":0", ":1")) for name in names) == 2


def test_changes_during_a_run_are_told_in_the_speeds_of_the_fabric():
    before = a_state(cut=(3,), slowed=((2, 5_000_000),))
    after = a_state(cut=(1,), slowed=((0, 2_000_000),))
    names = [FABRIC.link_name(link) for link in (0, 2)]
    assert changed_links(NETWORK, before, after) == (
        f"{names[0]} runs at 1 Gbps instead of 10 Gbps",
        f"{names[1]} runs at 10 Gbps instead of 2.5 Gbps",
        f"{cable_name(NETWORK, 1)} is down",
        f"{cable_name(NETWORK, 3)} is up again",
    )
    assert changed_links(NETWORK, before, before) == ()
    assert changed_links(NETWORK, before, replace(after, fabric=SavedFabric.of(Ring(5).build()))) == ()


def test_a_change_is_the_reason_where_prediction_and_measurement_part():
    found = answer_of_slow_link(part=0.5, changed=("leaf0->spine0 runs at 10 Mbps instead of 20 Mbps",))
    assert found.parting.reasons == ("another command changed links during the run",)
    assert any("leaf0->spine0 runs at 10 Mbps instead of 20 Mbps" in note for note in found.notes())
    assert found.as_json()["changed"] == ["leaf0->spine0 runs at 10 Mbps instead of 20 Mbps"]
