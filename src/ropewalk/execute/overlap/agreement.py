"""Ranks find out before a training begins whether they have the same plan; otherwise they would wait for ever."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ropewalk.errors import StrategyError
from ropewalk.execute.overlap.order import CommunicationOrder


def check_agreement(order: CommunicationOrder, group: Any) -> None:
    """Refuse, on all ranks, orders that are not the same on all of them, and name the first difference."""
    import torch.distributed as dist

    document = order.document()
    digest = hashlib.sha256(json.dumps(document).encode()).hexdigest()
    digests: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(digests, digest, group=group)
    if len(set(digests)) == 1:
        return
    documents: list[Any] = [None] * len(digests)
    dist.all_gather_object(documents, document, group=group)
    rank = next(rank for rank, other in enumerate(digests) if other != digests[0])
    raise StrategyError(
        f"ranks 0 and {rank} have different plans: {difference(documents[0], documents[rank])}; give all ranks the "
        "same file"
    )


def difference(one: Any, other: Any, path: str = "") -> str:
    """Where two documents differ first.

    >>> difference({"barrier": True, "launches": [[1, 2]]}, {"barrier": True, "launches": [[1, 3]]})
    'launches 0, 1 is 2 at one and 3 at the other'
    """
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = [(f"{path} {key}".strip(), one[key], other[key]) for key in one]
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return f"{path} has {len(one)} parts at one and {len(other)} at the other"
        pairs = [(_deeper(path, at), *both) for at, both in enumerate(zip(one, other, strict=True))]
    else:
        return f"{path} is {json.dumps(one)} at one and {json.dumps(other)} at the other"
    deeper, left, right = next(pair for pair in pairs if pair[1] != pair[2])
    return difference(left, right, deeper)


def _deeper(path: str, at: int) -> str:
    return f"{path}, {at}" if path[-1:] in tuple("0123456789") else f"{path} {at}"
