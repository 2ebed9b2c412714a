"""Adders: who mixes, how fast, and what people write for them."""

from __future__ import annotations

import math

import pytest

from ropewalk.collectives.mixer import FREE, Mixer, MixPlace, mixer_named
from ropewalk.errors import RopewalkError


def test_free_mixing_takes_no_time():
    assert FREE.free
    assert FREE.seconds(1e12) == 0.0


def test_a_gigabyte_at_five_gigabytes_a_second_takes_a_fifth_of_a_second():
    assert Mixer(5e9).seconds(1e9) == 0.2


@pytest.mark.parametrize(
    ("text", "mixer"),
    [
        ("5GB/s", Mixer(5e9)),
        ("cpu:800MB/s", Mixer(8e8, MixPlace.CPU)),
        ("network:25GB/s", Mixer(25e9, MixPlace.NETWORK)),
        ("free", FREE),
    ],
)
def test_mixers_are_read_and_written_alike(text, mixer):
    assert mixer_named(text) == mixer
    assert mixer_named(str(mixer)) == mixer


@pytest.mark.parametrize(
    "text", ["fpga:5GB/s", "0GB/s", "0", "-5GB/s", "nanGB/s", "1e400GB/s", "5", "5GB", "gpu", "network", "cpu:", ""]
)
def test_a_mixer_that_cannot_be_is_refused_with_what_to_write(text):
    with pytest.raises(RopewalkError, match=r"cpu:5GB/s"):
        mixer_named(text)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan])
def test_a_rate_must_be_positive(rate):
    with pytest.raises(RopewalkError, match="above 0"):
        Mixer(rate)
