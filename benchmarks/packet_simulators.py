"""How the other packet simulators are asked: csg-htsim and the RDMA fork of ns-3, each with files in a new folder."""

from __future__ import annotations

import re
import resource
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ropewalk.fabric import Fabric

Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Answer:
    """What a simulator said, and the CPU seconds it took."""

    makespan_us: float
    cpu_s: float


def _cpu_of(command: list[str], folder: Path) -> tuple[str, float]:
    """What a program printed, and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if finished.returncode:
        raise SystemExit(f"{command[0]} failed: {finished.stdout[-400:]} {finished.stderr[-400:]}")
    return finished.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ask_htsim(binary: Path, hosts: int, pairs: Pairs, size: float, gbps: int) -> Answer:
    """RoCE over lossless switches: line rate, pauses, no congestion control; 3-tier fat-tree, 1 us a link."""
    lines = [f"Nodes {hosts}", f"Connections {len(pairs)}"]
    lines += [f"{src}->{dst} id {at + 1} start 0 size {int(size)}" for at, (src, dst) in enumerate(pairs)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "flows.cm").write_text("\n".join(lines) + "\n")
        command = [
            str(binary), "-nodes", str(hosts), "-tm", "flows.cm", "-linkspeed", str(gbps * 1000), "-mtu", "1000",
            "-strat", "ecmp_host", "-paths", "128", "-end", "100000", "-q", "10000", "-pfc_thresholds", "12", "15",
            "-o", "log.dat",
        ]  # fmt: skip
        said, took = _cpu_of(command, folder)
    ends = [float(found) for found in re.findall(r"finished at ([0-9.]+)", said)]
    if len(ends) != len(pairs):
        raise SystemExit(f"htsim finished {len(ends)} of {len(pairs)} flows")
    return Answer(max(ends), took)


_CONFIG = """ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1
PACKET_PAYLOAD_SIZE 1000
TOPOLOGY_FILE topology.txt
FLOW_FILE flow.txt
TRACE_FILE trace.txt
TRACE_OUTPUT_FILE mix.tr
FCT_OUTPUT_FILE fct.txt
PFC_OUTPUT_FILE pfc.txt
SIMULATOR_STOP_TIME 4.00
CC_MODE 1
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
CLAMP_TARGET_RATE 0
RP_TIMER 300
EWMA_GAIN 0.00390625
FAST_RECOVERY_TIMES 1
RATE_AI 8Mb/s
RATE_HAI 80Mb/s
MIN_RATE 100Mb/s
DCTCP_RATE_AI 1000Mb/s
ERROR_RATE_PER_LINK 0.0000
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
L2_BACK_TO_ZERO 0
HAS_WIN 0
GLOBAL_T 1
VAR_WIN 0
FAST_REACT 0
U_TARGET 0.95
MI_THRESH 0
INT_MULTI 1
MULTI_RATE 0
SAMPLE_FEEDBACK 0
PINT_LOG_BASE 1.05
PINT_PROB 1.0
RATE_BOUND 1
ACK_HIGH_PRIO 1
LINK_DOWN 0 0 0
ENABLE_TRACE 0
KMAX_MAP 1 40000000000 640
KMIN_MAP 1 40000000000 160
PMAX_MAP 1 40000000000 0.2
BUFFER_SIZE 12
QLEN_MON_FILE qlen.txt
QLEN_MON_START 2000000000
QLEN_MON_END 2000000001
"""
"""DCQCN with the constants that are our defaults."""


def ask_ns3(binary: Path, fabric: Fabric, pairs: Pairs, size: float) -> Answer:
    """RDMA with DCQCN on the very links of a fabric of 40 Gbps."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        cables = range(0, fabric.links, 2)
        rows = [
            f"{fabric.nodes} {fabric.switches} {len(cables)}",
            " ".join(map(str, range(fabric.hosts, fabric.nodes))),
        ]
        for link in cables:
            ends = f"{fabric.link_src[link]} {fabric.link_dst[link]}"
            rows.append(f"{ends} {fabric.bandwidth[link] * 8e-9:g}Gbps {fabric.latency[link] * 1e6:g}us 0")
        (folder / "topology.txt").write_text("\n".join(rows) + "\n")
        flows = [f"{src} {dst} 3 100 {int(size)} 2" for src, dst in pairs]
        (folder / "flow.txt").write_text(f"{len(flows)}\n" + "\n".join(flows) + "\n")
        (folder / "trace.txt").write_text("0\n\n")
        (folder / "config.txt").write_text(_CONFIG)
        _, took = _cpu_of([str(binary), "config.txt"], folder)
        ends_ns = [int(line.split()[6]) for line in (folder / "fct.txt").read_text().splitlines()]
    if len(ends_ns) != len(pairs):
        raise SystemExit(f"ns-3 finished {len(ends_ns)} of {len(pairs)} flows")
    return Answer(max(ends_ns) / 1000, took)
