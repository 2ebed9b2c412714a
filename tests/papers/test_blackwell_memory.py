"""Kernels on Blackwell that move bytes, and hosts that launch them, beside what was published of them.

Transformer Engine's quantisation to MXFP8 on a B200: the column beside AMD's own in github.com/ROCm/TransformerEngine,
pull request 598. Copies on a B200: 6 TB/s by CUDA's bandwidth test (newmind.ai, journal 18). Calls of a linear layer:
github.com/NVIDIA/TransformerEngine, issue 2053.
"""

from __future__ import annotations

import pytest

from ropewalk.device.device import device
from ropewalk.device.pricer import pricer
from ropewalk.workload.kernel import pointwise, quantise

NUMBERS = 8192 * 8192


def test_quantising_takes_as_long_as_transformer_engine_on_a_b200():
    along_rows, along_columns = 34.84e-6, 39.61e-6
    each = pricer("b200", "mxfp8").kernel(quantise("block", NUMBERS))
    assert 0.95 * along_rows < each < 1.05 * along_columns


def test_copies_reach_six_terabytes_per_second_on_a_b200():
    copy = pointwise("map", 1 << 28)
    assert copy.moved_bytes(2) / pricer("b200", "bf16").kernel(copy) == pytest.approx(6.0e12, rel=0.03)


def test_grace_launches_as_much_slower_than_a_xeon_as_was_measured():
    for name in ("gb200", "gb300"):
        assert device(name).host_factor / device("h100").host_factor == pytest.approx(37.08 / 13.48, rel=0.01)
