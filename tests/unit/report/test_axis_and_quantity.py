"""Ticks at round numbers, numbers with their units, and JSON that cannot leave its script."""

import json
import math

import pytest

from ropewalk.report import quantity
from ropewalk.report.axis import given_axis, seconds_axis, value_axis, wants_log
from ropewalk.report.chart import clipped, embedded, plain


def test_a_number_and_its_unit_do_not_part():
    assert quantity.seconds(0.05688) == "56.88\u00a0ms"
    assert quantity.seconds(1e-5) == "10\u00a0µs"
    assert quantity.seconds(0.0) == "0\u00a0s"
    assert quantity.bandwidth(5e9) == "40\u00a0Gbps"


@pytest.mark.parametrize(
    ("part", "text"),
    [(0.0, "0 %"), (1e-15, "0 %"), (0.552, "+55.2 %"), (-0.058, "−5.8 %"), (2.0, "+200 %"), (4e-4, "+0.040 %")],
)
def test_percent_has_as_many_digits_as_it_deserves(part, text):
    assert quantity.percent(part, signed=True).replace("\u00a0", " ") == text


def test_ratios_read_like_ratios():
    assert [quantity.times(ratio) for ratio in (1.05, 4.0, 63.2)] == ["1.05×", "4.0×", "63×"]


def test_a_span_of_one_value_is_that_value():
    assert quantity.span((2, 2), str) == "2"
    assert quantity.span((2, 4), str) == "2 to 4"


@pytest.mark.parametrize("high", [0.0567, 0.226, 1.0, 14.49, 99.9])
def test_linear_ticks_are_few_and_round(high):
    axis = value_axis("", [high], str, log=False)
    ticks = axis["tickvals"]
    assert ticks[0] == 0
    assert 4 <= len(ticks) <= 9
    assert ticks[-1] <= high * 1.0001 <= axis["range"][1]


@pytest.mark.parametrize("values", [(0.05, 14.0), (1e-6, 10.0), (0.2, 0.21)])
def test_logarithmic_ticks_stand_inside_the_axis(values):
    axis = seconds_axis("", values, log=True)
    low, high = axis["range"]
    assert low < math.log10(min(values))
    assert math.log10(max(values)) < high
    assert axis["tickvals"]
    assert all(low <= math.log10(tick) <= high for tick in axis["tickvals"])


def test_measured_values_are_the_ticks():
    assert given_axis("hosts", [16, 64, 256], str)["ticktext"] == ["16", "64", "256"]
    assert given_axis("hosts", [16, 64, 250, 256], str)["ticktext"] == ["16", "64", "256"]  # 250 would run into it


def test_twenty_fold_asks_for_a_logarithm():
    assert not wants_log([1, 20])
    assert wants_log([1, 20.1])
    assert not wants_log([])


def test_json_in_a_page_cannot_end_its_script():
    text = str(embedded({"name": "</script><!-- & \u2028"}))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"name": "</script><!-- & \u2028"}


def test_a_number_that_is_none_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded([math.nan])


def test_labels_are_cut_before_they_are_escaped():
    assert plain("a<b>&") == "a&lt;b&gt;&amp;"
    assert clipped("<" * 10, 4) == "&lt;&lt;&lt;…"


def test_bandwidths_of_small_messages_have_a_unit_that_fits():
    shown = [
        quantity.gigabytes(value).replace("\u202f", " ").replace("\xa0", " ")
        for value in (0, 8.6e4, 3.6e6, 4e7, 1.733e11)
    ]
    assert shown == ["0 GB/s", "86 kB/s", "3.6 MB/s", "0.04 GB/s", "173.3 GB/s"]
