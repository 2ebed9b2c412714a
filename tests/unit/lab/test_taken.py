"""Which links flows took: those of their path and no others, or they strayed."""

from __future__ import annotations

from ropewalk.fabric import LeafSpine
from ropewalk.lab.forwarding import every_pair
from ropewalk.lab.job import Connection
from ropewalk.lab.network import LabNetwork, interface
from ropewalk.lab.taken import routes_taken
from ropewalk.routing import shortest

FABRIC = LeafSpine(2, 2, 2).build()
NETWORK = LabNetwork(FABRIC)
ROUTES = shortest(FABRIC, *every_pair(FABRIC))
LINKS = {FABRIC.link_name(link): link for link in range(FABRIC.links)}


def seen(number, names):
    ends = [NETWORK.end_of_link[LINKS[name]] for name in names]
    return [(number, NETWORK.cables[cable].nodes[end], interface(cable), 5) for cable, end in ends]


def path_of(src, dst):
    row = int(ROUTES.find(src, dst)[0])
    path = int(ROUTES.path_start[row])
    return [FABRIC.link_name(link) for link in ROUTES.link[ROUTES.link_start[path] : ROUTES.link_start[path + 1]]]


def test_flows_on_their_links_took_their_route():
    connections = (Connection(0, 1, 0), Connection(0, 2, 0))
    caught = seen(0, path_of(0, 1)) + seen(1, path_of(0, 2))
    found = routes_taken(NETWORK, connections, ROUTES, caught)
    assert found.strayed == ()
    assert found.as_json()["every_flow_took_its_route"]
    assert found.said() == "every flow took its route (2 flows, 30 packets inspected on their links)"


def test_a_flow_over_another_spine_is_named_with_both_links():
    given = path_of(0, 2)
    other = [name.replace("spine0", "spineX").replace("spine1", "spine0").replace("spineX", "spine1") for name in given]
    found = routes_taken(NETWORK, (Connection(0, 2, 0),), ROUTES, seen(0, other))
    (strayed,) = found.strayed
    assert set(strayed.instead) == set(other) - set(given)
    assert set(strayed.missing) == set(given) - set(other)
    assert found.said().startswith("1 of 1 flows did not take their route: h0 to h2 went over ")


def test_a_flow_that_nobody_saw_is_not_called_right():
    assert routes_taken(NETWORK, (Connection(0, 1, 0),), ROUTES, []).strayed[0].missing == tuple(path_of(0, 1))
