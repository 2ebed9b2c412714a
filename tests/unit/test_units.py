from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk import units
from ropewalk.errors import UnitError


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [("100Gbps", 12.5e9), ("40 Gbps", 5e9), ("1b/s", 0.125), ("12.5GB/s", 12.5e9), ("50GiB/s", 50 * 2**30),
     ("400Gbit/s", 50e9), ("1e2Gbps", 12.5e9)],
)  # fmt: skip
def test_bandwidths_are_read_as_bytes_per_second(text, bytes_per_s):
    assert units.bandwidth(text) == bytes_per_s


@pytest.mark.parametrize(
    ("text", "size"),
    [("575MB", 575_000_000), ("64MiB", 67_108_864), ("0.5kB", 500), ("1B", 1), ("2.5GB", 2_500_000_000)],
)
def test_sizes_are_whole_bytes(text, size):
    assert units.size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"), [("10us", 1e-5), ("10µs", 1e-5), ("0.1ms", 1e-4), ("2s", 2.0), ("0", 0.0), ("500ns", 5e-7)]
)
def test_times_are_the_nearest_float(text, seconds):
    assert units.seconds(text) == seconds


@pytest.mark.parametrize(
    ("read", "text", "part"),
    [
        (units.size, "575", "has no unit"),
        (units.size, "10 parsecs", "unknown unit 'parsecs'"),
        (units.size, "1.5B", "whole number of bytes"),
        (units.bandwidth, "-100Gbps", "negative"),
        (units.bandwidth, "0Gbps", "zero"),
        (units.bandwidth, "100GB", "unknown unit 'GB'"),
        (units.bandwidth, "fast", "not a number"),
        (units.bandwidth, "", "not a number"),
        (units.bandwidth, "1e99999999Gbps", "out of any reasonable range"),
        (units.bandwidth, "9" * 400 + "Gbps", "out of any reasonable range"),
        (units.seconds, "10Us", "unknown unit 'Us'"),
        (units.seconds, "1 0us", "not a number"),
    ],
)
def test_what_cannot_be_read_is_refused_with_an_example(read, text, part):
    with pytest.raises(UnitError, match=part):
        read(text)


@given(st.integers(0, 2**60), st.sampled_from(["B", "kB", "MB", "MiB", "GB", "GiB"]))
def test_sizes_are_exact(number, unit):
    assert units.size(f"{number}{unit}") == number * int(units.SIZE_UNITS[unit])


@pytest.mark.parametrize(
    ("show", "value", "text"),
    [(units.show_size, 575e6, "575 MB"), (units.show_bandwidth, 12.5e9, "100 Gbps"),
     (units.show_seconds, 0.0128, "12.8 ms"),
     (units.show_seconds, 0.0, "0 ns"), (units.show_seconds, 61.0, "61 s"), (units.show_seconds, 0.99998, "1 s"),
     (units.show_seconds, 1e-3, "1 ms")],
)  # fmt: skip
def test_quantities_are_shown_the_way_people_read_them(show, value, text):
    assert show(value) == text
