"""Laws of clusters: they read back from their documents, and their fabric has the GPUs that they describe."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ropewalk.hardware import Cluster, Ports, Servers, as_json, from_json, read_cluster
from ropewalk.routing import router_for

DEVICES = ("v100", "a100", "h100", "mi300x")
speeds = st.sampled_from([1.25e9, 12.5e9, 1e9 / 3, 50e9])


@st.composite
def groups(draw):
    gpus = draw(st.integers(1, 6))
    nics = draw(st.sampled_from([number for number in range(1, gpus + 1) if gpus % number == 0]))
    return Servers(draw(st.integers(1, 3)), gpus, draw(st.sampled_from(DEVICES)), draw(speeds), nics, draw(speeds))


@st.composite
def clusters(draw):
    servers = tuple(draw(st.lists(groups(), min_size=1, max_size=3)))
    latency = draw(st.none() | st.sampled_from([0.0, 1e-6, 1 / 3]))
    network = draw(st.sampled_from(["leaf-spine", "switch", "fat-tree", "ring"]))
    return Cluster(servers, network, latency, rails=draw(st.booleans()))


@given(clusters())
@settings(max_examples=60, deadline=None)
def test_a_cluster_reads_back_from_its_document(cluster):
    assert from_json(as_json(cluster)) == cluster


@given(groups(), st.integers(1, 6), st.booleans(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_ports_read_back_from_their_document(group, degree, duplex, single_panel):
    servers = Servers(group.count, group.gpus, group.device, group.nvlink_bandwidth, degree, group.nic_bandwidth)
    cluster = Cluster((servers,), Ports(degree, duplex, single_panel))
    assert from_json(as_json(cluster)) == cluster


@given(clusters())
@settings(max_examples=40, deadline=None)
def test_the_fabric_has_the_gpus_of_the_servers_and_every_gpu_reaches_every_other(cluster):
    fabric = cluster.fabric()
    assert fabric.hosts == cluster.gpus
    if fabric.server is not None:
        assert tuple(np.bincount(fabric.server).tolist()) == cluster.server_sizes
    if fabric.hosts > 1:
        src, dst = np.divmod(np.arange(fabric.hosts**2, dtype=np.int32), np.int32(fabric.hosts))
        router_for(fabric).make(0)(fabric, src[src != dst], dst[src != dst]).check()


@given(clusters(), st.data())
@settings(max_examples=30, deadline=None)
def test_a_server_that_fails_takes_its_own_gpus_and_no_others(cluster, data):
    sizes = cluster.server_sizes
    if len(sizes) < 2 or cluster.network == "ring":
        return  # the two ends of a broken ring may lose each other
    lost = data.draw(st.integers(0, len(sizes) - 1))
    left = Cluster(cluster.servers, cluster.network, cluster.latency_s, cluster.rails, (f"server{lost}",))
    assert left.server_sizes == sizes[:lost] + sizes[lost + 1 :]
    fabric = left.fabric()
    assert fabric.hosts == cluster.gpus - sizes[lost]
    assert not [name for name in fabric.node_names if name.startswith(f"gpu{lost}.")]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 8)), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_a_shape_means_the_servers_that_it_lists(parts):
    listed = [gpus for count, gpus in parts for _ in range(count)]
    assume(len(listed) > 1)  # a number alone may mean one server or several, and is refused
    text = ",".join(f"{count}x{gpus}" for count, gpus in parts)
    assert read_cluster(text).server_sizes == read_cluster(",".join(map(str, listed))).server_sizes == tuple(listed)
