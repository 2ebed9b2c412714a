"""How long work takes once a GPU is hot: seconds of a call, the clock and the power that the GPU keeps meanwhile."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any

import torch

Run = Callable[[], Any]
BATCH_S = 0.25
"""Calls are timed together until they take about this long."""
AHEAD = 2
"""Timed batches that are launched before the host waits for the first of them, as a training loop never waits."""
QUERY = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw.instant", "--format=csv,noheader,nounits", "-lms", "100"]


@dataclass(frozen=True)
class Taken:
    """Seconds of a call at first and in the second half of the time, with what the GPU showed in that half."""

    first_s: float
    seconds: float
    clock_mhz: float = 0.0
    watts: float = 0.0


@dataclass
class Watch:
    """Clock and power of the GPU, ten times a second."""

    seen: list[tuple[float, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        with subprocess.Popen(QUERY, stdout=subprocess.PIPE, text=True) as running:
            for line in running.stdout or ():
                try:
                    clock, watts = map(float, line.split(","))
                except ValueError:
                    continue
                self.seen.append((time.perf_counter(), clock, watts))

    def between(self, begin: float, end: float) -> tuple[float, float]:
        found = [one for one in self.seen if begin < one[0] < end]
        return (mean(one[1] for one in found), mean(one[2] for one in found)) if found else (0.0, 0.0)


class Stopwatch:
    """Times calls on one device; a CPU has neither a queue nor a clock that is watched."""

    def __init__(self, device: str) -> None:
        self.cuda = device == "cuda"
        if not self.cuda:
            torch.set_num_threads(1)
        self.watch = Watch() if self.cuda else None

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def host(self, run: Run, repeats: int = 7) -> float:
        """Seconds until a call returns whose work finds the GPU idle."""
        times = []
        for _ in range(repeats):
            self.wait()
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        return median(times)

    def sustained(self, run: Run, span_s: float) -> Taken:
        """Seconds of one call when calls follow each other for so long."""
        for _ in range(2):
            run()
        first_s = self._batch(run, 2)()
        calls = max(1, int(BATCH_S / first_s)) if self.cuda else 1
        begin = time.perf_counter()
        open_batches: list[Run] = []
        times: list[tuple[float, float]] = []
        while time.perf_counter() - begin < span_s or not times:
            open_batches.append(self._batch(run, calls))
            if len(open_batches) > AHEAD or not self.cuda:
                seconds = open_batches.pop(0)()
                times.append((time.perf_counter() - begin, seconds))
        self.wait()
        end = time.perf_counter()
        late = [seconds for at, seconds in times if at > span_s / 2] or [times[-1][1]]
        clock, watts = self.watch.between(begin + span_s / 2, end) if self.watch else (0.0, 0.0)
        return Taken(first_s, median(late), clock, watts)

    def _batch(self, run: Run, calls: int) -> Callable[[], float]:
        """Launch calls; what is returned waits for them and says how long each took."""
        if not self.cuda:
            clock = time.perf_counter()
            for _ in range(calls):
                run()
            seconds = (time.perf_counter() - clock) / calls
            return lambda: seconds
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            run()
        end.record()

        def taken() -> float:
            end.synchronize()
            return begin.elapsed_time(end) / 1e3 / calls

        return taken
