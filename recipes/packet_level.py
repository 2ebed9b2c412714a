"""Packet-level studies, one function a study: what flows hide, and when flows are enough.

python recipes/packet_level.py                                     lists them
python recipes/packet_level.py NAME [--page FILE] [--json FILE]    runs one
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ropewalk import sync
from ropewalk.files import write_whole
from ropewalk.report import sync_page
from ropewalk.sim.level import PacketOptions
from ropewalk.sync import SyncQuestion, SyncRow, SyncStudy
from ropewalk.units import show_bandwidth, show_seconds, show_size

EVERY_WAY = ("ps", "ps-sharded", "mesh", "ring", "hips")
"""One server, a server on every host, everybody with everybody, rings, and a hierarchy."""
ALL_LEVELS = ("closed", "flow", "wire", "packet")
SIXTEEN = ("fat-tree:4", "bcube:4,2", "torus:4x4")


def every_way_on_fat_tree_bcube_torus_16_hosts(size_bytes: int = 4_000_000) -> SyncQuestion:
    """The study at the size of the reference runs: closed form, flows and packets, RDMA and TCP."""
    return SyncQuestion(
        logical=EVERY_WAY, physical=SIXTEEN, sizes=(size_bytes,), bandwidths=(5e9,), start_up_s=0.0,
        hop_latency_s=1e-6, levels=ALL_LEVELS, transports=("rdma", "tcp"),
    )  # fmt: skip


def every_way_16_to_256_servers(size_bytes: int = 4_000_000) -> SyncQuestion:
    """Scalability in servers: 16, 64 and 256 of them (250 on the fat-tree, which has no 256). Some minutes."""
    return SyncQuestion(
        logical=EVERY_WAY,
        physical=(*SIXTEEN, "fat-tree:8,4", "bcube:8,2", "torus:8x8", "fat-tree:10", "bcube:16,2", "torus:16x16"),
        sizes=(size_bytes,), bandwidths=(5e9,), start_up_s=0.0, hop_latency_s=1e-6, levels=ALL_LEVELS,
        transports=("rdma", "tcp"),
    )  # fmt: skip


def every_way_by_parameters_16_servers() -> SyncQuestion:
    """Scalability in parameters, from 256 kB to 16 MB."""
    return SyncQuestion(
        logical=EVERY_WAY, physical=SIXTEEN, sizes=(256_000, 1_000_000, 4_000_000, 16_000_000), bandwidths=(5e9,),
        start_up_s=0.0, hop_latency_s=1e-6, levels=ALL_LEVELS, transports=("rdma", "tcp"),
    )  # fmt: skip


def every_way_by_bandwidth_16_servers(size_bytes: int = 4_000_000) -> SyncQuestion:
    """Scalability in bandwidth: 10, 40 and 100 Gbps."""
    return SyncQuestion(
        logical=EVERY_WAY, physical=SIXTEEN, sizes=(size_bytes,), bandwidths=(1.25e9, 5e9, 12.5e9), start_up_s=0.0,
        hop_latency_s=1e-6, levels=ALL_LEVELS, transports=("rdma", "tcp"),
    )  # fmt: skip


def hashed_paths_on_fat_tree_16_hosts(size_bytes: int = 4_000_000, seed: int = 0) -> SyncQuestion:
    """What hashing costs with packets: planned paths, sprayed packets and per-flow hashing."""
    return SyncQuestion(
        logical=("mesh", "ring", "hips"), physical=("fat-tree:4",), sizes=(size_bytes,), bandwidths=(5e9,), seed=seed,
        start_up_s=0.0, hop_latency_s=1e-6, levels=("flow", "wire", "packet"), routing=("dmodk", "spray", "murmur"),
        transports=("rdma", "rdma-pfc", "tcp"),
    )  # fmt: skip


def pauses_with_little_buffer_16_hosts(size_bytes: int = 4_000_000) -> SyncQuestion:
    """Pause frames with 1 MiB switches: fat-trees spread them, server-centric fabrics have none to spread."""
    return SyncQuestion(
        logical=("ps", "mesh", "hips"), physical=("fat-tree:4", "bcube:4,2"), sizes=(size_bytes,), bandwidths=(5e9,),
        start_up_s=0.0, hop_latency_s=1e-6, levels=("wire", "packet"), routing=("default", "ecmp"),
        transports=("rdma", "rdma-pfc"), packet=PacketOptions(buffer_bytes=1 << 20),
    )  # fmt: skip


def flows_against_packets_16_hosts(transport: str = "rdma") -> SyncQuestion:
    """When flows are enough: five collectives, four fabrics, messages from one packet to thousands."""
    return SyncQuestion(
        logical=EVERY_WAY, physical=(*SIXTEEN, "switch:16"), sizes=(16_000, 256_000, 4_000_000), bandwidths=(5e9,),
        start_up_s=0.0, hop_latency_s=1e-6, levels=("flow", "wire", "packet"), transports=(transport,),
    )  # fmt: skip


RECIPES = (
    every_way_on_fat_tree_bcube_torus_16_hosts,
    every_way_16_to_256_servers,
    every_way_by_parameters_16_servers,
    every_way_by_bandwidth_16_servers,
    hashed_paths_on_fat_tree_16_hosts,
    pauses_with_little_buffer_16_hosts,
    flows_against_packets_16_hosts,
)

HEADINGS = (
    "fabric", "routing", "collective", "size", "link", "transport", "closed", "flow", "wire", "packet", "flow off by",
    "wire off by", "pauses", "marks", "drops", "timeouts",
)  # fmt: skip


def lines(answer: SyncStudy) -> list[tuple[str, ...]]:
    """A line for every packet-level row, with what the other levels say instead and how far they are off."""
    return [_line(row, _beside(row, answer.rows)) for row in answer.rows if row.packet is not None]


def _beside(row: SyncRow, rows: tuple[SyncRow, ...]) -> dict[str, float]:
    """The times of the same combination at other levels."""
    same = [
        other
        for other in rows
        if (other.fabric, other.routing, other.logical, other.size_bytes, other.bandwidth)
        == (row.fabric, row.routing, row.logical, row.size_bytes, row.bandwidth)
        and other.transport in (None, row.transport)
    ]
    return {other.level: other.sync_time_s for other in same}


def _line(row: SyncRow, times: dict[str, float]) -> tuple[str, ...]:
    assert row.packet is not None
    return (
        row.fabric, row.routing, row.logical, show_size(row.size_bytes), show_bandwidth(row.bandwidth),
        row.transport or "",
        *(show_seconds(times[level]) if level in times else "–" for level in ALL_LEVELS),
        *(
            f"{100 * (times[level] / row.sync_time_s - 1):+.1f} %" if level in times else "–"
            for level in ("flow", "wire")
        ),
        *(f"{count:,}" for count in (row.packet.pauses, row.packet.marks, row.packet.drops, row.packet.timeouts)),
    )  # fmt: skip


def main(arguments: list[str]) -> None:
    known = {recipe.__name__: recipe for recipe in RECIPES}
    if not arguments or arguments[0] not in known:
        for name, recipe in known.items():
            print(f"{name}\n    {(recipe.__doc__ or '').splitlines()[0]}")
        sys.exit(0 if not arguments else 2)
    answer = sync.answer(
        known[arguments[0]](), lambda done, total, now: print(f"{done}/{total} {now}", file=sys.stderr)
    )
    for line in (HEADINGS, ("---",) * len(HEADINGS), *lines(answer)):
        print(f"| {' | '.join(line)} |")
    wanted = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    if "--page" in wanted:
        write_whole(Path(wanted["--page"]), sync_page(answer))
    if "--json" in wanted:
        write_whole(Path(wanted["--json"]), json.dumps([row.as_json() for row in answer.rows], indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
