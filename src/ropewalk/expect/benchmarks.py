"""The benchmarks of nccl-tests: which collective each runs, and what its bus bandwidth is a multiple of."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.choices import Choice, Choices
from ropewalk.collectives.act import Act
from ropewalk.collectives.nccl import bus_factor
from ropewalk.errors import InputError


@dataclass(frozen=True)
class Benchmark(Choice[Act]):
    """A benchmark; `make` is the collective that it runs."""

    one_way: bool = False
    """Only the first rank sends."""
    reduces: bool = False
    rooted: bool = False

    def factor(self, ranks: int) -> float:
        """Bus bandwidth over algorithm bandwidth, by the number of ranks."""
        return bus_factor(self.make, ranks)

    def facts(self) -> dict[str, str]:
        return {"busbw / algbw for n ranks": self.where}


def _benchmark(
    name: str, act: Act, where: str, about: str, *, one_way: bool = False,
    reduces: bool = False, rooted: bool = False,
) -> Benchmark:  # fmt: skip
    return Benchmark(name, act, about, where=where, one_way=one_way, reduces=reduces, rooted=rooted)


BENCHMARKS: Choices[Benchmark] = Choices(
    "benchmark",
    (
        _benchmark("all_reduce", Act.ALL_REDUCE, "2(n-1)/n", "size: the buffer of a rank",
                   reduces=True),
        _benchmark("all_gather", Act.ALL_GATHER, "(n-1)/n", "size: what a rank ends with"),
        _benchmark("reduce_scatter", Act.REDUCE_SCATTER, "(n-1)/n",
                   "size: what a rank begins with", reduces=True),
        _benchmark("broadcast", Act.BROADCAST, "1", "size: the buffer", rooted=True),
        _benchmark("reduce", Act.REDUCE, "1", "size: the buffer", reduces=True, rooted=True),
        _benchmark("alltoall", Act.ALL_TO_ALL, "(n-1)/n", "size: what a rank sends in all"),
        _benchmark("sendrecv", Act.SEND, "1", "every rank sends to the next; size: what it sends"),
        _benchmark("send", Act.SEND, "1", "the first of two ranks sends to the second (tables of pairs)",
                   one_way=True),
    ),
    error=InputError,
)  # fmt: skip
"""By the name of the program, without `_perf`."""
PRINTED = tuple(name for name in BENCHMARKS if name != "send")
"""What nccl-tests has."""

_SPELLINGS = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
              "all_to_all": "alltoall", "alltoallv": "alltoall", "send_recv": "sendrecv",
              "all_gather_into_tensor": "all_gather", "allgather_base": "all_gather",
              "reduce_scatter_tensor": "reduce_scatter", "_reduce_scatter_base": "reduce_scatter",
              "_allgather_base": "all_gather", "all_to_all_single": "alltoall"}  # fmt: skip


def benchmark_named(text: str) -> Benchmark | None:
    """The benchmark that runs a collective, however tools spell it.

    >>> benchmark_named("AllReduce").name, benchmark_named("all_gather_perf_mpi").name, benchmark_named("gather")
    ('all_reduce', 'all_gather', None)
    """
    name = text.strip().lower().replace("-", "_").removesuffix("_mpi").removesuffix("_perf")
    name = _SPELLINGS.get(name, name)
    return BENCHMARKS.get(name)
