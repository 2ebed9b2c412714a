"""The one place where the code of a transport becomes a call; see `transport.py` for the contract."""

from __future__ import annotations

from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet import dcqcn, dcqcn_paper, hpcc, roce, tcp
from ropewalk.sim.packet.transport import DCQCN, DCQCN_PAPER, DCTCP, HPCC, NEWRENO
from ropewalk.sim.packet.world import TRANSPORT, World


@kernel
def _is_tcp(world: World) -> bool:
    """NewReno, CUBIC and DCTCP are one machine; everything else stands on `roce.py`."""
    return bool(NEWRENO <= world.knobs[TRANSPORT] <= DCTCP)


@kernel
def begin(world: World, flow: int) -> None:
    """A flow starts now."""
    if _is_tcp(world):
        tcp.begin(world, flow)
        return
    code = world.knobs[TRANSPORT]
    roce.begin(world, flow)
    if code == DCQCN:
        dcqcn.begin(world, flow)
    elif code == DCQCN_PAPER:
        dcqcn_paper.begin(world, flow)
    elif code == HPCC:
        hpcc.begin(world, flow)


@kernel
def on_sent(world: World, flow: int, packet: int) -> None:
    """A packet of a flow has been put on the wire."""
    if _is_tcp(world):
        tcp.on_sent(world, flow, packet)
        return
    code = world.knobs[TRANSPORT]
    if code == DCQCN:
        dcqcn.on_sent(world, flow)
    elif code == DCQCN_PAPER:
        dcqcn_paper.on_sent(world, flow, packet)
    roce.on_sent(world, flow, packet)


@kernel
def on_data(world: World, flow: int, packet: int) -> int:
    """A packet has reached the receiver of its flow; says whether it goes back as an acknowledgement."""
    if _is_tcp(world):
        return tcp.on_data(world, flow, packet)
    code = world.knobs[TRANSPORT]
    answer = roce.on_data(world, flow, packet)
    if code == DCQCN_PAPER:
        dcqcn_paper.on_data(world, flow, packet)
    return answer


@kernel
def on_ack(world: World, flow: int, packet: int) -> None:
    """An acknowledgement has reached the sender of its flow."""
    if _is_tcp(world):
        tcp.on_ack(world, flow, packet)
        return
    code = world.knobs[TRANSPORT]
    roce.on_ack(world, flow, packet)
    if code == DCQCN:
        dcqcn.on_ack(world, flow, packet)
    elif code == DCQCN_PAPER:
        dcqcn_paper.on_ack(world, flow, packet)
    elif code == HPCC:
        hpcc.on_ack(world, flow, packet)


@kernel
def on_timer(world: World, flow: int, which: int) -> None:
    """A timer of a flow ran out."""
    if _is_tcp(world):
        tcp.on_timer(world, flow, which)
    else:
        roce.on_timer(world, flow, which)


@kernel
def on_loss(world: World, flow: int) -> None:
    """A switch has dropped a packet of a flow. A transport may only arm the timer that a loss needs."""
    if not _is_tcp(world):
        roce.on_loss(world, flow)
