"""The buffer of a switch: who may come in, when to pause the sender, when to let it go on.

Bytes are counted where they came in, by (link, class): first in a reserve of their own, then in a pool that all ports
share, and beyond a threshold in the headroom of the port. The threshold is a part of what is left of the pool, so it
shrinks as the pool fills. Counting, thresholds and hysteresis are those of the RDMA fork of ns-3 of the HPCC authors,
which models a Broadcom chip; IEEE 802.1Qbb leaves them open.
"""

from __future__ import annotations

from ropewalk.sim.packet.inlined import inlined
from ropewalk.sim.packet.world import BUFFER, CLASSES, PFC, QUEUE_LIMIT, RESERVE, RESUME_OFFSET, World


@inlined
def threshold(world: World, link: int) -> int:
    """Bytes of the shared pool that one class of an ingress may hold now."""
    port = world.links[link]
    switch = world.switches[port.dst]
    return (switch.pool - switch.shared) >> port.shift


@inlined
def admit(world: World, came: int, goes: int, lane: int, size: int) -> bool:
    """Count a packet in that came over one link and leaves by another; False where it must be dropped."""
    port = world.links[came]
    switch = world.switches[port.dst]
    queue = world.queues[came * world.knobs[CLASSES] + lane]
    reserve = world.knobs[RESERVE]
    if world.knobs[PFC] == 0:
        out = world.queues[goes * world.knobs[CLASSES] + lane]
        limit = min((world.knobs[BUFFER] - switch.used) >> world.links[goes].shift, world.knobs[QUEUE_LIMIT])
        if out.bytes + size > limit or switch.used + size > world.knobs[BUFFER]:
            return False
        switch.used += size
        return True
    limit = (switch.pool - switch.shared) >> port.shift
    shared = max(queue.ingress - reserve, 0)
    if shared + size > limit and queue.headroom + size > port.headroom:
        return False
    after = queue.ingress + size
    if after <= reserve:
        queue.ingress = after
    elif after - reserve > limit:
        queue.headroom += size
    else:
        queue.ingress = after
        switch.shared += min(size, after - reserve)
    switch.used += size
    return True


@inlined
def release(world: World, came: int, lane: int, size: int) -> None:
    """Count a packet out that came over a link."""
    switch = world.switches[world.links[came].dst]
    switch.used -= size
    if world.knobs[PFC] == 0:
        return
    queue = world.queues[came * world.knobs[CLASSES] + lane]
    from_headroom = min(queue.headroom, size)
    rest = size - from_headroom
    switch.shared -= min(rest, max(queue.ingress - world.knobs[RESERVE], 0))
    queue.headroom -= from_headroom
    queue.ingress -= rest


@inlined
def should_pause(world: World, came: int, lane: int) -> bool:
    """Whether the sender of a class must be stopped: its bytes reach the threshold, or headroom is in use."""
    queue = world.queues[came * world.knobs[CLASSES] + lane]
    if queue.pausing == 1:
        return False
    return bool(queue.headroom > 0 or max(queue.ingress - world.knobs[RESERVE], 0) >= threshold(world, came))


@inlined
def should_resume(world: World, came: int, lane: int) -> bool:
    """Whether the sender of a class may go on: headroom empty and its bytes well below the threshold."""
    queue = world.queues[came * world.knobs[CLASSES] + lane]
    if queue.pausing == 0 or queue.headroom > 0:
        return False
    shared = max(queue.ingress - world.knobs[RESERVE], 0)
    return bool(shared == 0 or shared + world.knobs[RESUME_OFFSET] <= threshold(world, came))
