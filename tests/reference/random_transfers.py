"""Task graphs of a few transfers between random hosts, each after up to two others, for tests and benchmarks."""

from __future__ import annotations

import numpy as np

from ropewalk.task import Sketch, TaskGraph


def random_transfers(hosts: int, seed: int) -> TaskGraph:
    """Two to eight transfers of 0.1 to 3 MB."""
    random = np.random.default_rng(seed)
    sketch = Sketch()
    known: list[int] = []
    for _ in range(random.integers(2, 9)):
        src, dst = (int(host) for host in random.choice(hosts, 2, replace=False))
        waits = min(len(known), int(random.integers(0, 3)))
        after = [int(task) for task in random.choice(known, waits, replace=False)] if waits else []
        known.append(sketch.transfer(src, dst, float(10 ** random.uniform(5, 6.5)), after=after))
    return sketch.graph()
