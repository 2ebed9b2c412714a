"""Advice for NCCL that needs no file but the environment: which algorithms to allow, where the files are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ropewalk.export.nccl.tuner import TunerRow

PLUGIN = "libnccl-tuner-example.so"
"""The plugin that NVIDIA publishes with NCCL, which reads the table."""


def algorithm_advice(rows: Sequence[TunerRow]) -> list[str]:
    """Variables that keep NCCL to the algorithms and protocols of a table, whatever the size.

    >>> algorithm_advice([TunerRow("allreduce", 0, 9, "tree", "ll"), TunerRow("allreduce", 10, 99, "ring", "simple")])
    ['NCCL_ALGO=allreduce:tree,ring', 'NCCL_PROTO=allreduce:ll,simple']
    """
    if not rows:
        return []
    lines = []
    for variable, column in (("NCCL_ALGO", "algorithm"), ("NCCL_PROTO", "protocol")):
        allowed: dict[str, dict[str, None]] = {}
        for row in rows:
            allowed.setdefault(row.collective, {})[getattr(row, column).replace("_", "")] = None
        parts = [f"{name}:{','.join(values)}" for name, values in allowed.items()]
        # A shell would end the line at a semicolon.
        lines.append(f"{variable}={parts[0]}" if len(parts) == 1 else f'{variable}="{";".join(parts)}"')
    return lines


def tuner_advice(path: str | Path) -> list[str]:
    """Variables that make NCCL follow a table, size by size."""
    return [f"NCCL_TUNER_PLUGIN={PLUGIN}", f"NCCL_TUNER_CONFIG_FILE={path}"]


def graph_advice(path: str | Path, channels: int) -> list[str]:
    """Variables that make NCCL run the rings of a graph file: all of them, and nothing but rings."""
    return [
        f"NCCL_GRAPH_FILE={path}",
        "NCCL_ALGO=ring",
        f"NCCL_MIN_NCHANNELS={channels}",
        f"NCCL_MAX_NCHANNELS={channels}",
    ]
