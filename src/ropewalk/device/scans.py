"""What scans of Mamba-2 layers cost: a family of Triton kernels, limited by multiprocessors on every GPU.

Measured on the H200 with the authors' package (`mamba_ssm` 2.3, chunks of 128 tokens, bf16, states of 128 numbers):
seven sizes from 32 to 256 heads of 64 numbers over 8,192 tokens and over two samples of them, all met within 13 %.
"""

from __future__ import annotations

from ropewalk.device.device import Device
from ropewalk.workload.kernel import Kernel

FIXED_S = {"forward": 45e-6, "backward": 300e-6}
"""Seconds of a scan with little to do: five kernels on the way forth and twenty-six on the way back."""
EACH_S = {"forward": 8.2e-12, "backward": 25.6e-12}
"""Seconds for every number of every token: heads by their size."""
MEASURED_STATE, MEASURED_MULTIPROCESSORS = 128, 132


def scanned(kernel: Kernel, device: Device) -> float:
    """Seconds of a scan, whose tensor cores wait for what its own code does around them."""
    batch, length, heads, size, state, *_ = kernel.dims
    numbers = batch * length * heads * size * state / MEASURED_STATE
    spread = MEASURED_MULTIPROCESSORS / device.multiprocessors / device.scans
    return (FIXED_S[kernel.form] + EACH_S[kernel.form] * numbers) * spread
