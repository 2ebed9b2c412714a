"""The numbers of NCCL's own tuning model: latencies of hops, ceilings of protocols, corrections (NCCL 2.30).

They are published in the sources of NCCL (graph/tuning.cc, graph/topo.h); none of them is fitted here. Latencies are
seconds, ceilings bytes/s. Rows of ceilings are for one server, two servers, and more.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

US, GB = 1e-6, 1e9


class Generation(IntEnum):
    """GPUs that NCCL tells apart."""

    VOLTA = 0
    AMPERE = 1
    HOPPER = 2
    BLACKWELL = 3


_GENERATIONS = {
    Generation.VOLTA: ("p100", "v100", "t4"),
    Generation.HOPPER: ("h100", "h200", "h800", "h20"),
    Generation.BLACKWELL: ("b200", "b300", "gb200", "gb300"),
}


def generation_of(gpu: str) -> Generation:
    """The generation of a GPU by its name; what NCCL does not know runs as on Ampere.

    >>> generation_of("h200").name, generation_of("a100-40gb").name
    ('HOPPER', 'AMPERE')
    """
    name = gpu.lower()
    return next((one for one, names in _GENERATIONS.items() if name in names), Generation.AMPERE)


class ByProtocol(NamedTuple):
    """LL (a flag beside every 4 bytes), LL128 (a flag beside every 120), Simple (a flag for each chunk)."""

    ll: float
    ll128: float
    simple: float


BASE_TREE = ByProtocol(6.8 * US, 14 * US, 8.4 * US)
BASE_RING = ByProtocol(6.6 * US, 14 * US, 8.4 * US)
"""Before the first hop: the launch of the kernel."""

NVLINK_TREE, NVLINK_RING = ByProtocol(0.6 * US, 1.25 * US, 4 * US), ByProtocol(0.6 * US, 1.9 * US, 3.4 * US)
PCI_TREE, PCI_RING = ByProtocol(1 * US, 1.9 * US, 4 * US), ByProtocol(1 * US, 2.5 * US, 5.7 * US)
NET_TREE, NET_RING = ByProtocol(5 * US, 8.5 * US, 14 * US), ByProtocol(2.7 * US, 4 * US, 14 * US)
"""Of one hop inside a server and across."""
NVLS_INSIDE, NVLS_TREE_ACROSS = 25 * US, 20.9 * US
NET_OVERHEAD = ByProtocol(1 * US, 1 * US, 3 * US)
"""Of posting one send to a NIC: no hop of a ring between servers is shorter."""
BASE_PAT, PAT_HOP, PAT_RANK = 8 * US, 14 / 3.5 * US, 2.8 * US
"""Of PAT: the launch, each of its log2 n rounds, and what NCCL still counts for every rank."""
PAT_SHARE = 0.75
"""Of a ring's bandwidth."""
PLATEAU = {Generation.VOLTA: 1.9}
USUAL_PLATEAU = 1.4
"""How much longer the hops of a Simple ring all-reduce between servers take than one by one."""

LL_SHARE, LL128_SHARE = 0.5, 0.92
"""Payload in a byte that is sent, compared with Simple."""
TREE_SHARE = 0.92
"""Of a ring's bandwidth that a tree reaches on the same wires, and of that with LL and LL128 (one server, several)."""
TREE_LL_SHARE, TREE_LL128_SHARE = 1 / 3.8, (7 / 9, 120 / 128)
NVLS_SHARE = {Generation.HOPPER: 0.85, Generation.BLACKWELL: 0.74}
"""Of what NVLink carries that is left where switches add up."""
NVLS_HEADS, NVLS_HEAD_SPEED = 32, 20 * GB
"""GPUs that look after a part of the buffer at most, and what NCCL counts on for each where there are so many."""
NVLINK_SHARE = {
    Generation.VOLTA: 20 / 25, Generation.AMPERE: 20 / 25, Generation.HOPPER: 20.6 / 25,
    Generation.BLACKWELL: 40.1 / 50,
}  # fmt: skip
"""Payload that NVLink carries of its nominal rate."""

LL_CEILING = (
    (39 * GB, 39 * GB, 20.4 * GB), (87.7 * GB, 39 * GB, 20.4 * GB), (141 * GB, 39 * GB, 20.4 * GB),
    (282 * GB, 39 * GB, 20.4 * GB),
)  # fmt: skip
"""Bus bandwidth with LL; between servers as with Intel's CPUs."""
RING_LL128_CEILING = ((20 * GB,) * 3, (20 * GB,) * 3, (36.7 * GB,) * 3, (40 * GB,) * 3)
TREE_LL128_CEILING = (
    (20 * GB,) * 3, (20 * GB,) * 3, (36.7 * GB, 36.7 * GB, 29 * GB), (55.6 * GB, 31.67 * GB, 20 * GB),
)  # fmt: skip
TREE_CEILING = (
    (26.5 * GB, 18.5 * GB, 10 * GB), (24 * GB, 23.6 * GB, 17.8 * GB), (38.7 * GB, 41.4 * GB, 36 * GB),
    (70 * GB, 42.8 * GB, 24 * GB),
)  # fmt: skip
NVLS_TREE_CEILING = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 57.7 * GB, 45.5 * GB), (0.0, 96 * GB, 80 * GB))
"""Bus bandwidth of one channel, by generation."""
CHANNELS_INSIDE = 12
"""Channels of rings inside one server with NVLink; across servers every NIC has one."""

_TREE_CORRECTIONS = (
    "1 1 1 1 .9 .8 .7 .7 .7 .7 .6 .5 .4 .4 .5 .6 .7 .8 .9 1 1 1 1 1",
    "1 1 1 1 1 .9 .8 .8 .8 .7 .6 .6 .6 .6 .6 .6 .8 .9 .9 .9 .9 1 1 1",
    ".9 .9 .9 .9 .9 .9 .9 .8 .7 .6 .6 .5 .5 .5 .5 .6 .7 .8 .7 .7 .8 .9 .9 .9",
)
TREE_CORRECTIONS = ByProtocol(*(tuple(map(float, row.split())) for row in _TREE_CORRECTIONS))  # type: ignore[arg-type]
"""Part of their bandwidth that trees have at 64 B, 128 B, … 512 MB."""
