"""What ranks do in the tests of planned orders: train the same small models by PyTorch's DDP and by an order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ropewalk.errors import StrategyError
from ropewalk.execute.overlap import CommunicationOrder, schedule
from ropewalk.execute.overlap.layer_times import LayerTimes, measured_layers
from ropewalk.execute.overlap.trial import _groups, join
from ropewalk.lab.namespaces import Namespace
from ropewalk.lab.network import interface

STEPS = 4


class Attention(nn.Module):
    """Uses the weights of `out_proj` without ever calling it, as PyTorch's attention does."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(6, 8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.read = nn.Linear(8, 1)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        rows = self.embed(given)[:, None, :].expand(-1, 3, -1)
        return self.read(self.attend(rows, rows, rows, need_weights=False)[0][:, 0])


class Tied(nn.Module):
    """One layer that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = nn.Linear(6, 6)
        self.read = nn.Linear(6, 1)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return self.read(torch.tanh(self.twice(torch.tanh(self.twice(given)))))


def uneven() -> nn.Module:
    """Convolutions in another memory layout, and a last layer that is larger than all others together."""
    convolutions = nn.Sequential(nn.Conv1d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv1d(4, 3, 3, padding=1))
    return nn.Sequential(nn.Unflatten(1, (1, 6)), convolutions, nn.Flatten(), nn.Linear(18, 40), nn.Linear(40, 1))


MODELS: dict[str, Callable[[], nn.Module]] = {"uneven": uneven, "attention": Attention, "tied": Tied}
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
}


def made(name: str, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return MODELS[name]()


def _data(step: int, part: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    numbers = torch.Generator().manual_seed(1000 * step + 100 * part + dist.get_rank())
    return torch.randn(5, 6, generator=numbers), torch.randn(5, 1, generator=numbers)


def _loss(model: nn.Module, step: int, part: int = 0) -> torch.Tensor:
    given, wanted = _data(step, part)
    return nn.functional.mse_loss(model(given), wanted)


def _numbers(values: dict[str, torch.Tensor]) -> dict[str, list[float]]:
    return {name: value.detach().double().flatten().tolist() for name, value in values.items()}


def trained_by_ddp(model: str, optimizer: str, halve: bool = False, parts: int = 1) -> list[dict[str, list[float]]]:
    """Weights behind the last step, and the averaged gradients of the last step."""
    net = made(model)
    wrapped = DistributedDataParallel(net)
    update = OPTIMIZERS[optimizer](net.parameters())
    for step in range(STEPS):
        update.zero_grad()
        for part in range(parts - 1):
            with wrapped.no_sync():
                _loss(wrapped, step, part).backward()
        _loss(wrapped, step, parts - 1).backward()
        update.step()
        if halve:
            for group in update.param_groups:
                group["lr"] /= 2
    return [_numbers(dict(net.named_parameters())), _numbers({n: p.grad for n, p in net.named_parameters()})]


def trained_by_order(
    model: str, optimizer: str, order: CommunicationOrder, halve: bool = False, parts: int = 1
) -> list[dict[str, list[float]]]:
    """The same by an order; every rank begins with weights of its own, which must not matter."""
    net = made(model, seed=dist.get_rank())
    last: dict[str, torch.Tensor] = {}
    names = {id(parameter): name for name, parameter in net.named_parameters()}

    def watched(parameters: list[torch.Tensor]) -> Any:
        made = OPTIMIZERS[optimizer](parameters)
        made.register_step_pre_hook(lambda *_: last.update({names[id(parameters[0])]: parameters[0].grad.clone()}))
        return made

    scheduled = schedule(net, watched, order)
    for step in range(STEPS):
        for part in range(parts - 1):
            with scheduled.no_sync():
                _loss(net, step, part).backward()
        _loss(net, step, parts - 1).backward()
        net.zero_grad()  # must not harm what is on its way
        if halve:
            for one in scheduled.optimizers.values():
                for group in one.param_groups:
                    group["lr"] /= 2
    weights = _numbers(net.state_dict())  # finishes by itself
    scheduled.close()
    return [{name: weights[name] for name in names.values()}, _numbers(last)]


def elements(model: str) -> dict[str, int]:
    return {name: parameter.numel() for name, parameter in made(model).named_parameters()}


def layers_seen(model: str) -> LayerTimes:
    """What the clock says about a model; the data of step 0."""
    return measured_layers(made(model), lambda net: _loss(net, 0), OPTIMIZERS["sgd"], runs=2)


def buckets_of_ddp(model: str, keywords: dict[str, Any]) -> list[list[str]]:
    """The parameters of every bucket, bucket by bucket, when buckets have been made anew."""
    net = made(model)
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    wrapped = DistributedDataParallel(net, **keywords)
    seen: list[list[str]] = []

    def look(state: Any, bucket: Any) -> Any:
        seen.append([names[id(parameter)] for parameter in bucket.parameters()])
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda done: done.value()[0])

    look.__annotations__.clear()  # DistributedDataParallel refuses any that are not its own types
    wrapped.register_comm_hook(None, look)
    for step in range(3):
        seen.clear()
        _loss(wrapped, step).backward()
    return seen


def one_part_unused(order: CommunicationOrder) -> str:
    """Two steps of a model whose first layer is not used in the loss."""
    net = made("tied")
    scheduled = schedule(net, OPTIMIZERS["sgd"], order)
    net.read(torch.ones(2, 6)).sum().backward()
    try:
        scheduled.finish()
    except StrategyError as refusal:
        return str(refusal)
    return "finished"


def two_gradients(order: CommunicationOrder) -> str:
    """Two backward passes in one step."""
    net = made("tied")
    schedule(net, OPTIMIZERS["sgd"], order)
    loss = _loss(net, 0)
    loss.backward(retain_graph=True)
    try:
        loss.backward()
    except StrategyError as refusal:
        return str(refusal)
    return "accepted"


def broken_network(order: CommunicationOrder) -> list[str]:
    """What those who wait are told when the backend fails: about gradients under way, and about all later ones."""
    net = made("tied")
    scheduled = schedule(net, OPTIMIZERS["sgd"], order)
    working, told = dist.all_reduce, []

    def broken(*_: Any, **__: Any) -> None:
        raise ConnectionError("the cable is cut")

    dist.all_reduce = broken
    try:
        _loss(net, 0).backward()
        for _ in range(2):
            try:
                scheduled.finish()
            except ConnectionError as problem:
                told.append(str(problem))
    finally:
        dist.all_reduce = working
    return told


def weights_in_evaluation(order: CommunicationOrder) -> bool:
    """Is what a model answers right behind a step, and its parameters behind `close`, those of an updated model?"""
    net = made("uneven")
    scheduled = schedule(net, OPTIMIZERS["sgd"], order)
    _loss(net, 0).backward()
    net.eval()
    given, _ = _data(1)
    with torch.no_grad():
        early = net(given)
    scheduled.close()
    again = net(given)
    _loss(net, 1).backward()  # nothing of the schedule is left: gradients stay where PyTorch puts them
    return torch.equal(early, again) and all(parameter.grad is not None for parameter in net.parameters())


def sum_over(place: Namespace, elements: int) -> tuple[float, float, int]:
    """The sum of ranks over slow links, the bytes that this rank sent there meanwhile, and segments sent again."""
    join(place)
    cable = interface(place.node)  # the only one of a host on one switch
    before, again = _sent(cable), _sent_again()
    numbers = torch.full((elements,), float(dist.get_rank()))
    dist.all_reduce(numbers, group=_groups["slow"])
    dist.barrier(group=_groups["slow"])  # a rank that has its sum may still owe its neighbour the last bytes
    return float(numbers.sum()) / elements, _sent(cable) - before, _sent_again() - again


def _sent(interface: str) -> float:
    with open("/proc/thread-self/net/dev", encoding="ascii") as lines:
        counts = next(line for line in lines if line.strip().startswith(interface))
    return float(counts.split(":")[1].split()[8])


def _sent_again() -> int:
    """Segments that TCP has sent more than once: on a busy machine, acknowledgements come late."""
    with open("/proc/thread-self/net/snmp", encoding="ascii") as lines:
        names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])
