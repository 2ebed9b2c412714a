"""A fusion plan as settings of PyTorch's DistributedDataParallel: one cap for each bucket.

DistributedDataParallel takes no groups, only caps. It fills buckets greedily in the order in which gradients became
ready in its first step, and a tensor that brings a bucket to its cap closes it. So a cap of exactly the bytes of a
planned group closes its bucket at the planned place, if gradients become ready in the planned order. `buckets_of_caps`
does what DistributedDataParallel does, and settings are only handed out when it gives the planned groups. In a training
a communication hook sees the real ones: `GradBucket.parameters()`.

Caps for single buckets (`bucket_cap_mb_list`) exist since PyTorch 2.13. Buckets are launched in order and the step
waits for all of them: what needs another order needs `ropewalk.execute.overlap`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from pprint import pformat
from typing import Any

from ropewalk.errors import Findings, StrategyError
from ropewalk.files import write_whole
from ropewalk.overlap.groups import Groups
from ropewalk.overlap.tensors import Tensors

MIB = 1 << 20


@dataclass(frozen=True)
class DdpSettings:
    """Keywords for DistributedDataParallel, and the buckets that they make."""

    caps_bytes: tuple[int, ...]
    buckets: tuple[tuple[str, ...], ...]
    """Parameters by bucket, in the order in which their gradients are ready."""

    @property
    def keywords(self) -> dict[str, Any]:
        """What is given to DistributedDataParallel besides the module: caps in MiB, which are exact fractions."""
        return {
            "bucket_cap_mb_list": [cap / MIB for cap in self.caps_bytes],
            "gradient_as_bucket_view": True,
        }

    def json(self) -> str:
        return json.dumps({"keywords": self.keywords, "buckets": self.buckets}, indent=1) + "\n"

    def python(self) -> str:
        """A module with the settings: `DistributedDataParallel(module, **KEYWORDS)`."""
        return (
            '"""Settings of DistributedDataParallel (PyTorch 2.13 or newer), and the buckets that they make."""\n\n'
            f"KEYWORDS = {pformat(self.keywords, sort_dicts=False, width=100)}\n\n"
            f"BUCKETS = {pformat(self.buckets, width=100)}\n"
        )

    def write(self, path: str | Path) -> None:
        """As JSON, or as Python where the name of the file ends so."""
        write_whole(path, self.python() if Path(path).suffix == ".py" else self.json())


def ddp_settings(tensors: Tensors, groups: Groups) -> DdpSettings:
    """Caps that make the buckets of a plan, whose groups follow the order in which gradients are ready.

    >>> from ropewalk.overlap.tensors import from_layers
    >>> three = from_layers([8, 4, 4], backward_s=[1] * 3, forward_s=[1] * 3, names=("a", "b", "c"))
    >>> ddp_settings(three, Groups.cut(three.in_ready_order, [2, 3])).buckets
    (('c', 'b'), ('a',))
    """
    order = [int(tensor) for tensor in tensors.in_ready_order]
    names, sizes = [tensors.names[at] for at in order], [float(tensors.size_bytes[at]) for at in order]
    _check(tensors, groups, order, sizes)
    caps = tuple(round(sum(float(tensors.size_bytes[at]) for at in group)) for group in groups.members)
    made = buckets_of_caps([round(size) for size in sizes], caps)
    buckets = tuple(tuple(names[at] for at in bucket) for bucket in made)
    planned = tuple(tuple(names[at] for at in range(*span)) for span in _spans(groups))
    if buckets != planned:
        raise StrategyError(f"caps {caps} give the buckets {buckets} instead of {planned}: plan other groups")
    return DdpSettings(caps, buckets)


def buckets_of_caps(size_bytes: Sequence[int], caps_bytes: Sequence[int]) -> list[list[int]]:
    """The buckets that DistributedDataParallel makes of gradients of one type in the order in which they are ready.

    The last cap holds for all further buckets; a bucket is closed by the tensor that brings it to its cap.

    >>> buckets_of_caps([12, 8, 8, 4], [4, 16])
    [[0], [1, 2], [3]]
    """
    if not caps_bytes or min(caps_bytes) <= 0:
        raise StrategyError(f"caps of buckets {list(caps_bytes)} cannot be filled: give one positive cap or more")
    buckets: list[list[int]] = []
    open_bucket: list[int] = []
    filled = 0
    for tensor, size in enumerate(size_bytes):
        open_bucket.append(tensor)
        filled += size
        if filled >= caps_bytes[min(len(buckets), len(caps_bytes) - 1)]:
            buckets.append(open_bucket)
            open_bucket, filled = [], 0
    return [*buckets, open_bucket] if open_bucket else buckets


def _spans(groups: Groups) -> list[tuple[int, int]]:
    ends = [0, *groups.ends.tolist()]
    return list(pairwise(ends))


def _check(tensors: Tensors, groups: Groups, order: list[int], sizes: list[float]) -> None:
    findings = Findings(StrategyError, f"buckets of {tensors.model}")
    if groups.tensors != len(tensors):
        findings.add(f"{groups.tensors} tensors are grouped, but there are {len(tensors)}: list every tensor once")
    elif any({*groups.members[at]} != {*order[first:last]} for at, (first, last) in enumerate(_spans(groups))):
        findings.add(
            "groups do not follow the order in which gradients are ready, in which DistributedDataParallel fills "
            "buckets: plan groups of neighbours, or run the plan by ropewalk.execute.overlap"
        )
    if any(size < 1 or size != round(size) for size in sizes):
        findings.add("a tensor has no bytes or a part of one: leave it out, for it cannot close a bucket")
    findings.raise_if_any()
