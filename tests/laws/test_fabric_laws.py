"""Laws of fabrics: what is written is what is read, and what is built is what was counted."""

import math
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from written_out import fabric_of_json, fabric_of_yaml

from ropewalk.fabric import (
    BCube,
    Circulant,
    Dgx,
    Dragonfly,
    FabricDraft,
    FatTree,
    Hypercube,
    IdealSwitch,
    LeafSpine,
    Mesh,
    RandomRegular,
    Ring,
    Torus,
)
from ropewalk.fabric.checks import facts
from ropewalk.fabric.expression import builder, nearest
from ropewalk.fabric.families import FAMILIES
from ropewalk.fabric.files import to_json, to_yaml
from ropewalk.fabric.interchange import from_graphml, from_networkx, to_graphml, to_networkx
from ropewalk.fabric.layout import layout

small = st.integers(1, 4)
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).filter(lambda shape: math.prod(shape) > 1)


@st.composite
def circulants(draw):
    hosts = draw(st.integers(2, 24))
    strides = draw(st.sets(st.integers(1, hosts // 2), max_size=3)) | {1}
    return Circulant(hosts, tuple(strides))


@st.composite
def random_regulars(draw):
    hosts = draw(st.integers(3, 20))
    degree = draw(st.integers(2, hosts - 1).filter(lambda degree: hosts * degree % 2 == 0))
    return RandomRegular(hosts, degree, draw(st.integers(0, 99)))


builders = st.one_of(
    st.integers(1, 4).flatmap(
        lambda m: st.builds(FatTree, st.just(2 * m), st.none() | st.integers(2, 2 * m), st.sampled_from([1, m]))
    ),
    st.builds(LeafSpine, st.integers(2, 5), small, small, small),
    st.builds(BCube, st.integers(2, 4), st.integers(1, 3)),
    shapes.map(lambda shape: Torus(tuple(shape))),
    shapes.map(lambda shape: Mesh(tuple(shape))),
    st.builds(Ring, st.integers(2, 30)),
    st.builds(Hypercube, st.integers(1, 5)),
    st.builds(Dragonfly, st.integers(2, 5), st.integers(2, 4), small, st.integers(2, 3)),
    st.builds(IdealSwitch, st.integers(2, 30)),
    random_regulars(),
    circulants(),
    st.builds(Dgx, small, st.sampled_from([2, 4, 8]), st.sampled_from([1, 2]), st.sampled_from([0, 1])),
)

# Any text a person may type, without the signs that XML or UTF-8 cannot hold.
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=8)
bandwidths = st.floats(1e-3, 1e15, allow_subnormal=False)
latencies = st.just(0.0) | st.floats(1e-12, 1e3)


@st.composite
def any_fabrics(draw):
    """A connected multigraph with odd names, odd speeds, one-way links, bundles and maybe servers."""
    labels = draw(st.lists(names, min_size=2, max_size=8, unique=True))
    hosts = draw(st.integers(2, len(labels)))
    draft = FabricDraft(draw(names), labels[:hosts])
    for label in labels[hosts:]:
        draft.add_switches([label], draw(st.integers(1, 5)))
    for node in range(1, len(labels)):
        draft.add_links(
            draw(st.integers(0, node - 1)), node, draw(bandwidths), draw(latencies), draw(st.integers(1, 9))
        )
    for _ in range(draw(st.integers(0, 6))):
        src, dst = draw(st.lists(st.integers(0, len(labels) - 1), min_size=2, max_size=2, unique=True))
        draft.add_links(src, dst, draw(bandwidths), draw(latencies), duplex=draw(st.booleans()))
    server = np.array(draw(st.lists(st.integers(0, 9), min_size=hosts, max_size=hosts)), np.int32)
    return draft.freeze(server=server if draw(st.booleans()) else None)


def assert_same(one, other):
    assert (one.name, one.node_names, one.hosts) == (other.name, other.node_names, other.hosts)
    for column in ("level", "link_src", "link_dst", "bandwidth", "latency", "cables"):
        assert np.array_equal(getattr(one, column), getattr(other, column)), column
    assert (one.server is None) == (other.server is None)
    assert one.server is None or np.array_equal(one.server, other.server)


@settings(max_examples=60, deadline=None)
@given(any_fabrics() | builders.map(lambda record: record.build()))
def test_what_is_written_is_what_is_read(fabric):
    assert_same(fabric_of_yaml(to_yaml(fabric)), fabric)
    assert_same(fabric_of_json(to_json(fabric)), fabric)
    assert_same(from_networkx(to_networkx(fabric)), fabric)
    assert_same(from_graphml(to_graphml(fabric)), fabric)


@settings(max_examples=100, deadline=None)
@given(builders)
def test_expression_of_a_record_reads_as_that_record(record):
    assert builder(record.expression) == record


@settings(max_examples=80, deadline=None)
@given(builders)
def test_built_fabric_has_the_promised_hosts_mirrored_links_and_one_part(record):
    fabric = record.build()
    assert fabric.hosts == record.hosts
    assert len(set(fabric.node_names)) == fabric.nodes
    assert np.array_equal(fabric.link_src[::2], fabric.link_dst[1::2])
    assert np.array_equal(fabric.link_dst[::2], fabric.link_src[1::2])
    assert (fabric.link_src != fabric.link_dst).all()
    found = facts(fabric)
    assert found.connected
    assert found.mean_distance is not None
    assert found.mean_distance <= found.diameter
    assert 0 < found.bisection <= fabric.host_bandwidth().sum()


@settings(max_examples=60, deadline=None)
@given(builders)
def test_search_never_finds_a_cut_narrower_than_the_closed_form(record):
    fabric = record.build()
    assert facts(replace(fabric, builder=None)).bisection >= facts(fabric).bisection * (1 - 1e-12)


@settings(max_examples=80, deadline=None)
@given(builders | any_fabrics())
def test_drawing_gives_every_node_its_own_finite_place(source):
    fabric = source.build() if hasattr(source, "build") else source
    at = layout(fabric)
    assert at.shape == (fabric.nodes, 2)
    assert np.isfinite(at).all()
    assert len(np.unique(np.round(at, 6), axis=0)) == fabric.nodes


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(FAMILIES)), st.integers(2, 3000))
def test_nearest_is_exact_where_the_size_exists(family, hosts):
    exact = FAMILIES[family].sized(hosts)
    found = nearest(family, hosts)
    assert found == exact if exact is not None else found.hosts != hosts
    assert found.hosts >= 2
    assert builder(family, hosts=found.hosts) == found
