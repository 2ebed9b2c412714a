"""HPCC incasts against runs of its authors' ns-3 fork: 4 MB from each of q senders through one switch at 100 Gbps.

Conventions of those runs: 1 µs a link, 1000 bytes of payload in packets of 1090 (telemetry), times truncated to
nanoseconds, T = 4.16 µs (payload only counted), 50 Mbps of additive increase, completion when the last acknowledgement
is back. The fork rounds telemetry to the bits of its header, which is left out here: hence a tolerance of 0.2 %.
"""

import pytest
from packet_worlds import run_incast

from ropewalk.sim.packet import Completion, Hpcc, PacketSettings

LAST_COMPLETION_NS = {1: 370_719, 2: 741_905, 8: 2_955_818}


@pytest.mark.parametrize("senders", LAST_COMPLETION_NS)
def test_incast_ends_when_the_reference_says(senders: int) -> None:
    settings = PacketSettings(
        Hpcc(round_trip_s=4.16e-6, add_per_line=5e-4),
        header_bytes=90,
        completion=Completion.SENDER,
        truncate_ns=True,
    )
    trace = run_incast([4e6] * senders, settings, bandwidth=12.5e9)
    assert trace.makespan_ps / 1000 == pytest.approx(LAST_COMPLETION_NS[senders], rel=2e-3)
