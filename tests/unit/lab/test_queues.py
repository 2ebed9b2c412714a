"""Queues in front of links: every link has its speed, every connection its turn on the links it crosses."""

from __future__ import annotations

import pytest

from ropewalk.errors import LabError
from ropewalk.fabric import LeafSpine, Ring
from ropewalk.lab.collective import collective_work
from ropewalk.lab.network import FIFO, LabNetwork, LabSettings
from ropewalk.lab.question import LabQuestion
from ropewalk.lab.queues import burst_bytes, flow_lines, rate_line, shaping_lines
from ropewalk.lab.request import routes_by_name


def lines_of(network):
    return [line for node in range(network.fabric.nodes) for line in shaping_lines(network, node)]


def test_every_link_has_one_queue_and_its_speed_is_set_last():
    fabric = LeafSpine(2, 2, 2, bandwidth=2.5e6).build()
    fair, fifo = lines_of(LabNetwork(fabric)), lines_of(LabNetwork(fabric, settings=LabSettings(queue=FIFO)))
    assert sum("root handle 1: htb" in line for line in fair) == fabric.links
    assert sum("rate 20000000bit" in line for line in fair) == fabric.links
    assert len(fifo) == fabric.links
    assert all("tbf rate 20000000bit burst 65536" in line for line in fifo)


def test_a_queue_that_stays_gets_its_speed_alone():
    network = LabNetwork(Ring(3, 2.5e6).build())
    assert shaping_lines(network, 0, {0, 1, 2}) == [rate_line(network, cable, 20_000_000) for cable in (0, 2)]


def test_connections_have_a_class_on_every_link_they_cross_and_lose_it_afterwards():
    network = LabNetwork(LeafSpine(2, 2, 2, bandwidth=2.5e6).build())
    _, routes = routes_by_name(network.fabric, "default")
    work = collective_work(network, routes, LabQuestion("mesh", size_bytes=4000))
    added, gone = (flow_lines(network, work.job.connections, routes, verb) for verb in ("replace", "del"))
    # 12 pairs of hosts: 4 inside of a leaf over 2 links, 8 between leafs over 4.
    assert sum(map(len, added.values())) == sum(map(len, gone.values())) == 4 * 2 + 8 * 4
    assert all(" 1:1 classid 1:1" in line for lines in added.values() for line in lines)
    assert added[0][0].split(" htb ")[0].replace("replace", "del") == gone[0][0]


def test_hosts_take_turns_so_that_no_two_begin_with_the_same_third():
    network = LabNetwork(LeafSpine(2, 2, 2, bandwidth=2.5e6).build())
    _, routes = routes_by_name(network.fabric, "default")
    connections = collective_work(network, routes, LabQuestion("mesh", size_bytes=4000)).job.connections
    turns = [connections[at : at + 4] for at in range(0, len(connections), 4)]
    assert all(len({one.dst for one in turn}) == len({one.src for one in turn}) == 4 for turn in turns)


def test_a_bucket_holds_a_whole_segment_and_20_ms_where_it_must_and_8_ms_otherwise():
    assert burst_bytes(1_000_000, fair=False) == 64 << 10
    assert burst_bytes(200_000_000, fair=False) == 512 << 10
    rates = range(10**6, 10**9, 10**7)
    assert all(burst_bytes(rate, fair=True) < burst_bytes(rate, fair=False) for rate in rates if rate < 5 * 10**8)


def test_segments_are_short_turns_of_the_slowest_link():
    sizes = [LabNetwork(Ring(3, 1.25e5 * mbps).build()).segment_bytes for mbps in (1, 10, 20, 100, 1000)]
    assert sizes == [6000, 6250, 12500, 62500, 65536]
    assert LabNetwork(Ring(3, 2.5e6).build(), settings=LabSettings(queue=FIFO)).segment_bytes == 65536


def test_unknown_queues_are_refused():
    with pytest.raises(LabError, match="use fair or fifo"):
        LabNetwork(Ring(3, 2.5e6).build(), settings=LabSettings(queue="red")).check()
