"""How long one call takes: on a GPU without the gaps between launches, on a CPU by the clock on the wall."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

SPAN_S = 4e-3
"""A measurement repeats a call until it has taken about this long."""
REPEATS = 3
"""Measurements of which the median counts."""


Run = Callable[[], Any]


def seconds(runs: Sequence[Run], device: str, span_s: float = SPAN_S) -> float:
    """The median time of one call when calls follow each other without a pause; several runs take turns."""
    turns = itertools.cycle(runs)

    def run() -> Any:
        return next(turns)()

    return _on_gpu(run, span_s) if device == "cuda" else _on_cpu(run, span_s)


def own_stream(device: str) -> AbstractContextManager[Any]:
    """Work inside belongs to a stream that can be captured; gradients run on the stream of their forward pass."""
    if device != "cuda":
        return nullcontext()
    context: AbstractContextManager[Any] = torch.cuda.stream(torch.cuda.Stream())
    return context


def _on_gpu(run: Run, span_s: float) -> float:
    once = _between_events(run, 1, warm_up=2)
    calls = max(2, min(48, int(span_s / max(once, 1e-6))))
    replay = _captured(run, calls)
    if replay is None:  # the call cannot be captured (it waits for the GPU): then its launches count too
        return _between_events(run, calls)
    return statistics.median(_between_events(replay, 1, warm_up=1 if i == 0 else 0) for i in range(REPEATS)) / calls


def _captured(run: Run, calls: int) -> Run | None:
    """Many calls as one graph of launches, so that the host's time is not measured."""
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    try:
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"):
            for _ in range(calls):
                run()
    except RuntimeError:
        torch.cuda.synchronize()
        return None
    return graph.replay


def _between_events(run: Run, calls: int, warm_up: int = 0) -> float:
    for _ in range(warm_up):
        run()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(calls):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / calls


def _on_cpu(run: Run, span_s: float) -> float:
    run()
    begin = time.perf_counter()
    run()
    calls = max(1, min(1000, int(span_s / max(time.perf_counter() - begin, 1e-7))))
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        times.append((time.perf_counter() - begin) / calls)
    return statistics.median(times)
