"""One validator over all transports: what the engine and people may rely on, whichever of them is named."""

import numpy as np
import pytest
from packet_worlds import incast_of, step_through

from ropewalk.errors import Findings, GraphError
from ropewalk.sim.packet import TRANSPORTS, settings_named, simulate_packets
from ropewalk.sim.packet import world as w

every = pytest.mark.parametrize("name", TRANSPORTS)


def test_each_transport_has_a_code_and_a_name_of_its_own() -> None:
    transports = {name: settings_named(name).transport for name in TRANSPORTS if name != "tcp"}
    assert all(transport.name == name for name, transport in transports.items())
    assert len({transport.code for transport in transports.values()}) == len(transports)


@every
def test_defaults_are_possible_and_constants_are_numbers(name: str) -> None:
    transport = settings_named(name).transport
    findings = Findings(GraphError, name)
    transport.check(findings)
    assert findings.messages == []
    assert np.isfinite(transport.constants()).all()
    assert transport.timers >= 1


@every
@pytest.mark.parametrize("size", [1, 999, 1000, 1001, 123_456])
def test_a_lone_message_crosses_a_quiet_path_once(name: str, size: int) -> None:
    graph, routes = incast_of([size])
    settings = settings_named(name)
    trace = simulate_packets(graph, routes, settings)
    wire = size + -(-size // 1000) * settings.header_bytes
    uplink = int(np.flatnonzero(routes.fabric.link_src == 1)[0])
    assert trace.wire_bytes[uplink] == wire
    # No faster than the wire, and the first packet cannot leave the switch before it is there.
    last = min(size, 1000) if size <= 1000 else size - (size - 1) // 1000 * 1000
    assert trace.makespan >= (wire + last + settings.header_bytes) / 5e9 + 2e-6 - 1e-12
    assert trace.acknowledged_makespan > trace.makespan
    assert trace.timeouts.sum() == trace.drops.sum() == trace.pauses.sum() == 0


@every
def test_packets_of_a_flow_leave_and_are_counted_in_order(name: str) -> None:
    graph, routes = incast_of([64_000, 1, 30_500, 999])
    before = np.zeros((4, 3), np.int64)

    def look(world: w.World) -> None:
        now = np.column_stack([world.flows[column] for column in ("furthest", "received", "acked")])
        assert (now >= before).all()
        assert (now[:, 0] >= now[:, 1]).all()
        assert (now[:, 1] >= now[:, 2]).all()
        before[:] = now

    step_through(graph, routes, settings_named(name), look)
    assert before.tolist() == [[size] * 3 for size in (64_000, 1, 30_500, 999)]


@every
def test_the_same_inputs_give_the_same_bytes_twice(name: str) -> None:
    graph, routes = incast_of([640_000, 1, 305_000, 999_999])
    first, again = (simulate_packets(graph, routes, settings_named(name)) for _ in range(2))
    assert (first.end_ps > 0).all()
    for column in ("end_ps", "acknowledged_ps", "wire_bytes", "marks", "drops", "most_queued"):
        assert getattr(first, column).tolist() == getattr(again, column).tolist()
