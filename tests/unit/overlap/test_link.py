"""Networks as a scheduler of gradients sees them."""

from math import inf

import pytest

from ropewalk.collectives.cost import closed_form
from ropewalk.errors import FabricError, ProgramError
from ropewalk.fabric import IdealSwitch, Torus
from ropewalk.overlap.link import (
    ExchangeKind,
    Link,
    all_reduce_link,
    ring_link,
    server_link,
)


def test_a_link_takes_the_time_of_the_closed_form_it_is_made_of() -> None:
    for logical, builder, routing in [("ring", IdealSwitch(8), "shortest"), ("hips", Torus((4, 4)), "dimension")]:
        form = closed_form(logical, builder, routing)
        assert form is not None
        link = all_reduce_link(form, 1.25e9, 10e-6)
        assert link.seconds(64e6) == pytest.approx(form.seconds(64e6, 1.25e9, 10e-6), rel=1e-12)


def test_a_ring_of_four_carries_three_halves_of_the_bytes_in_six_rounds() -> None:
    assert ring_link(4, 1e9, 1e-6).seconds(2e9) == pytest.approx(3 + 6e-6)


def test_servers_on_their_own_hosts_push_and_pull_at_once() -> None:
    apart = server_link(4, 4, 1e9, 1e-6)
    assert (apart.kind, apart.bandwidth, apart.start_up_s) == (ExchangeKind.PARAMETER_SERVER, 1e9, 1e-6)
    assert apart.duplex


def test_too_few_servers_are_the_bottleneck() -> None:
    assert server_link(16, 4, 1e9).bandwidth == 0.25e9
    assert server_link(4, 16, 1e9).bandwidth == 1e9


def test_links_that_carry_nothing_are_refused() -> None:
    for bandwidth in (0.0, -1.0, inf, float("nan")):
        with pytest.raises(FabricError, match="give a positive finite number"):
            Link(bandwidth)
    with pytest.raises(FabricError, match="start_up_s is -1: give 0 or more"):
        Link(1.0, -1.0)
    with pytest.raises(FabricError, match="needs no synchronisation"):
        ring_link(1, 1e9)
    with pytest.raises(FabricError, match="without workers"):
        server_link(0, 1, 1e9)
    with pytest.raises(ProgramError, match="at least one server"):
        server_link(1, 0, 1e9)
