"""What packets showed, in sentences: the largest difference from flows, and who pauses most."""

import numpy as np
import pytest

from ropewalk.report.combinations import Combination
from ropewalk.report.packet_findings import what_flows_miss, what_pauses
from ropewalk.report.ranking import ranking
from ropewalk.sim.level import PacketFacts


def facts(pauses=(0, 0, 0), *, drops=0, timeouts=0):
    """Of two hosts under one switch."""
    kinds, none = ("hosts", "hosts", "switches"), np.zeros(0)
    return PacketFacts(
        "rdma", 0, 0, 0, 0, drops, timeouts, 0, 0.0, np.array(pauses), kinds, ("h0", "h1", "s0"), "h0", 1e9,
        none, none, none, none, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64),
    )  # fmt: skip


def combination(logical="ring", found=None, way="rdma", **times):
    return Combination(
        logical, "switch", "switch:2", 2, 1000, 1e9, "shortest", times, None, False, None, None, None, 0.0, None, 2, 4,
        None, np.zeros(0), way, packet=found,
    )  # fmt: skip


def said(sentence):
    return sentence.replace("\u00a0", " ").replace("\u202f", " ").replace("\u2212", "-")


def test_the_largest_difference_between_packets_and_flows_is_named_with_the_part_of_headers():
    near = combination("mesh", facts(), flow=1.0, packet=1.02)
    far = combination("ring", facts(), flow=2.0, packet=2.5, wire=2.1)
    sentence = said(what_flows_miss([near, far]))
    assert sentence.startswith(f"Packets differ most from flows for {far.words} with rdma: +25.0 %")
    assert sentence.endswith("of which headers and acknowledgements are +5.0 %.")


def test_the_difference_is_relative_to_flows_and_not_the_longest_time():
    long = combination("mesh", facts(), flow=100.0, packet=101.0)
    short = combination("ring", facts(), flow=1.0, packet=1.5)
    assert short.words in what_flows_miss([long, short])


def test_timeouts_of_senders_are_counted_where_there_are_any():
    assert "timeouts" not in what_flows_miss([combination(found=facts(), flow=1.0, packet=1.1)])
    found = said(what_flows_miss([combination("ps", facts(timeouts=1200), "tcp", flow=1.0, packet=9.0)]))
    assert found.endswith("with tcp: +800 %; senders hit 1 200 timeouts.")


def test_without_packets_or_without_flows_nothing_is_said():
    assert what_flows_miss([]) == what_pauses([]) == ""
    assert what_flows_miss([combination(flow=1.0)]) == ""
    assert what_flows_miss([combination(found=facts(), packet=1.0)]) == ""
    assert what_pauses([combination(flow=1.0)]) == ""


def test_the_combination_that_pauses_most_is_named_with_the_kinds_that_do():
    some, most = combination("mesh", facts((1, 0, 0))), combination("ps", facts((0, 30, 1500)), "rdma-pfc")
    sentence = said(what_pauses([some, most, combination("ring", facts())]))
    assert sentence.startswith(
        f"Most pause frames: {most.words} with rdma-pfc, 1 530 (30 by hosts, 1 500 by switches)."
    )
    assert sentence.endswith("1 of 3 runs have no pause frames.")


def test_no_pauses_are_told_apart_from_packets_that_are_dropped_instead():
    assert what_pauses([combination(found=facts())]) == "There are no pause frames and no drops."
    both = [combination(found=facts(drops=7)), combination("mesh", facts(drops=5))]
    assert what_pauses(both) == "There are no pause frames; 12 packets are dropped."


@pytest.mark.parametrize("ours", ["b", "nobody"])
def test_rivals_are_bars_below_each_other_and_ours_alone_stands_out(ours):
    names = ("a", "b", "a name of more than thirty-two characters")
    figure = ranking(names, (1.0, 2.0, 4.0), ("1 s", "2 s", "4 s"), ("x", "y", "z"), lambda value: f"{value:g} s", ours)
    (bars,) = figure["data"]
    assert list(zip(bars["y"], bars["x"], bars["text"], strict=True)) == [
        (0, 1.0, "1 s"),
        (1, 2.0, "2 s"),
        (2, 4.0, "4 s"),
    ]
    colours = bars["marker"]["color"]
    assert (colours[1] != colours[0]) == (ours == "b")
    assert colours[0] == colours[2]
    axis = figure["layout"]["yaxis"]
    assert axis["range"][0] > 2 > axis["range"][1]  # the first is on top
    assert [len(name) for name in axis["ticktext"]] == [1, 1, 32]
    assert figure["layout"]["xaxis"]["range"][0] == 0
    assert figure["layout"]["xaxis"]["range"][1] > 4.0 * 1.2  # room for the text of the longest
