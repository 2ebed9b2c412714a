"""What ranks do in the tests of streamed all-reduce: train on gradients that each can work out for all others."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from ropewalk.errors import RopewalkError
from ropewalk.execute.overlap import (
    CommunicationOrder,
    Piece,
    Scheduled,
    Stream,
    fused,
    group_links,
    schedule,
    socket_links,
)
from ropewalk.execute.overlap.stream.layout import BufferLayout
from ropewalk.execute.overlap.stream.ring import RingPlace
from ropewalk.execute.overlap.stream.turn_lane import TurnLane

SIZES = {"first": 37, "second": 3, "third": 101, "fourth": 1, "fifth": 64}
PATIENCE_S = 300.0
"""Before a rank on a busy machine is taken for lost."""
LINKS: dict[str, Callable[[Any], Any]] = {"sockets": socket_links, "group": group_links}


class Leaves(nn.Module):
    """Parameters whose gradients are whatever is given."""

    def __init__(self) -> None:
        super().__init__()
        for name, size in SIZES.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(size)))

    def forward(self, gradients: dict[str, torch.Tensor]) -> torch.Tensor:
        """A loss whose backward pass reaches parameters from the last given one to the first."""
        return sum((getattr(self, name) * one).sum() for name, one in gradients.items())  # type: ignore[return-value]


class Descent:
    """The optimizer of one parameter, which keeps its last gradient; PyTorch's own take seconds to be imported."""

    def __init__(self, parameters: list[Any]) -> None:
        self.param_groups = [{"params": parameters, "lr": 1.0}]
        self.last: Any = None

    def step(self) -> None:
        for parameter in self.param_groups[0]["params"]:
            self.last = parameter.grad.clone()
            with torch.no_grad():
                parameter.sub_(parameter.grad)


def chunked(seed: int, **settings: Any) -> CommunicationOrder:
    """Tensors in any order, cut anywhere, some of them with others in a chunk."""
    chance = random.Random(seed)
    pieces = []
    for name in chance.sample(sorted(SIZES), len(SIZES)):
        cuts = sorted({0, SIZES[name], *(chance.randrange(SIZES[name]) for _ in range(2))})
        pieces += [Piece(name, start, stop) for start, stop in pairwise(cuts)]
    if seed % 2:
        chance.shuffle(pieces)
    launches = [fused(*pieces[at : at + 2]) for at in range(0, len(pieces), 2)]
    return CommunicationOrder(tuple(launches), **{"stream": Stream(), **settings})


def in_turn(seed: int, ranks: int) -> CommunicationOrder:
    """The same with messages in any one order."""
    order = chunked(seed)
    sequence = [chunk for chunk in range(len(order.launches)) for _ in range(2 * (ranks - 1))]
    random.Random(seed).shuffle(sequence)
    return replace(order, stream=Stream(sequence=tuple(sequence)))


def _gradient(step: int, rank: int, name: str) -> torch.Tensor:
    chance = torch.Generator().manual_seed(7919 * step + 31 * rank + sorted(SIZES).index(name))
    return torch.randn(SIZES[name], generator=chance) * 10.0 ** (rank - 2)


def _ring_sum(order: CommunicationOrder, step: int, ranks: int) -> dict[str, torch.Tensor]:
    """Every chunk added up shard by shard in the order of ranks, by nothing but additions."""
    averages = {name: torch.empty(size) for name, size in SIZES.items()}
    for chunk in BufferLayout(order).chunks:
        given = [
            torch.cat([_gradient(step, rank, one.tensor)[one.start : one.stop] * (1.0 / ranks) for one in chunk.pieces])
            for rank in range(ranks)
        ]
        total = torch.empty(chunk.elements)
        for shard in range(ranks):
            begin, end = RingPlace(ranks, 0).bounds(chunk.elements, shard)
            part = given[shard][begin:end]
            for further in range(1, ranks):
                part = part + given[(shard + further) % ranks][begin:end]
            total[begin:end] = part
        for piece, part in zip(chunk.pieces, total.split([one.elements for one in chunk.pieces]), strict=True):
            averages[piece.tensor][piece.start : piece.stop] = part
    return averages


def steps_with_the_bits_of_a_ring_sum(ranks: int, links: str, order: CommunicationOrder, steps: int) -> int | None:
    """Steps in which all averages were those of a plain ring sum, bit for bit; None for a rank that takes no part.

    Gradients appear in another order on every rank, and one rank is slower than the others.
    """
    group = dist.new_group(list(range(ranks)))
    if dist.get_rank() >= ranks:
        return None
    module, chance = Leaves(), random.Random(dist.get_rank())
    if links == "in turn":
        lane = TurnLane(order, group, module.first)
        scheduled = Scheduled(module, dict(module.named_parameters()), Descent, order, lane)
    else:
        scheduled = schedule(module, Descent, order, group, links=LINKS[links], timeout_s=PATIENCE_S)
    right = 0
    for step in range(steps):
        order_here = chance.sample(sorted(SIZES), len(SIZES))
        loss = module({name: _gradient(step, dist.get_rank(), name) for name in order_here})
        if dist.get_rank() == step % 3:
            time.sleep(0.002)
        loss.backward()
        scheduled.finish()
        expected = _ring_sum(order, step, ranks)
        right += all(torch.equal(scheduled.optimizers[name].last, expected[name]) for name in SIZES)
    scheduled.close()
    return right


def plans_that_differ(links: str) -> str:
    """What ranks are told whose plans are not the same."""
    order = chunked(0, barrier=dist.get_rank() == 1)
    try:
        schedule(Leaves(), Descent, order, links=LINKS[links])
    except RopewalkError as refusal:
        return str(refusal)
    return "accepted"


def one_rank_is_killed(rank: int, ranks: int, links: str, killed: int, meeting: str) -> None:
    """In a process of its own: a rank ends in the middle of a training, the others print what they are told."""
    dist.init_process_group("gloo", store=dist.FileStore(meeting, ranks), rank=rank, world_size=ranks)
    module = Leaves()
    schedule(module, Descent, chunked(0), links=LINKS[links], timeout_s=PATIENCE_S)
    try:
        for step in range(100):
            if step == 3 and rank == killed:
                os.kill(os.getpid(), signal.SIGKILL)
            module({name: _gradient(step, rank, name) for name in SIZES}).backward()
    except RopewalkError as problem:
        print(problem, flush=True)
    # All others are told first: not by the end of this process.
    Path(f"{meeting}.{rank}").touch()
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not all(
        Path(f"{meeting}.{other}").exists() for other in {*range(ranks)} - {killed}
    ):
        time.sleep(0.02)
    os._exit(0)


def one_rank_stands_still(links: str, still: int, told: str) -> str:
    """What the others are told when a rank neither ends nor goes on before it sees that file."""
    module = Leaves()
    scheduled = schedule(module, Descent, chunked(0), links=LINKS[links], timeout_s=1.0)
    if dist.get_rank() == still:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and not Path(told).exists():
            time.sleep(0.02)
        return "slept"
    try:
        module({name: _gradient(0, dist.get_rank(), name) for name in SIZES}).backward()
        scheduled.finish()
    except RopewalkError as problem:
        return str(problem)
    finally:
        Path(told).touch()
    return "trained"
