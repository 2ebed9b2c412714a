"""Whatever the times: timetables are sound, the clock is a plain event loop, and no step beats its lower bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timetable_events import played
from warm_up_rules import by_clock

from ropewalk.export.torch_pipeline import compute_comms, compute_only, read_compute_comms, read_compute_only
from ropewalk.timetable import automatic, early_backward, gpipe, interleaved, v_homes
from ropewalk.timetable.clock import run, stage_times
from ropewalk.timetable.kept import mean_kept
from ropewalk.timetable.named import TIMETABLES, timetable
from ropewalk.timetable.table import Pass

seconds = st.integers(0, 12).map(lambda quarter: quarter / 4)
lasting = st.integers(1, 12).map(lambda quarter: quarter / 4)


@st.composite
def tables(draw):
    """Any named timetable that exists for a small size."""
    name = draw(st.sampled_from(sorted(TIMETABLES)))
    devices = draw(st.integers(1, 5))
    if name == "dualpipe":
        devices = 2 * draw(st.integers(1, 3))
        return timetable(name, devices, 2 * draw(st.integers(devices, devices + 3)))
    if name == "dualpipev":
        return timetable(name, devices, draw(st.integers(2 * devices, 2 * devices + 5)))
    if name == "interleaved":
        return interleaved(devices, devices * draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    return timetable(name, devices, draw(st.integers(1, 12)))


@st.composite
def times_of(draw, pieces):
    columns = [
        draw(st.lists(column, min_size=pieces, max_size=pieces)) for column in (lasting, lasting, seconds, seconds)
    ]
    onward, back = (draw(st.lists(seconds, min_size=pieces - 1, max_size=pieces - 1)) for _ in range(2))
    forward, backward, weight, reduce = columns
    return stage_times(forward, backward, weight, onward, back, reduce, overlap=draw(st.sampled_from([0.0, 0.5, 1.0])))


@st.composite
def worlds(draw):
    table = draw(tables())
    return table, draw(times_of(table.pieces))


@given(worlds(), st.data())
def test_the_average_kept_is_the_area_under_what_is_kept_and_never_above_the_peak(world, data):
    table, times = world
    every = len(table.device_of_piece)
    sizes = st.lists(st.integers(0, 9), min_size=every, max_size=every).map(np.array)
    kept, then, again = data.draw(sizes), data.draw(sizes), data.draw(sizes)
    seen = run(table, times)
    mean = mean_kept(seen, kept, then, again)
    area = np.zeros(table.devices)
    held: dict[tuple[int, int], tuple[float, float]] = {}  # (piece, micro-batch): bytes since when
    for at in np.lexsort((np.arange(table.passes), seen.start)):
        kind, piece, number = Pass(table.kind[at]), int(table.piece[at]), int(table.micro_batch[at])
        device, start, end = table.device[at], seen.start[at], seen.end[at]
        if kind == Pass.FORWARD:
            held[piece, number] = kept[piece], start
            continue
        size, since = held.pop((piece, number))
        if kind == Pass.INPUT:
            change = start if then[piece] > kept[piece] else end
            area[device] += size * (change - since)
            held[piece, number] = then[piece], change
        else:
            area[device] += size * (end - since) + (again[piece] * (end - start) if kind == Pass.BACKWARD else 0)
    assert not held
    assert mean * seen.makespan == pytest.approx(area)
    assert (mean <= table.peak_kept(kept, then, again) * (1 + 1e-12) + 1e-12).all()


@given(worlds(), st.booleans())
def test_the_clock_is_a_plain_event_loop(world, half_duplex):
    table, times = world
    seen = run(table, times, half_duplex=half_duplex)
    expected = played(table, times, half_duplex=half_duplex)
    for position, (kind, piece, number) in enumerate(zip(table.kind, table.piece, table.micro_batch, strict=True)):
        assert (seen.start[position], seen.end[position]) == pytest.approx(expected[Pass(kind), piece, number])


@given(worlds())
def test_no_step_is_shorter_than_its_busiest_device_and_the_way_through(world):
    table, times = world
    seen = run(table, times)
    through = times.forward.sum() + times.backward.sum()
    for piece in range(table.pieces - 1):
        if table.device_of_piece[piece] != table.device_of_piece[piece + 1]:
            through += times.send_forward[piece] + times.send_backward[piece]
    assert seen.makespan >= seen.busy.max() - 1e-9
    assert seen.makespan >= seen.span.max() - 1e-9
    assert seen.makespan >= through - 1e-9
    assert (seen.all_reduce_end >= seen.all_reduce_start + times.all_reduce - 1e-9).all()
    assert 0 <= seen.bubble < 1


@given(worlds())
def test_half_duplex_links_carry_one_transfer_at_a_time(world):
    """Taking turns may even help, as a longer task may in any list of tasks; sharing a link never overlaps."""
    table, times = world
    seen = run(table, times, half_duplex=True)
    moved = np.flatnonzero(~np.isnan(seen.sent) & (seen.arrived > seen.sent))
    here, there = table.device[moved], table.device[table.consumer[moved]]
    link = np.minimum(here, there) * table.devices + np.maximum(here, there)
    for one in np.unique(link):
        order = moved[link == one][np.argsort(seen.sent[moved[link == one]])]
        assert (seen.sent[order[1:]] >= seen.arrived[order[:-1]] - 1e-9).all()


@given(st.integers(1, 6), st.integers(1, 12), lasting, lasting)
def test_early_backward_is_as_long_as_gpipe_for_equal_stages(devices, micro_batches, forward, backward):
    times = stage_times(forward, backward, pieces=devices)
    expected = (micro_batches + devices - 1) * (forward + backward)
    for table in (gpipe(devices, micro_batches), early_backward(devices, micro_batches)):
        assert run(table, times).makespan == pytest.approx(expected)


@given(st.integers(1, 8), st.integers(1, 20), st.integers(1, 20), st.booleans())
def test_early_backward_keeps_its_warm_up_and_gpipe_everything(devices, micro_batches, limit, deep):
    table = early_backward(devices, micro_batches, limit, deep=deep)
    wanted = [2 * (devices - i) - 1 if deep else devices - i for i in range(devices)]
    assert table.peak_live.tolist() == [min(one, limit, micro_batches) for one in wanted]
    assert gpipe(devices, micro_batches).peak_live.tolist() == [micro_batches] * devices


@given(st.integers(1, 6), st.integers(1, 16), st.sampled_from([("zb-h1", 1), ("zb-h2", 2)]))
def test_zero_bubble_keeps_one_depth_everywhere(devices, micro_batches, kind):
    name, depth = kind
    live = timetable(name, devices, micro_batches).peak_live
    assert live.max() <= depth * (devices - 1) + 1
    if micro_batches > depth * (devices - 1):
        assert (live == depth * (devices - 1) + 1).all()


@given(tables())
def test_every_timetable_proves_itself(table):
    table.check()


@settings(max_examples=40)
@given(st.data())
def test_the_automatic_timetable_keeps_to_its_memory_and_is_no_worse_than_those_by_hand(data):
    devices, micro_batches = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 9))
    in_a_v = data.draw(st.booleans())
    times = data.draw(times_of(devices * (1 + in_a_v)))
    limit = data.draw(st.integers(2, 4 * devices))
    found = automatic(times, micro_batches, v_homes(devices) if in_a_v else None, limit=limit)
    found.timetable.check()
    assert found.peak_live.max() <= limit
    for name in ("zb-v",) if in_a_v else ("zb-h1", "zb-h2"):
        by_hand = timetable(name, devices, micro_batches)
        if by_hand.peak_live.max() <= limit:
            assert found.makespan <= run(by_hand, times).makespan


@given(st.integers(1, 5), st.integers(1, 10), st.data())
def test_the_choice_by_the_clock_is_the_faster_one(devices, micro_batches, data):
    times = data.draw(times_of(devices))
    both = [run(early_backward(devices, micro_batches, deep=deep), times).makespan for deep in (False, True)]
    assert by_clock(times, micro_batches).makespan == min(both)


@given(tables().filter(lambda table: table.copies == 1))
def test_schedule_files_read_back_as_they_were_written(table):
    for write, read in ((compute_only, read_compute_only), (compute_comms, read_compute_comms)):
        again = read(write(table), table.name)
        assert write(again) == write(table)
        assert str(again) == str(table)
