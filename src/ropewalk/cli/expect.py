"""`ropewalk expect`: what should a healthy cluster show in nccl-tests?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.expect_screen import print_answer
from ropewalk.cli.lists import not_empty, split
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.screen import JSON, print_json, require_outputs, shown_progress
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.hardware import Cluster

SMALLEST = typer.Option("8B", "--min-bytes", "-b", help="The smallest size.")
LARGEST = typer.Option("16GiB", "--max-bytes", "-e", help="The largest size.")
FACTOR = typer.Option(2, "--step-factor", "-f", help="Every size is so many times the one before.")


@with_options
def expect_command(
    named: str | None = typer.Argument(
        None, metavar="[CLUSTER]", help="A cluster file, a preset (dgx-h100:4) or servers x GPUs of each (4x8)."
    ),
    *,
    collective: str | None = typer.Option(
        None, "--collective", "-c", help="Those to expect, such as all_reduce,alltoall: {benchmarks}.  [default: all]"
    ),
    smallest: str = SMALLEST,
    largest: str = LARGEST,
    factor: int = FACTOR,
    place: ClusterOptions,
    json: bool = JSON,
) -> None:
    """The bus bandwidth that a healthy cluster shows, for every collective and size, as nccl-tests prints it.

    Example: `ropewalk expect dgx-h100:4 --collective all_reduce`

    Times are those of NCCL's fastest algorithm and protocol on the simulated network; the interval is that of healthy
    clusters.
    """
    require_outputs(read=(named, place.cluster))
    from ropewalk.expect.benchmarks import PRINTED
    from ropewalk.expect.question import ExpectQuestion, sizes_between
    from ropewalk.expect.study import answer

    sizes = sizes_between(units.size(smallest), units.size(largest), factor)
    wanted = PRINTED if collective is None else not_empty(split(collective), "--collective")
    question = ExpectQuestion(_cluster(named, place), wanted, sizes)
    with shown_progress() as progress:
        found = answer(question, progress)
    if json:
        print_json(found.as_json())
    else:
        print_answer(found)


def _cluster(named: str | None, place: ClusterOptions) -> Cluster:
    if named is not None and place.cluster is not None:
        raise InputError(f"{named} and --cluster {place.cluster} both name a cluster: leave one of them out")
    if named is None and place.cluster is None:
        raise InputError("name the cluster, such as dgx-h100:4, 4x8 or a cluster file")
    return replace(place, cluster=named or place.cluster).read("")
