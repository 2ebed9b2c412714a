"""How many strategies a second are simulated by their gangs, beside the full simulation of every rank.

Llama 3 70B on 64 DGX H100 (512 GPUs), 1,024 samples of 8,192 tokens a step: strategies drawn from those that fit into
memory (tensor, pipeline, interleaving, micro-batch, ZeRO, sequence parallelism, recomputation), in one thread.
The first round meets every strategy and its layout for the first time, the second knows layers and layouts, as a search
does. A sample of them is simulated in full, from the strategy to the end of the last task, without statistics.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from measure import best_cpu, cpu, machine, options, short, summary, table
from ropewalk.errors import StrategyError
from ropewalk.hardware import read_cluster
from ropewalk.strategy import Strategy, check, memory
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.training import TrainingQuestion
from ropewalk.training.network import expand_on, run_on
from ropewalk.training.prepared import prepared
from ropewalk.training.quick import QuickSteps
from ropewalk.workload.zoo.stacks import stack_of

MODEL, SEQUENCE = "llama3-70b", 8192
SEED = 0


@dataclass(frozen=True)
class Sort:
    """Strategies that are measured together."""

    name: str
    zero: tuple[int, ...]
    many: int
    in_full: int


def main() -> None:
    chosen = options(__doc__).parse_args()
    servers, batch = (4, 64) if chosen.quick else (64, 1024)
    cluster = read_cluster(f"dgx-h100:{servers}")
    question = TrainingQuestion(MODEL, cluster, batch=batch, sequence=SEQUENCE)
    print(f"quick steps: {MODEL} on {cluster.gpus} GPUs, {batch} samples a step. {machine()}")
    QuickSteps(question).run(_all(cluster.gpus, batch, (1,))[0])  # if kernels have to be compiled, that happens now
    sorts = (
        Sort("ZeRO 0 to 2", (0, 1, 2), 6 if chosen.quick else 100, 2 if chosen.quick else 8),
        Sort("ZeRO-3", (3,), 3 if chosen.quick else 30, 1 if chosen.quick else 2),
    )
    rows = [_measured(sort, question) for sort in sorts]
    head = ["sort", "strategies", "layouts", "first, /s", "again, /s", "full, CPU s", "ratio", "apart"]
    table(f"{MODEL} on {cluster.gpus} GPUs: strategies per CPU second", head, rows)


def _measured(sort: Sort, question: TrainingQuestion) -> list[str]:
    quick = QuickSteps(question)
    drawn = _drawn(sort, quick)
    fresh = QuickSteps(question)
    _, first = cpu(lambda: [fresh.run(strategy).step_time_s for strategy in drawn])
    found, again = best_cpu(lambda: [fresh.run(strategy).step_time_s for strategy in drawn], 3)
    full, apart = 0.0, 0.0
    for strategy, seconds in zip(drawn[: sort.in_full], found, strict=False):
        whole, spent = cpu(lambda strategy=strategy: _in_full(replace(question, decided=strategy, detail="stage")))
        full += spent / sort.in_full
        apart = max(apart, abs(seconds / whole - 1))
    each = again / len(drawn)
    summary(
        f"{sort.name}: {len(drawn) / again:.0f} strategies/s by gangs, {full / each:.0f} times as many as in full, "
        f"at most {apart:.0e} apart"
    )
    return [
        sort.name, str(len(drawn)), str(len(fresh.layouts)), f"{len(drawn) / first:.0f}", f"{len(drawn) / again:.0f}",
        short(full), f"{full / each:.0f}", f"{apart:.0e}",
    ]  # fmt: skip


def _in_full(question: TrainingQuestion) -> float:
    made = prepared(question)
    step, use = made.write(), made.question.network
    return run_on(step, expand_on(step, made.fabric, use), made.fabric, use).trace.makespan


def _drawn(sort: Sort, quick: QuickSteps) -> list[Strategy]:
    """Strategies of a sort that fit into memory, in an order that is always the same."""
    batch = quick.question.batch
    assert batch is not None
    every = _all(quick.question.gpu_count, batch, sort.zero)
    random.Random(SEED).shuffle(every)
    return [strategy for strategy, _ in zip(_fitting(every, quick), range(sort.many), strict=False)]


def _fitting(strategies: list[Strategy], quick: QuickSteps) -> Iterator[Strategy]:
    most = quick.prices.device.memory_bytes
    for strategy in strategies:
        workload = quick.workload(strategy.micro_batch)
        known = quick.known(DEFAULT_ORDER, stack_of(workload))
        try:
            check(strategy, workload, quick.question.gpu_count)
        except StrategyError:
            continue
        shares = known.shares(workload, strategy)
        pieces = known.pieces(workload, strategy, shares)
        if memory(strategy, shares, pieces, known.listed.numbers).most <= most:
            yield strategy


def _all(gpus: int, batch: int, zero: tuple[int, ...]) -> list[Strategy]:
    """All of the space whose numbers divide; stages hold layers that follow each other."""
    found = []
    for tensor, pipeline, pieces, size in product((1, 2, 4, 8), (1, 2, 4, 8, 16), (1, 2, 5), (1, 2, 4)):
        data = gpus // (tensor * pipeline)
        if data * tensor * pipeline != gpus or batch % (data * size) or (pieces > 1 and pipeline == 1):
            continue
        for level, sequence, again in product(zero, (False, True), ("none", "selective", "full")):
            found.append(
                Strategy(
                    data=data,
                    tensor=tensor,
                    pipeline=pipeline,
                    micro_batch=size,
                    micro_batches=batch // (data * size),
                    schedule="interleaved" if pieces > 1 else "1f1b",
                    interleave=pieces,
                    zero=level,
                    sequence_parallel=sequence,
                    recompute=again,
                )
            )
    return found


if __name__ == "__main__":
    main()
