"""What people say about packets and switches."""

from __future__ import annotations

import pytest

from ropewalk.errors import Findings, InputError
from ropewalk.sim.level import PacketOptions
from ropewalk.sim.packet import PathSpread


def test_what_is_left_out_stays_as_the_transport_has_it():
    plain, given = PacketOptions(), PacketOptions(payload_bytes=4096, ecn=(1e5, 4e5, 0.5))
    assert plain.settings("rdma", "ecmp", seed=3).seed == 3
    assert plain.settings("rdma", "ecmp", seed=0).payload_bytes == 1000
    settings = given.settings("rdma", "ecmp", seed=0)
    assert settings.payload_bytes == 4096
    assert (settings.switch.kmin_bytes, settings.switch.kmax_bytes, settings.switch.pmax) == (1e5, 4e5, 0.5)


def test_paths_are_used_as_the_routing_means_it():
    assert PacketOptions().settings("rdma", "spray", seed=0).spread is PathSpread.SPRAY
    assert PacketOptions().settings("rdma", "dimension-rotated", seed=0).spread is PathSpread.SPLIT
    assert PacketOptions(spread="hash").settings("rdma", "spray", seed=0).spread is PathSpread.HASH


def test_a_queue_and_a_timeout_belong_to_tcp():
    settings = PacketOptions(queue_bytes=104_800, min_rto_s=0.01).settings("tcp", "ecmp", seed=0)
    assert settings.switch.queue_limit_bytes == 104_800
    assert settings.transport.min_rto_s == 0.01
    with pytest.raises(InputError, match=r"--port-queue would have no effect[\s\S]*--min-rto would have no effect"):
        _check(PacketOptions(queue_bytes=104_800, min_rto_s=0.01), "rdma")


def test_an_option_counts_for_the_transports_that_know_it():
    options = PacketOptions(queue_bytes=104_800, ecn=(1e5, 4e5, 0.5))
    _check(options, "rdma", "tcp")
    assert options.settings("rdma", "ecmp", seed=0).switch.queue_limit_bytes is None
    assert options.settings("tcp", "ecmp", seed=0).switch.kmin_bytes is None
    with pytest.raises(
        InputError, match=r"--ecn would have no effect: no transport here reacts to marks: leave it out, or use rdma"
    ):
        _check(PacketOptions(ecn=(1e5, 4e5, 0.5)), "tcp", "rdma-pfc")


def test_a_queue_that_ends_before_marks_begin_is_refused():
    with pytest.raises(InputError, match=r"dctcp waits for marks[\s\S]*raise --port-queue"):
        _check(PacketOptions(queue_bytes=30_000), "dctcp")
    _check(PacketOptions(queue_bytes=30_000, ecn=(10_000.0, 10_000.0, 1.0)), "dctcp")


def _check(options: PacketOptions, *transports: str) -> None:
    findings = Findings(InputError, "sync")
    options.check(transports, findings)
    findings.raise_if_any()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (PacketOptions(payload_bytes=0), "payload of a packet is 0 bytes"),
        (PacketOptions(buffer_bytes=500), "does not hold one packet"),
        (PacketOptions(ecn=(2e5, 1e5, 0.2)), "above Kmax"),
        (PacketOptions(ecn=(1e5, 2e5, 2.0)), "Pmax is 2"),
        (PacketOptions(spread="wide"), "unknown spread 'wide'"),
    ],
)
def test_impossible_settings_are_refused_with_a_remedy(options, part):
    with pytest.raises(InputError, match=part):
        options.settings("rdma", "ecmp", seed=0)


def test_unknown_transports_are_found_beside_everything_else():
    findings = Findings(InputError, "sync")
    PacketOptions(payload_bytes=0).check(("rdma", "quic"), findings)
    with pytest.raises(
        InputError, match=r"there is no transport 'quic': [^.]*use one of rdma[\s\S]*payload of a packet"
    ):
        findings.raise_if_any()
