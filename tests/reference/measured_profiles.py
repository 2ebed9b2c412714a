"""The V100 profiles that DAPPLE and PipeDream published, as workloads: numbers alone, layers by number.

`tests/data/pipeline_profiles.json` has what both planners keep of a profile; loading of data and results that nobody
reads are left out as they leave them out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from antichains import antichain_profile

from ropewalk.pipeline.released import States
from ropewalk.workload.opaque import Measured
from ropewalk.workload.workload import Layer, Workload

DATA = Path(__file__).parent.parent / "data" / "pipeline_profiles.json"
FLOAT_BYTES = 4


@dataclass(frozen=True)
class Published:
    """A profile and what stands in its file besides."""

    workload: Workload
    nodes: int
    left_out_forward_ms: float


@cache
def published(name: str) -> Published:
    """The profile of this name: `vgg-19`, `bert-48`, …"""
    found = json.loads(DATA.read_text())[name]
    columns = (found[key] for key in ("forward_ms", "backward_ms", "activation_bytes", "parameter_bytes", "reads"))
    layers = tuple(
        Layer(
            f"layer {number}",
            (Measured(forward / 1e3, backward / 1e3, round(weights / FLOAT_BYTES), activation),),
            round(activation / FLOAT_BYTES),
            tuple(reads),
        )
        for number, (forward, backward, activation, weights, reads) in enumerate(zip(*columns, strict=True))
    )
    return Published(Workload(name, layers, found["batch"] or 64), found["nodes"], found["left_out_forward_ms"])


@cache
def states(name: str) -> States:
    """Its antichain states."""
    return antichain_profile(published(name).workload)
