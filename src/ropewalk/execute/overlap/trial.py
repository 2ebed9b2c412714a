"""What the processes of a measured run do: move onto slow links, look at the clock, train one way or another.

Steps are timed from one backward pass to the next, as plans count them. The functions are called in the processes of
`LocalRanks`; the group that they make on the slow links stays for the next call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from ropewalk.execute.overlap.layer_times import LayerTimes, measured_layers
from ropewalk.execute.overlap.link_times import LinkTimes, measured_all_reduces
from ropewalk.execute.overlap.order import CommunicationOrder
from ropewalk.execute.overlap.scheduled import schedule

Make = Callable[[], tuple[Any, Callable[[Any], Any]]]
"""-> a module, and a function from it to the loss of a batch."""

_groups: dict[str, Any] = {}


class LinkPlace(Protocol):
    """Where the links of a rank are, such as a host of a lab."""

    def enter(self) -> None:
        """Move the calling thread there."""
        ...


def join(place: LinkPlace) -> None:
    """Move this process onto its slow links and make the group of all ranks there."""
    import torch.distributed as dist

    place.enter()
    _groups["slow"] = dist.new_group(backend="gloo")
    dist.barrier(_groups["slow"])


def joined() -> Any:
    """The group of all ranks on the slow links."""
    return _groups["slow"]


def look_at_links(window: int) -> LinkTimes:
    return measured_all_reduces(joined(), window=window)


def look_at_layers(make: Make, runs: int) -> LayerTimes:
    """All ranks compute at once, as in training, and begin together."""
    import torch.distributed as dist

    module, loss = made(make)
    dist.barrier(joined())
    return measured_layers(module, loss, sgd, runs=runs)


def train_by_ddp(make: Make, steps: int, settings: dict[str, Any]) -> list[float]:
    """Seconds of every step but the first two, in which buckets are made anew."""
    from torch.nn.parallel import DistributedDataParallel

    module, loss = made(make)
    wrapped = DistributedDataParallel(module, process_group=joined(), gradient_as_bucket_view=True, **settings)
    return _train(wrapped, loss, steps)


def train_by_order(make: Make, steps: int, order: CommunicationOrder) -> list[float]:
    """The same in a planned order."""
    module, loss = made(make)
    scheduled = schedule(module, sgd, order, joined())
    taken = seconds_of_steps(lambda: loss(module), steps)
    scheduled.close()
    return taken


def seconds_of_steps(loss: Callable[[], Any], steps: int) -> list[float]:
    """Seconds of steps of a scheduled module, whose updates are part of its forward passes."""

    def step() -> None:
        value = loss()
        marks.append(time.perf_counter())
        value.backward()

    marks: list[float] = []
    return _between_marks(step, steps, marks)


def train_alone(make: Make, steps: int) -> list[float]:
    """Without any communication: what no order can beat."""
    return _train(*made(make), steps)


def _train(module: Any, loss: Callable[[Any], Any], steps: int) -> list[float]:
    """Seconds of the steps of a module that updates all its parameters behind every backward pass."""
    optimizer = sgd(list(module.parameters()))

    def step() -> None:
        value = loss(module)
        marks.append(time.perf_counter())
        value.backward()
        optimizer.step()
        optimizer.zero_grad()

    marks: list[float] = []
    return _between_marks(step, steps, marks)


_WARM_UP = 2


def _between_marks(step: Callable[[], None], steps: int, marks: list[float]) -> list[float]:
    import torch.distributed as dist

    dist.barrier(joined())
    for _ in range(_WARM_UP + steps + 1):
        step()
    return [after - before for before, after in zip(marks[_WARM_UP:], marks[_WARM_UP + 1 :], strict=False)]


def made(make: Make) -> tuple[Any, Callable[[Any], Any]]:
    import torch

    torch.manual_seed(0)
    return make()


def sgd(parameters: list[Any]) -> Any:
    import torch

    return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9)
