"""Where long searches run: in processes of this machine, or on a Ray cluster.

Work is handed out as a function and the values it is called with. What it returns depends on the values alone, so it
does not matter how many workers there are, or where they are.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ropewalk.errors import InputError, StrategyError
from ropewalk.extras import how_to_install
from ropewalk.progress import Count

Given = TypeVar("Given")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Engine:
    """Workers that run a function many times; it must be importable where they are.

    That is a function of a module, or a `functools.partial` of one, with arguments that can be pickled.
    """

    name: str = "processes"
    workers: int = 1
    """How many run at a time; one process is this one."""

    def map(self, task: Callable[[Given], Made], values: Sequence[Given], count: Count | None = None) -> list[Made]:
        """What the function makes of every value, in their order; `count` hears of those that are done."""
        found: list[Made] = []
        for some in ENGINES[self.name](task, list(values), self.workers):
            found += some
            if count is not None:
                count(len(found), len(values))
        return found


def engine_named(name: str, workers: int | None = None) -> Engine:
    """The engine that people name; one process, or all that a Ray cluster has, unless said otherwise.

    >>> engine_named("processes").map(abs, [-1, 2])
    [1, 2]
    >>> engine_named("steam")
    Traceback (most recent call last):
        ...
    ropewalk.errors.StrategyError: there is no engine 'steam': use processes or ray
    """
    if name not in ENGINES:
        raise StrategyError(f"there is no engine {name!r}: use {' or '.join(ENGINES)}")
    if name == "ray":
        have = max(1, int(_connected().cluster_resources().get("CPU", 1)))
        return Engine(name, workers or have)
    return Engine(name, workers or 1)


def _in_processes(task: Callable[[Given], Made], values: list[Given], workers: int) -> Iterator[list[Made]]:
    if workers == 1:
        for value in values:
            yield [task(value)]
        return
    # Spawned, not forked: kernels keep threads, and a fork copies their locks as they are.
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for made in pool.imap(task, values, chunksize=1):
            yield [made]


def _on_ray(task: Callable[[Given], Made], values: list[Given], workers: int) -> Iterator[list[Made]]:
    """On the Ray cluster that this process belongs to, or the one that RAY_ADDRESS or this machine knows."""
    ray = _connected()
    remote = ray.remote(num_cpus=1)(task.func if isinstance(task, partial) else task)
    fixed = [ray.put(one) for one in task.args] if isinstance(task, partial) else []
    for first in range(0, len(values), workers):
        yield ray.get([remote.remote(*fixed, value) for value in values[first : first + workers]])


def _connected() -> Any:
    try:
        import ray  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise InputError(f"the engine ray needs Ray: install it with {how_to_install('ray')}") from None
    if not ray.is_initialized():
        try:
            ray.init(address="auto", log_to_driver=False)
        except ConnectionError:
            raise InputError(
                "the engine ray found no Ray cluster: start one with `ray start --head`, set RAY_ADDRESS, "
                "or use the engine processes"
            ) from None
    return ray


ENGINES: dict[str, Callable[[Callable[[Any], Any], list[Any], int], Iterator[list[Any]]]] = {
    "processes": _in_processes,
    "ray": _on_ray,
}
"""Where work runs, by the name people type; what is made comes some at a time, in order."""
