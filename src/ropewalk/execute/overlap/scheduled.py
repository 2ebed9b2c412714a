"""A module whose gradients are averaged in a planned order, while the backward and the next forward pass run.

    scheduled = schedule(model, lambda parameters: torch.optim.SGD(parameters, lr=0.1), order)
    for batch, target in data:
        loss_of(model(batch), target).backward()
    scheduled.finish()

There is no `optimizer.step()`: each parameter has an optimizer of its own, which is applied when the forward pass
reaches the module that needs the parameter and its average has arrived. So a step has no barrier: the first modules
compute while gradients of the last ones are still on their way (the dependency proxy of ByteScheduler, Peng et al.,
SOSP 2019), and the order is fixed beforehand (Bao et al., INFOCOM 2020), so that ranks cannot disagree about it.

What it does not do: optimizers that look at all parameters at once (clipping by the norm of all gradients), and
buffers, which are only equal at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

from ropewalk.errors import Findings, StrategyError
from ropewalk.execute.overlap.agreement import check_agreement
from ropewalk.execute.overlap.holder import holder
from ropewalk.execute.overlap.lane import Carrier, Flight, GradientLane, Group, Tensor
from ropewalk.execute.overlap.order import CommunicationOrder
from ropewalk.execute.overlap.stream.group import group_links
from ropewalk.execute.overlap.stream.lane import StreamLane
from ropewalk.execute.overlap.stream.links import RingLinks
from ropewalk.execute.overlap.stream.turn_lane import TurnLane
from ropewalk.execute.torch_extra import require_torch
from ropewalk.words import listed

Module = Any
Optimizer = Any
OptimizerFactory = Callable[[list[Any]], Any]
"""A list of parameters -> a torch.optim.Optimizer for them."""
MakeLinks = Callable[[Any], RingLinks]
"""A process group -> the links of this rank in a ring of its ranks; all of them call it."""


def schedule(
    module: Module,
    optimizer_factory: OptimizerFactory,
    plan: CommunicationOrder,
    process_group: Group = None,
    *,
    links: MakeLinks = group_links,
    timeout_s: float = 300.0,
    add_bytes_per_s: float = inf,
) -> Scheduled:
    """Average the gradients of a module in the planned order from now on, and update its parameters as they arrive.

    All ranks call it with the same plan, and refuse plans that differ. Parameters and buffers become those of the first
    rank. Without a process group one of all processes is made, so that other communication cannot come in between; a
    group that is given must be used for nothing else. A plan that streams runs over `links`, those of the group or
    `socket_links`, and on GPUs over the group in one sequence of messages. A rank that is silent for `timeout_s` ends
    the training of the others with an error.
    `add_bytes_per_s` slows adding down, to see what that costs.
    """
    require_torch()
    import torch.distributed as dist

    trained = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    _check(trained)
    plan.check_against({name: parameter.numel() for name, parameter in trained.items()})
    group = dist.new_group() if process_group is None else process_group
    check_agreement(plan, group)
    first = dist.get_global_rank(group, 0)
    for tensor in (*module.parameters(), *module.buffers()):
        dist.broadcast(tensor.detach(), first, group=group)
    like = next(iter(trained.values()))
    if plan.stream is None:
        return Scheduled(module, trained, optimizer_factory, plan, GradientLane(plan, group, like.device))
    if like.is_cuda:
        lane = TurnLane(plan, group, like, timeout_s=timeout_s)
        return Scheduled(module, trained, optimizer_factory, plan, lane)
    made = StreamLane(plan, links(group), like, timeout_s=timeout_s, add_bytes_per_s=add_bytes_per_s)
    return Scheduled(module, trained, optimizer_factory, plan, made)


class Scheduled:
    """A module under a planned order; made by `schedule`."""

    def __init__(
        self,
        module: Module,
        trained: dict[str, Any],
        optimizer_factory: OptimizerFactory,
        plan: CommunicationOrder,
        lane: Carrier,
    ) -> None:
        self.module = module
        self.plan = plan
        self.optimizers: dict[str, Optimizer] = {name: optimizer_factory([one]) for name, one in trained.items()}
        """By parameter. What is set in them between two steps (a learning rate) holds from the next gradient on."""
        self._trained = trained
        self._lane = lane
        self._flights: dict[str, Flight] = {}
        self._asked: dict[str, list[dict[str, Any]]] = {}
        self._entered: set[str] = set()
        self._called: set[str] = set()
        self._sync = True
        names = {id(one): name for name, one in trained.items()}
        self._homes: dict[str, set[str]] = {name: set() for name in trained}
        """The modules that hold each parameter; tied ones have several."""
        self._waits: dict[str, list[str]] = {place: [] for place, _ in module.named_modules()}
        """The parameters that each module waits for before it runs."""
        for place, child in module.named_modules():
            for parameter in child.parameters(recurse=False):
                if id(parameter) in names:
                    self._homes[names[id(parameter)]].add(place)
                    self._waits[place].append(names[id(parameter)])
        self._handles = [
            *(child.register_forward_pre_hook(self._before(place)) for place, child in module.named_modules()),
            *(one.register_post_accumulate_grad_hook(self._behind(name)) for name, one in trained.items()),
            module.register_state_dict_pre_hook(lambda *_: self.finish()),
        ]

    def finish(self) -> None:
        """Wait for everything that is on its way and apply it: before weights are read, saved or compared."""
        self._apply(list(self._flights))

    def close(self) -> None:
        """Finish, and leave the module as it was found."""
        self.finish()
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._lane.close()

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes in here only add to the gradients; the first one behind it averages their sum."""
        self._sync = False
        try:
            yield
        finally:
            self._sync = True

    def _before(self, place: str) -> Callable[..., None]:
        import torch

        waits = self._waits[place]

        def wait_for_parameters(module: Module, inputs: Any) -> None:
            self._called.add(place)
            if not self._flights:
                return
            # Where nothing is trained, modules may run without being called one by one, on weights that must be new.
            whole = place == "" and (self.plan.barrier or not module.training or not torch.is_grad_enabled())
            self._apply(list(self._flights) if whole else [name for name in waits if name in self._flights])

        return wait_for_parameters

    def _behind(self, name: str) -> Callable[[Tensor], None]:
        def enter_the_lane(parameter: Tensor) -> None:
            if not self._sync:
                return
            if name in self._flights:
                raise StrategyError(
                    f"{name} has a second gradient while the first is in flight: put all backward passes of a step "
                    "but the last into no_sync(), and call the module that holds the parameter, not functions on it"
                )
            if not self._homes[name] & self._called:
                _add(self._waits[self._caller_of(name)], name)
            flight = Flight(name, self._gradient(name, parameter), self.plan.pieces_of[name], _recorded(parameter))
            self._flights[name] = flight
            self._asked[name] = [_settings(group) for group in self.optimizers[name].param_groups]
            self._entered.add(name)
            if len(self._entered) == len(self._trained):
                self._entered.clear()
                self._called.clear()
            self._lane.enter(flight)

        return enter_the_lane

    def _caller_of(self, name: str) -> str:
        """The innermost module that was called and holds the module of a parameter, which itself was not called."""
        return holder(min(self._homes[name]), self._called)

    def _gradient(self, name: str, parameter: Tensor) -> Tensor:
        import torch

        if parameter.grad.layout != torch.strided:
            raise StrategyError(f"the gradient of {name} is {parameter.grad.layout}: train it with dense gradients")
        parameter.grad = parameter.grad.contiguous()
        return parameter.grad

    def _apply(self, names: list[str]) -> None:
        """Wait for the averages of some parameters and update them."""
        if names and self._entered:
            missing = sorted(self._trained.keys() - self._entered)
            raise StrategyError(
                f"{listed(missing)} had no gradient in the last backward pass, so later transfers cannot start: "
                "freeze parameters that are not used (requires_grad=False) and plan without them"
            )
        for name in names:
            flight = self._flights[name]
            self._lane.wait_for(flight)
            if flight.event is not None:
                import torch

                torch.cuda.current_stream(flight.gradient.device).wait_event(flight.event)
            self._update(name, flight.gradient)
            del self._flights[name]

    def _update(self, name: str, gradient: Tensor) -> None:
        """Apply the optimizer as it was set when the gradient was made, whatever a scheduler has changed since."""
        parameter, optimizer = self._trained[name], self.optimizers[name]
        parameter.grad = gradient
        later = [_settings(group) for group in optimizer.param_groups]
        for group, asked in zip(optimizer.param_groups, self._asked.pop(name), strict=True):
            group.update(asked)
        optimizer.step()
        for group, settings in zip(optimizer.param_groups, later, strict=True):
            group.update(settings)
        parameter.grad = None


def _check(trained: dict[str, Any]) -> None:
    findings = Findings(StrategyError, "scheduled module")
    if not trained:
        findings.add("it has no trainable parameters: nothing has to be averaged")
    if len(kinds := {(one.dtype, one.device) for one in trained.values()}) > 1:
        findings.add(f"its parameters are of {len(kinds)} types or devices, but a buffer has one: convert them")
    if empty := sorted(name for name, one in trained.items() if not one.numel()):
        findings.add(f"{listed(empty)} has no elements: freeze it (requires_grad=False)")
    findings.raise_if_any()


def _recorded(parameter: Tensor) -> Any:
    """On GPUs an event behind the kernels that make the gradient."""
    if not parameter.is_cuda:
        return None
    import torch

    event = torch.cuda.Event()
    event.record()
    return event


def _add(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key != "params"}
