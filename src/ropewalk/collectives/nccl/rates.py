"""How much of the wires NCCL fills and what it takes beside, by GPU: one table for `simulate` and `expect` alike.

A share is payload over the nominal rate of the wire, at large buffers. Latencies are written down where they were
measured; elsewhere they are those of NCCL's tuning model, by which NCCL chooses everywhere. Each line has its source,
and none was fitted to a training step.
"""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.collectives.nccl.constants import NVLINK_SHARE, NVLS_SHARE, US, Generation


@dataclass(frozen=True)
class Latency:
    """Of rings with the protocol Simple inside a server, as measured: launches are longer than NCCL counts on."""

    launch_s: float
    hop_s: float
    exchange_s: float | None = None
    """Of a whole all-to-all."""


@dataclass(frozen=True)
class NcclRates:
    """Payload in a byte on the wire with the protocol Simple, and latencies where they are known."""

    rings: float
    """Rings and trees on NVLink."""
    exchanges: float
    """All-to-alls and sends on NVLink."""
    switches: float = 0.0
    """NVLS, where switches reduce; 0 without it."""
    nic: float = 0.94
    """A NIC: NCCL's developers count on 46 to 48 GB/s of 400 Gbps, 24 of 200 and 12 of 100 (nccl-tests issues 290 and
    119)."""
    latency: Latency | None = None
    source: str = ""


def _nvls(generation: Generation) -> float:
    return NVLINK_SHARE[generation] * NVLS_SHARE[generation]


RATES: dict[Generation, NcclRates] = {
    Generation.VOLTA: NcclRates(
        NVLINK_SHARE[Generation.VOLTA], NVLINK_SHARE[Generation.VOLTA], source="NCCL's tuning model: 20 of 25 GB/s"
    ),
    Generation.AMPERE: NcclRates(
        0.71, 0.71, latency=Latency(43e-6, 1.83e-6),
        source="77 all-reduces of 2 to 8 A100s (vTrain's nccl-tests tables)",
    ),
    Generation.HOPPER: NcclRates(
        0.817, 0.72, _nvls(Generation.HOPPER),
        source="rings of eight H100s reach 367.5 of 450 GB/s (NCCL issue 1455), all-to-alls of four and eight "
        "H100s and H200s 311 to 335 with 512 MiB (AIConfigurator's tables, NCCL 2.23 to 2.29)",
    ),
    Generation.BLACKWELL: NcclRates(
        0.723, 0.641, _nvls(Generation.BLACKWELL), latency=Latency(24 * US, 8.6 * US, 51 * US),
        source="nccl-tests on eight B200s, and the same collectives in a training step: all-gather and reduce-scatter "
        "606 GiB/s, all-to-all 537 GiB/s (SimuMax, b200_bf16_ceperm.json)",
    ),
}  # fmt: skip
"""By generation; GPUs that NCCL does not know run as on Ampere."""

PCI_EXPRESS = NcclRates(12 / 15.75, 12 / 15.75, source="NCCL's topology model: 12 GB/s of the 15.75 of PCIe 3.0 x16")
"""Of servers without NVLink."""
