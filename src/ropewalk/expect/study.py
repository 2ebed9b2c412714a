"""From a cluster to what it should show, and from what it shows to what is the matter with it."""

from __future__ import annotations

from ropewalk.collectives.nccl import library_for
from ropewalk.expect.answer import ExpectAnswer, ExpectRow
from ropewalk.expect.benchmarks import BENCHMARKS
from ropewalk.expect.diagnosis import diagnosed
from ropewalk.expect.interval import interval
from ropewalk.expect.prices import CollectivePrices
from ropewalk.expect.question import ExpectQuestion
from ropewalk.expect.read.files import read_records
from ropewalk.expect.read.who import ServerNames, measurements_of
from ropewalk.expect.series import series_of
from ropewalk.progress import Progress, silent
from ropewalk.room import foresee

GPU_BYTES, GPU_S = 4e3, 25e-6
"""What a GPU and its links take, as measured with 80,000 to 800,000 of them."""


def answer(question: ExpectQuestion, progress: Progress = silent) -> ExpectAnswer:
    """What every benchmark shows at every size on the whole cluster; where files are read, the verdict on them.

    >>> from ropewalk.hardware import read_cluster
    >>> asked = ExpectQuestion(read_cluster("dgx-h100:1"), ("all_reduce",), (1 << 34,))
    >>> row = answer(asked).rows[0]
    >>> row.runs, round(row.busbw / 1e9)
    ('nvls/simple', 490)
    """
    records = read_records(question.files, question.measured, progress) if question.files else []
    gpus = question.cluster.gpus
    foresee(f"the network of {gpus:,} GPUs", gpus * GPU_BYTES, "describe fewer servers", seconds=gpus * GPU_S)
    prices = CollectivePrices(question.cluster, library_for(question.cluster))
    names = prices.fabric.node_names[: prices.fabric.hosts]
    if not question.files:
        return ExpectAnswer(question, tuple(_rows(question, prices, progress)), names=names)
    measured = measurements_of(records, ServerNames(prices.fabric, question.hosts))
    series = series_of(measured, prices, progress)
    return ExpectAnswer(question, (), diagnosed(series, prices, progress), names)


def _rows(question: ExpectQuestion, prices: CollectivePrices, progress: Progress) -> list[ExpectRow]:
    groups, found = prices.everyone, []
    for done, name in enumerate(question.benchmarks):
        progress(done, len(question.benchmarks), f"simulating {name}")
        for size in question.sizes:
            one = prices.expected(BENCHMARKS[name], size, groups)
            healthy = interval(one.latency_s, one.bytes_s)
            found.append(ExpectRow(name, len(groups[0]), size, one.seconds, healthy, one.name))
    return found
