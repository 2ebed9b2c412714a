"""Fabrics from and to NetworkX and GraphML."""

import networkx
import pytest

from ropewalk.errors import FabricError
from ropewalk.fabric import LeafSpine
from ropewalk.fabric.interchange import from_graphml, from_networkx, to_graphml, to_networkx


def test_graph_carries_kinds_levels_and_speeds():
    graph = to_networkx(LeafSpine(2, 1, 1, cables=2, latency=1e-6).build())
    assert graph.nodes["h0"] == {"kind": "host", "level": 0}
    assert graph.nodes["spine0"] == {"kind": "switch", "level": 2}
    assert graph.number_of_edges("leaf0", "spine0") == 2
    assert graph.edges["h0", "leaf0", 0] == {"bandwidth": 12.5e9, "latency": 1e-6, "cables": 1, "link": 0}


def test_undirected_graph_without_kinds_is_a_direct_connect_fabric():
    fabric = from_networkx(networkx.cycle_graph(4), "cycle", bandwidth=1e9)
    assert (fabric.name, fabric.hosts, fabric.switches, fabric.links) == ("cycle", 4, 0, 8)
    assert fabric.link_name(1) == "1->0"


def test_foreign_attributes_may_carry_units():
    graph = networkx.Graph()
    graph.add_edge("a", "b", bandwidth="100Gbps", latency="2us")
    fabric = from_networkx(graph)
    assert fabric.bandwidth.tolist() == [12.5e9, 12.5e9]
    assert fabric.latency.tolist() == [2e-6, 2e-6]


def test_hosts_come_first_whatever_the_order_of_the_graph():
    graph = networkx.Graph()
    graph.add_node("s", kind="switch")
    graph.add_node("a", kind="host")
    graph.add_node("b", kind="host")
    graph.add_edges_from([("s", "a"), ("s", "b")], bandwidth=1e9)
    assert from_networkx(graph).node_names == ("a", "b", "s")


def test_findings_of_a_graph_name_node_and_edge():
    graph = networkx.Graph(name="lab")
    graph.add_node("a", kind="host")
    graph.add_node("b", kind="router")
    graph.add_node("c", kind="host", level=0, server=0.5)
    graph.add_edge("a", "c")
    graph.add_edge("a", "a", bandwidth="5")
    graph.add_edge("b", "c", bandwidth=-1.0, cables=0)
    with pytest.raises(FabricError) as refused:
        from_networkx(graph)
    message = str(refused.value)
    assert message.startswith("lab: ")
    for part in (
        "node 'b': kind is 'router': set it to host or switch",
        "node 'c': server is 0.5",
        "edge 'a' to 'c': has no bandwidth",
        "edge 'a' to 'a': connects 'a' to itself",
        "edge 'a' to 'a': bandwidth '5' has no unit",
        "bandwidth -1 is not positive",
        "cables is 0",
    ):
        assert part in message


@pytest.mark.parametrize("text", ["", "<graph", "<html></html>", "no xml"])
def test_text_that_is_not_graphml_is_refused(text):
    with pytest.raises(FabricError):
        from_graphml(text, "lab")


def test_name_that_xml_cannot_hold_is_refused():
    graph = networkx.Graph()
    graph.add_edge("a\x01", "b", bandwidth=1e9)
    with pytest.raises(FabricError):
        from_graphml(to_graphml(from_networkx(graph)))
