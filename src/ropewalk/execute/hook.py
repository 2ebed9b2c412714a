"""A program as the way in which DistributedDataParallel sums up gradients.

    model = DistributedDataParallel(net)
    model.register_comm_hook(None, comm_hook(ring_all_reduce([range(8)])))

On CPUs it overlaps with the backward pass: the hook only puts a bucket in a queue, and a thread runs the program on one
bucket after another, in the order of DistributedDataParallel, which is the same on all ranks. Its messages have tags of
their own, so that others in the same process group cannot come between them. On GPUs the hook runs the program at once
on the stream that calls it; the host does not wait for it, later kernels of that stream do.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ropewalk.errors import ProgramError
from ropewalk.execute.plan import RankPlan
from ropewalk.execute.run import Group, Tensor, plan_here, run_plan

if TYPE_CHECKING:
    from ropewalk.collectives.program import Program
    from ropewalk.collectives.schedule import Schedule

_TAGS_OF_A_HOOK = 1 << 20
_MOST_HOOKS = 1 << 11
"""Tags are 31 bits."""

_LONGEST_END_S = 5.0
"""How long the end of a process waits for a program that is still running."""

_hooks: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""How many hooks have been made for each process group."""

Hook = Callable[[Any, Any], Any]
"""(state, gradient bucket) -> future of the averaged gradients; the state is not used."""


def comm_hook(program: Program | Schedule, group: Group = None) -> Hook:
    """A communication hook that averages gradients by a program.

    `group` is the process group of DistributedDataParallel, if it is not that of all processes. Where a group has
    several hooks, all its ranks make them in the same order.
    """
    plan = plan_here(program, group)
    if plan.contributors != plan.ranks or set(plan.given) != {plan.chunks}:
        raise ProgramError(
            f"{plan.name} does not give every rank the sum of all ranks, which gradients need: give an all-reduce in "
            "which every rank takes part"
        )
    import torch.distributed as dist

    # A group of its own would be made by all processes or by name, and PyTorch's names differ between members that are
    # in different numbers of groups. Tags need no agreement but on how many hooks the group has.
    everybody = dist.group.WORLD if group is None else group
    number = _hooks[everybody] = _hooks.get(everybody, 0) + 1
    worker = _Worker(plan, group, first_tag=(number % _MOST_HOOKS) * _TAGS_OF_A_HOOK)

    def program_hook(state: Any, bucket: Any) -> Any:
        return worker.averaged(bucket.buffer())

    # DistributedDataParallel compares annotations with its own types, and refuses others, these strings included.
    program_hook.__annotations__.clear()
    return program_hook


class _Worker:
    """Runs a plan on tensors, in the order in which they come."""

    def __init__(self, plan: RankPlan, group: Group, first_tag: int) -> None:
        self.plan = plan
        self.group = group
        self.first_tag = first_tag
        self.waiting: SimpleQueue[tuple[Tensor, Any] | None] = SimpleQueue()
        self.thread: threading.Thread | None = None

    def averaged(self, tensor: Tensor) -> Any:
        """A future of the tensor, averaged in place."""
        from torch.futures import Future

        if tensor.is_cuda:
            done = Future(devices=[tensor.device])
            done.set_result(self._run(tensor))
            return done
        if self.thread is None:
            # A daemon: a process that fails must not wait for gradients that will never come. It is asked to end all
            # the same, because Python aborts the process if it has to stop a thread inside PyTorch.
            self.thread = threading.Thread(target=self._work, name="ropewalk-gradients", daemon=True)
            self.thread.start()
            atexit.register(self._end, self.thread)
        done = Future()
        self.waiting.put((tensor, done))
        return done

    def _work(self) -> None:
        while (handed := self.waiting.get()) is not None:
            tensor, done = handed
            try:
                done.set_result(self._run(tensor))
            except Exception as problem:  # whatever a backend may raise belongs to the one who waits
                done.set_exception(problem)

    def _end(self, thread: threading.Thread) -> None:
        self.waiting.put(None)
        thread.join(_LONGEST_END_S)

    def _run(self, tensor: Tensor) -> Tensor:
        return run_plan(self.plan, tensor, self.group, average=True, first_tag=self.first_tag)
