"""The released scheduler of "Zero Bubble Pipeline Parallelism" (Qi et al., ICLR 2024; `scheduler/zb.py`), line by line.

Costs may differ by stage and by boundary. A forward pass keeps `kept` of its stage until its gradients of weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

F, B, W = range(3)


@dataclass
class Scheduler:
    """One run of `manual_order`: what every stage does in order, and when it ends."""

    cost: tuple[Sequence[float], Sequence[float], Sequence[float]]
    send_forward: Sequence[float]
    send_backward: Sequence[float]
    kept: Sequence[float]
    limit: float
    batches: int
    rows: list[list[tuple[int, int]]] = field(default_factory=list)

    def run(self, allow_bubble_before_first_b: bool, prioritize_b: bool, no_bubble_greedy: bool) -> float | None:
        stages, nmb, cost = len(self.kept), self.batches, self.cost
        count = [[0] * stages for _ in range(3)]
        f, b, w = count
        m, e, bubble = [0.0] * stages, [0.0] * stages, [0.0] * stages
        t: dict[tuple[int, int, int], float] = {}
        self.rows = [[] for _ in range(stages)]
        mem = [[kept, 0.0, -kept] for kept in self.kept]

        def put(j: int, k: int) -> None:
            i = count[k][j]
            end = no_bubble = e[j] + cost[k][j]
            if j > 0 and k == F:
                end = max(end, t[F, j - 1, i] + self.send_forward[j - 1] + cost[k][j])
            if j < stages - 1 and k == B:
                end = max(end, t[B, j + 1, i] + self.send_backward[j] + cost[k][j])
            if f[j] > 0:
                bubble[j] += end - no_bubble
            e[j] = t[k, j, i] = end
            m[j] += mem[j][k]
            count[k][j] += 1
            self.rows[j].append((k, i))

        def fill(j: int, due: float) -> None:
            while w[j] < b[j] and e[j] + cost[W][j] <= due:
                put(j, W)
            if w[j] < b[j] and e[j] < due:
                if due - e[j] <= max(bubble) - bubble[j]:
                    if no_bubble_greedy:
                        put(j, W)
                else:
                    put(j, W)

        for i in range(nmb):
            if i == 0:
                for j in range(stages):
                    put(j, F)
                required = [0] * stages
                last = t[F, stages - 1, 0] + cost[B][stages - 1]
                for j in range(stages - 2, -1, -1):
                    memory, now, comm = m[j], e[j], self.send_backward[j]
                    while f[j] + required[j] < nmb and memory + mem[j][F] <= self.limit:
                        if allow_bubble_before_first_b:
                            if now + cost[F][j] > last + comm:
                                break
                        elif now >= last + comm:
                            break
                        memory += mem[j][F]
                        now += cost[F][j]
                        required[j] += 1
                    last = max(now, last + comm) + cost[B][j]
                for j in range(1, stages):
                    while required[j] > 0 and required[j] >= required[j - 1] and f[j] + required[j] < nmb:
                        required[j] -= 1
                if any(required[j] > required[j - 1] for j in range(1, stages)):
                    return None  # the released code runs into an assertion: a stage waits for what nobody has run
                for j in range(stages):
                    for _ in range(required[j]):
                        put(j, F)
                for j in range(stages - 1, -1, -1):
                    put(j, B)
                continue
            required = [0] * stages
            for j in range(stages):
                if f[j] >= nmb:
                    continue
                if j + 1 < stages and f[j] >= f[j + 1] + 2 and prioritize_b:
                    following = e[j + 1] + cost[F][j + 1] + cost[B][j + 1] + self.send_backward[j]
                    if e[j] >= following:
                        continue
                    weights, done, memory = 0.0, 0, m[j] + mem[j][F]
                    while memory > self.limit and w[j] + done < b[j]:
                        weights += cost[W][j]
                        memory += mem[j][W]
                        done += 1
                    if e[j] + cost[F][j] + weights <= following:
                        required[j] = 1
                        continue
                    if following - e[j] <= max(bubble) - bubble[j]:
                        continue
                required[j] = 1
            for j in range(stages - 2, -1, -1):
                required[j] = min(required[j], required[j + 1])
            for j in range(stages):
                if not required[j]:
                    continue
                while m[j] + mem[j][F] > self.limit:
                    if w[j] >= b[j]:
                        return None
                    put(j, W)
                if j > 0:
                    fill(j, t[F, j - 1, f[j]] + self.send_forward[j - 1])
                put(j, F)
            for j in range(stages - 1, -1, -1):
                if j + 1 < stages:
                    fill(j, t[B, j + 1, i] + self.send_backward[j])
                if j == 0 and f[j] == nmb:
                    while w[j] < b[j]:
                        put(j, W)
                put(j, B)
        for j in range(stages):
            while w[j] < nmb:
                put(j, W)
        return max(t[W, j, nmb - 1] - t[F, j, 0] + cost[F][j] for j in range(stages))


def published_span(scheduler: Scheduler) -> tuple[float, list[list[tuple[int, int]]]] | None:
    """The longest stage of the best of its eight settings, and the rows of that one."""
    best = None
    for settings in product((True, False), repeat=3):
        span = scheduler.run(*settings)
        if span is not None and (best is None or span < best[0]):
            best = span, scheduler.rows
    return best
