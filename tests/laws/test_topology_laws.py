"""Laws of the topology finder: whatever is asked for, ports suffice, the network is whole, and it can be patched."""

from collections import Counter

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.codesign.blossom import heaviest_matching
from ropewalk.codesign.colouring import colour_edges
from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.finder import find_topology
from ropewalk.codesign.permutations import paper_jumps
from ropewalk.codesign.planes import PatchList, one_panel, patch_list
from ropewalk.codesign.selection import per_group
from ropewalk.fabric.wiring import Wiring
from ropewalk.strategy.seating import coset

weights = st.one_of(st.integers(0, 3), st.integers(0, 10**12), st.just(0))


@st.composite
def symmetric(draw: st.DrawFn) -> np.ndarray:
    n = draw(st.integers(1, 11))
    upper = np.zeros((n, n), np.int64)
    for a in range(n):
        for b in range(a):
            upper[b, a] = draw(weights)
    return upper + upper.T


@given(symmetric())
def test_no_matching_is_heavier(matrix: np.ndarray) -> None:
    mate = heaviest_matching(matrix)
    matched = [v for v in range(len(mate)) if mate[v] >= 0]
    assert all(mate[mate[v]] == v and matrix[v, mate[v]] > 0 for v in matched)
    graph = nx.Graph()
    graph.add_weighted_edges_from((int(a), int(b), int(matrix[a, b])) for a, b in np.argwhere(np.triu(matrix)))
    best = sum(int(matrix[a, b]) for a, b in nx.max_weight_matching(graph))
    assert sum(int(matrix[v, mate[v]]) for v in matched) == 2 * best


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.sampled_from([3, 40, 10**9]), st.sampled_from([0.08, 0.3, 1.0]))
def test_no_matching_of_forty_servers_is_heavier(seed: int, most: int, density: float) -> None:
    draw = np.random.default_rng(seed)
    upper = np.triu(draw.integers(0, most, (40, 40)) * (draw.random((40, 40)) < density), 1)
    matrix = upper + upper.T
    mate = heaviest_matching(matrix)
    graph = nx.Graph()
    graph.add_weighted_edges_from((int(a), int(b), int(matrix[a, b])) for a, b in np.argwhere(upper))
    best = sum(int(matrix[a, b]) for a, b in nx.max_weight_matching(graph))
    assert sum(int(matrix[v, mate[v]]) for v in range(40) if mate[v] >= 0) == 2 * best


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Demands, int, bool]:
    """Demands on up to 18 servers with sums over cosets, a degree that fits, and the kind of cable."""
    servers = draw(st.integers(2, 18))
    duplex = draw(st.booleans())
    degree = draw(st.integers(2 if duplex and servers > 2 else 1, min(servers - 1, 6)))
    sizes = [size for size in range(2, servers + 1) if servers % size == 0]
    sums = tuple(
        GroupSum(coset(servers, size, draw(st.integers(0, servers // size - 1))), draw(st.floats(0, 1e9)))
        for size in draw(st.lists(st.sampled_from(sizes), max_size=4))
    )
    pairs = np.zeros((servers, servers))
    for a, b in draw(st.lists(st.tuples(st.integers(0, servers - 1), st.integers(0, servers - 1)), max_size=12)):
        pairs[a, b] = draw(st.floats(0, 1e10)) if a != b else 0.0
    return Demands(servers, sums, pairs), degree, duplex


def wired(world: tuple[Demands, int, bool]) -> Wiring:
    demands, degree, duplex = world
    return find_topology(demands, degree=degree, bandwidth=1e9, duplex=duplex, selection=per_group(paper_jumps))


@given(worlds())
def test_ports_suffice_the_network_is_whole_and_rings_lie_on_cables(world: tuple[Demands, int, bool]) -> None:
    demands, degree, duplex = world
    wiring = wired(world)
    assert wiring.ports_used().max() <= degree
    assert wiring.degree_sums + wiring.degree_pairs == degree
    graph = nx.DiGraph([(a, b) for a, b, _ in wiring.cables] + [(b, a) for a, b, _ in wiring.cables if duplex])
    assert len(graph) == demands.servers
    assert nx.is_strongly_connected(graph)
    asked = {len(group.servers) for group in demands.sums}
    assert asked <= {rings.size for rings in wiring.rings}
    count = Counter({(a, b): number for a, b, number in wiring.cables})
    for rings in wiring.rings:
        stride = demands.servers // rings.size
        for jump in rings.jumps if rings.wired else ():
            hops = {(a, (a + jump * stride) % demands.servers) for a in range(demands.servers)}
            count.subtract({(min(hop), max(hop)) for hop in hops} if duplex else hops)
    assert min(count.values()) >= 0


@given(worlds())
def test_the_same_demands_give_the_same_wiring(world: tuple[Demands, int, bool]) -> None:
    assert wired(world) == wired(world)


@given(worlds(), st.floats(0.05, 1.0), st.integers(0, 2**32))
def test_pairs_get_ports_when_their_share_is_worth_a_ring(
    world: tuple[Demands, int, bool], share: float, seed: int
) -> None:
    demands, degree, duplex = world
    pairs = np.random.default_rng(seed).random((demands.servers, demands.servers)) * (1 - np.eye(demands.servers))
    sums = (GroupSum(tuple(range(demands.servers)), 1.0),)
    pairs *= share / max(1 - share, 1e-6) * sums[0].wire_bytes / pairs.sum()
    wiring = wired((Demands(demands.servers, sums, pairs), degree, duplex))
    unit = min(degree, 2 if duplex else 1)
    rings = degree // unit
    if rings > 1 and share > 1 - (rings - 1) * unit / degree + 1e-6:
        assert wiring.degree_pairs >= unit


@given(worlds())
def test_every_port_and_every_panel_port_is_used_at_most_once(world: tuple[Demands, int, bool]) -> None:
    _, degree, duplex = world
    wiring = wired(world)
    # Twice the panels always suffice: a cable clashes with fewer than that at its two ends.
    for patched in (patch_list(wiring, extra_planes=degree), one_panel(wiring)):
        _is_valid(patched, wiring)
    if not duplex or all(rings.size % 2 == 0 for rings in wiring.rings if rings.wired):
        assert patch_list(wiring).planes == degree


def _is_valid(patched: PatchList, wiring: Wiring) -> None:
    sending = [(patch.server, patch.port) for patch in patched.patches]
    receiving = [(patch.peer, patch.peer_port) for patch in patched.patches]
    leaving = [(patch.plane, patch.panel_port) for patch in patched.patches]
    ending = [(patch.plane, patch.peer_panel_port) for patch in patched.patches]
    for used in [sending + receiving, leaving + ending] if wiring.duplex else [sending, receiving, leaving, ending]:
        assert max(Counter(used).values()) == 1
    assert all(0 <= port < wiring.degree for _, port in sending + receiving)
    assert all(0 <= port < patched.panel_ports for _, port in leaving + ending)
    assert all(0 <= patch.plane < patched.planes for patch in patched.patches)
    laid = Counter((patch.server, patch.peer) for patch in patched.patches)
    assert laid == Counter({(a, b): count for a, b, count in wiring.cables})
    assert list(patched.patches) == sorted(patched.patches)


@given(st.integers(1, 9), st.integers(1, 5), st.data())
def test_senders_and_receivers_need_no_more_planes_than_ports(side: int, degree: int, data: st.DataObject) -> None:
    """König: any cables with at most `degree` at each end, parallel ones included."""
    ends: list[tuple[int, int]] = []
    for _ in range(degree):
        order = data.draw(st.permutations(range(side)))
        ends += [(a, side + b) for a, b in enumerate(order) if data.draw(st.booleans())]
    colours = colour_edges(2 * side, ends, degree) if ends else []
    assert colours is not None
    at_vertex = Counter((vertex, colour) for edge, colour in zip(ends, colours, strict=True) for vertex in edge)
    assert max(at_vertex.values(), default=1) == 1
