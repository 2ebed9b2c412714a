"""The buffer of a switch counts bytes where they came in: reserve, pool, headroom; it pauses by a moving threshold."""

import numpy as np
from packet_fabrics import star, together
from packet_kernels import let_out, take_in, threshold_of, wants_pause, wants_resume

from ropewalk.routing import shortest
from ropewalk.sim.packet import PacketSettings, Roce, SwitchSettings
from ropewalk.sim.packet.network import build_world
from ropewalk.sim.packet.world import World

FROM_H1, FROM_H2, TO_H0 = 2, 4, 1
"""Links of a star: cable i has link 2i up to the switch and 2i + 1 down to host i."""

SWITCH = SwitchSettings(buffer_bytes=100_000, reserve_bytes=2_000, headroom_bytes=5_000, alpha_shift=2)


def _world(switch: SwitchSettings = SWITCH) -> World:
    src, dst = np.array([1, 2]), np.array([0, 0])
    return build_world(together(src, dst, 1e4), shortest(star(3), src, dst), PacketSettings(Roce(), switch))


def _queue(world: World, link: int) -> tuple[int, int]:
    row = world.queues[link * 2 + 1]
    return int(row["ingress"]), int(row["headroom"])


def test_the_first_bytes_are_in_the_reserve_and_leave_the_pool_alone() -> None:
    world = _world()
    assert world.switches["pool"][3] == 100_000 - 3 * (2_000 + 5_000)
    assert take_in(world, FROM_H1, TO_H0, 2_000)
    assert _queue(world, FROM_H1) == (2_000, 0)
    assert world.switches["shared"][3] == 0


def test_a_packet_across_the_reserve_takes_only_the_rest_from_the_pool() -> None:
    world = _world()
    assert take_in(world, FROM_H1, TO_H0, 1_500)
    assert take_in(world, FROM_H1, TO_H0, 1_000)
    assert _queue(world, FROM_H1) == (2_500, 0)
    assert world.switches["shared"][3] == 500


def test_the_threshold_is_a_part_of_what_is_left_and_falls_for_all() -> None:
    world = _world()
    assert threshold_of(world, FROM_H2) == 79_000 // 4
    assert take_in(world, FROM_H1, TO_H0, 6_000)
    assert threshold_of(world, FROM_H2) == (79_000 - 4_000) // 4


def test_beyond_the_threshold_bytes_go_to_headroom_and_the_sender_is_to_be_paused() -> None:
    world = _world()
    while not wants_pause(world, FROM_H1):
        assert take_in(world, FROM_H1, TO_H0, 1_000)
    # Packets fit into the pool while x + 1000 is within (79000 - x) / 4; with 16000 in it, it is at the threshold.
    assert _queue(world, FROM_H1) == (2_000 + 16_000, 0)
    assert take_in(world, FROM_H1, TO_H0, 1_000)
    assert _queue(world, FROM_H1) == (18_000, 1_000)
    assert wants_pause(world, FROM_H1)
    assert not wants_pause(world, FROM_H2)


def test_a_packet_is_dropped_only_when_headroom_is_full_too() -> None:
    world = _world()
    while _queue(world, FROM_H1)[1] < 5_000:
        assert take_in(world, FROM_H1, TO_H0, 1_000)
    assert not take_in(world, FROM_H1, TO_H0, 1_000)
    assert take_in(world, FROM_H2, TO_H0, 1_000)


def test_the_sender_goes_on_when_headroom_is_empty_and_the_pool_well_below_the_threshold() -> None:
    world = _world()
    while not wants_pause(world, FROM_H1):
        take_in(world, FROM_H1, TO_H0, 1_000)
    world.queues["pausing"][FROM_H1 * 2 + 1] = 1
    freed = 0
    while not wants_resume(world, FROM_H1):
        let_out(world, FROM_H1, 1_000)
        freed += 1
    shared = _queue(world, FROM_H1)[0] - 2_000
    assert _queue(world, FROM_H1)[1] == 0
    assert shared + 3_072 <= threshold_of(world, FROM_H1) < shared + 1_000 + 3_072 + 250
    assert freed > 1


def test_what_came_in_goes_out_of_headroom_first_and_leaves_nothing_behind() -> None:
    world = _world()
    for _ in range(20):
        assert take_in(world, FROM_H1, TO_H0, 1_000)
    assert _queue(world, FROM_H1)[1] > 0
    let_out(world, FROM_H1, 1_000)
    before = _queue(world, FROM_H1)
    for _ in range(19):
        let_out(world, FROM_H1, 1_000)
    assert before == (18_000, 1_000)
    assert _queue(world, FROM_H1) == (0, 0)
    assert world.switches["shared"][3] == world.switches["used"][3] == 0


def test_a_lossy_switch_drops_what_its_egress_queue_may_not_hold() -> None:
    world = _world(SwitchSettings(pause=False, queue_limit_bytes=3_000))
    world.queues["bytes"][TO_H0 * 2 + 1] = 2_000
    assert take_in(world, FROM_H1, TO_H0, 1_000)
    world.queues["bytes"][TO_H0 * 2 + 1] = 2_001
    assert not take_in(world, FROM_H1, TO_H0, 1_000)


def test_marks_begin_at_4_kB_and_are_certain_at_16_kB_for_each_gbps_of_a_port() -> None:
    links = _world().links
    assert (links["kmin"] / 1e3).tolist() == [4 * 40] * len(links)
    assert (links["kmax"] / 1e3).tolist() == [16 * 40] * len(links)
