"""Ranks ahead of all other processes while they run: a late rank looks like a slow network.

Real-time priority where the kernel allows it, and a better nice value otherwise. It lasts for one run. The machine does
not starve: ranks are one thread, which waits for the network most of the time, and the kernel keeps a part of every
second (`sched_rt_runtime_us`) for everybody else. Packets are handled in interrupts: raising the threads that take over
when there are too many of them (`ksoftirqd`) changed nothing, so they are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_REAL_TIME, _NICE = 10, -15
_BOUND = Path("/proc/sys/kernel/sched_rt_runtime_us")


@contextmanager
def ahead() -> Iterator[str]:
    """Raise the calling thread for the length of a block; says how: `real-time`, `nice` or nothing."""
    if os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR):
        yield "real-time"  # somebody has chosen it already
        return
    if _starves_nobody() and _as_real_time():
        try:
            yield "real-time"
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        return
    before = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, min(before, _NICE))
    except PermissionError:
        yield ""
        return
    try:
        yield "nice"
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


def _as_real_time() -> bool:
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False  # it would not be restored
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_REAL_TIME))
    except PermissionError:
        return False
    return True


def _starves_nobody() -> bool:
    """Does the kernel keep time for others, or is there a second core?"""
    try:
        bounded = int(_BOUND.read_text()) > 0
    except OSError:
        bounded = False
    return bounded or len(os.sched_getaffinity(0)) > 1
