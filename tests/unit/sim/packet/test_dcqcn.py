"""DCQCN's rates step by step: marks and times in, rates out, against tables worked out by hand."""

import numpy as np
import pytest
from packet_fabrics import star, together
from packet_kernels import dcqcn_mark, dcqcn_rate, paper_echo, paper_mark, paper_rate

from ropewalk.routing import shortest
from ropewalk.sim.packet import Dcqcn, DcqcnPaper, PacketSettings, engine
from ropewalk.sim.packet.network import build_world
from ropewalk.sim.packet.transport import TransportSettings
from ropewalk.sim.packet.world import World

US = 1_000_000
NS = 1_000
LINE = 5e9
"""Bytes/s of 40 Gbps."""

G = 1 / 256


def _world(transport: TransportSettings) -> World:
    src, dst = np.array([1]), np.array([0])
    world = build_world(together(src, dst, 1e6), shortest(star(2), src, dst), PacketSettings(transport))
    engine.start(world)
    return world


def test_the_first_mark_starts_the_clocks_and_the_first_cut_comes_a_period_later() -> None:
    world = _world(Dcqcn())
    dcqcn_mark(world, 10 * US)
    assert dcqcn_rate(world, 10 * US) == LINE
    assert dcqcn_rate(world, 14 * US) == LINE
    # Alpha was 1, then four periods of 1 us without a mark.
    alpha = (1 - G) ** 4
    assert dcqcn_rate(world, 14 * US + NS) == pytest.approx(LINE * (1 - alpha / 2), rel=1e-15)


def test_a_table_of_cuts_and_increases() -> None:
    world = _world(Dcqcn())
    rate, target, alpha = LINE, LINE, 1.0

    def decay(periods: int, marked: bool = False) -> None:
        nonlocal alpha
        for number in range(periods):
            alpha = (1 - G) * alpha + (G if marked and number == 0 else 0.0)

    dcqcn_mark(world, 0)
    decay(4)
    rate *= 1 - alpha / 2  # at 4 us + 1 ns; the target stays, as no increase came before
    assert dcqcn_rate(world, 5 * US - 1) == pytest.approx(rate, rel=1e-14)

    dcqcn_mark(world, 6 * US)  # the clock of alpha ticks at 6 us first; this mark counts in the tick at 7 us
    decay(2)
    decay(2, marked=True)
    rate *= 1 - alpha / 2  # at 8 us + 1 ns, the same target
    assert dcqcn_rate(world, 9 * US - 1) == pytest.approx(rate, rel=1e-14)

    # No mark for 300 us after the last cut: half-way to the target, then additive, then hyper increase.
    assert dcqcn_rate(world, 308 * US) == pytest.approx(rate, rel=1e-14)
    rate = (rate + target) / 2
    assert dcqcn_rate(world, 308 * US + NS) == pytest.approx(rate, rel=1e-14)
    target = min(target + 1e6, LINE)  # 8 Mbps, but never above the line
    rate = (rate + target) / 2
    assert dcqcn_rate(world, 608 * US + NS) == pytest.approx(rate, rel=1e-14)

    # The next cut comes after increases, so it lowers the target to the rate first.
    dcqcn_mark(world, 609 * US)
    decay(600)
    alpha = (1 - G) * alpha  # the tick at 609 us came before the mark
    decay(3, marked=True)
    target = rate
    rate *= 1 - alpha / 2
    assert dcqcn_rate(world, 612 * US + NS) == pytest.approx(rate, rel=1e-12)

    # With the target below the line, the three kinds of increase show.
    for step in (0.0, 1e6, 10e6, 10e6):
        target += step
        rate = (rate + target) / 2
    assert dcqcn_rate(world, (612 + 4 * 300) * US + NS) == pytest.approx(rate, rel=1e-12)


def test_the_rate_never_falls_below_the_least() -> None:
    world = _world(Dcqcn(least_rate=1e9))
    for time in range(0, 60 * US, US):
        dcqcn_mark(world, time)
    assert dcqcn_rate(world, 60 * US) == 1e9


def test_a_clamped_target_follows_every_cut() -> None:
    free, clamped = _world(Dcqcn()), _world(Dcqcn(clamp_target=True))
    for world in (free, clamped):
        for time in (0, 5 * US):
            dcqcn_mark(world, time)
    cut = dcqcn_rate(free, 9 * US)
    assert cut == dcqcn_rate(clamped, 9 * US)
    assert dcqcn_rate(free, 309 * US) == pytest.approx((cut + LINE) / 2, rel=1e-14)
    assert dcqcn_rate(clamped, 309 * US) < (cut + LINE / 1.9) / 2


def test_asking_often_changes_nothing() -> None:
    once, often = _world(Dcqcn()), _world(Dcqcn())
    for world in (once, often):
        dcqcn_mark(world, 3 * US)
        dcqcn_mark(world, 9 * US)
    for time in range(9 * US, 900 * US, 777_777):
        dcqcn_rate(often, time)
    assert dcqcn_rate(often, 900 * US) == dcqcn_rate(once, 900 * US)


def test_the_paper_cuts_at_once_and_recovers_in_stages() -> None:
    world = _world(DcqcnPaper())
    paper_mark(world, 10 * US)
    assert paper_rate(world, 10 * US, 0) == LINE / 2  # alpha is 1
    rate = LINE / 2
    for stage in range(1, 5):
        rate = (rate + LINE) / 2
        assert paper_rate(world, (10 + 55 * stage) * US, 0) == pytest.approx(rate, rel=1e-14)
    # Alpha has decayed by one step for each 55 us without a notification, after the one that raised it to 1.
    alpha = (1 - G) ** 4
    paper_mark(world, 240 * US)
    assert paper_rate(world, 240 * US, 0) == pytest.approx(rate * (1 - alpha / 2), rel=1e-14)


def test_the_paper_counts_bytes_too_and_increases_faster_when_both_have_counted_enough() -> None:
    world = _world(DcqcnPaper(grow_bytes=1000.0, grow_period_s=1.0, fast_stages=1, add_rate=1e6))
    paper_mark(world, 0)
    paper_mark(world, 1)
    target, rate = LINE / 2, LINE / 4
    target += 1e6  # the byte counter is full once: as many times as there are fast stages, so additive
    rate = (rate + target) / 2
    assert paper_rate(world, 2, 1048) == pytest.approx(rate, rel=1e-3)
    hyper = _world(DcqcnPaper(grow_bytes=1000.0, grow_period_s=1e-6, fast_stages=0, add_rate=0.0, add_more_rate=1e6))
    paper_mark(hyper, 0)
    paper_mark(hyper, 1)
    paper_rate(hyper, 2, 1048)
    before = hyper.numbers[0, 1]
    paper_rate(hyper, US + 1, 0)
    # Both counters have run full once, beyond the zero fast stages: one step of hyper increase.
    assert hyper.numbers[0, 1] == pytest.approx(before + 1e6)


def test_the_receiver_of_the_paper_notifies_once_in_a_period() -> None:
    world = _world(DcqcnPaper())
    echoes = [paper_echo(world, time * US) for time in (0, 10, 49, 50, 51, 99, 120)]
    assert echoes == [1, 0, 0, 1, 0, 0, 1]
