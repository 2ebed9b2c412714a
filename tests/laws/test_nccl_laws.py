"""Rings and tables for NCCL come back as they were written, and a table is never slower than its samples."""

import itertools
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.collectives import ring_all_reduce
from ropewalk.export.nccl import (
    TunerRow,
    orders_of,
    read_ring_graph,
    read_tuner,
    ring_graphs,
    ring_orders,
    tuner_rows,
    write_ring_graphs,
    write_tuner,
)
from ropewalk.export.nccl.tuner import ALGORITHMS, ALL_SIZES, PROTOCOLS


@st.composite
def rings_over_servers(draw):
    """Rings that visit servers in ascending order, with each server's GPUs in any order."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda sizes: sum(sizes) > 1))
    place = [server for server, size in enumerate(sizes) for _ in range(size)]
    inside = [[rank for rank in range(len(place)) if place[rank] == server] for server in range(len(sizes))]
    orders = [
        [rank for members in inside for rank in draw(st.permutations(members))] for _ in range(draw(st.integers(1, 3)))
    ]
    ports = draw(st.lists(st.integers(0, 40), min_size=len(place), max_size=len(place)))
    return orders, place, ports


@given(rings_over_servers(), st.sampled_from([20, 12.5, 0.24]))
def test_rings_come_back_from_their_files_and_prove_themselves(rings, speed):
    orders, place, ports = rings
    graphs = ring_graphs(orders, place, ports, speed_intra=speed)
    with tempfile.TemporaryDirectory() as folder:
        read = [read_ring_graph(path) for path in write_ring_graphs(graphs, Path(folder) / "g.xml")]
    assert read == graphs
    assert orders_of(read) == orders
    ring_all_reduce(orders_of(read)).check()


@given(st.lists(st.permutations(range(5)), min_size=1, max_size=4), st.booleans())
def test_the_rings_found_in_a_program_are_those_it_was_made_of(orders, both_ways):
    found = ring_orders(ring_all_reduce(orders, both_ways))
    walked = [order[::way] for order in orders for way in ((1, -1) if both_ways else (1,))]
    made = [tuple(order[order.index(0) :] + order[: order.index(0)]) for order in map(list, walked)]
    shares = {order: made.count(order) for order in made}
    common = min(shares.values())
    while any(count % common for count in shares.values()):
        common -= 1
    assert {order: found.count(order) * common for order in found} == shares


@st.composite
def samples(draw):
    """Times of three choices at several sizes."""
    choices = [("tree", "ll"), ("ring", "simple"), ("ring", "ll128")]
    sizes = draw(st.lists(st.integers(1, 10**6), min_size=1, max_size=5, unique=True))
    return {size: {choice: draw(st.integers(1, 1000)) / 8 for choice in choices} for size in sizes}


def between(times, size, choice):
    """The time of a choice, on the straight line between the samples around a size."""
    sizes = sorted(times)
    low = max((known for known in sizes if known <= size), default=sizes[0])
    high = min((known for known in sizes if known >= size), default=sizes[-1])
    if size <= low or size >= high:
        return times[low if size >= low and size != high else high][choice]
    return times[low][choice] + (times[high][choice] - times[low][choice]) * (size - low) / (high - low)


@given(samples(), st.data())
def test_exactly_one_row_fits_every_size_and_it_is_the_fastest(times, data):
    rows = tuner_rows("allreduce", times)
    assert rows[0].min_bytes == 0
    assert rows[-1].max_bytes == ALL_SIZES
    assert all(one.max_bytes + 1 == other.min_bytes for one, other in itertools.pairwise(rows))
    size = data.draw(st.one_of(st.sampled_from(sorted(times)), st.integers(min(times), max(times))))
    (row,) = [row for row in rows if row.fits(size)]
    chosen = between(times, size, (row.algorithm, row.protocol))
    best = min(between(times, size, choice) for choice in times[min(times)])
    # A border between whole bytes may fall on either side of the true crossing by rounding.
    assert chosen <= best + 1e-9 * max(1.0, best)


ROWS = st.sampled_from(sorted(ALGORITHMS)).flatmap(
    lambda collective: st.builds(
        lambda sizes, *rest: TunerRow(collective, min(sizes), max(sizes), *rest),
        st.tuples(st.integers(0, ALL_SIZES), st.integers(0, ALL_SIZES)),
        st.sampled_from(ALGORITHMS[collective]),
        st.sampled_from(PROTOCOLS),
        *[st.one_of(st.just(-1), st.integers(1, 512)) for _ in range(4)],
        st.sampled_from([-1, 0, 1]),
    )
)


@given(st.lists(ROWS, max_size=6))
def test_a_table_comes_back_from_its_file(rows):
    with tempfile.TemporaryDirectory() as folder:
        write_tuner(rows, Path(folder) / "t.conf")
        assert read_tuner(Path(folder) / "t.conf") == rows
