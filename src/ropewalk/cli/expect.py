"""`ropewalk expect`: what should a healthy cluster show in nccl-tests?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.expect_screen import print_answer
from ropewalk.cli.lists import not_empty, split
from ropewalk.cli.memory_limit import within_memory
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.screen import JSON, PAGE, print_json, require_outputs, shown_progress, write_page
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.hardware import Cluster

MEASURED = "Measurements"
SMALLEST = typer.Option("8", "--min-bytes", "-b", help="The smallest size: 64MiB, or 64M as in nccl-tests.")
LARGEST = typer.Option("16GiB", "--max-bytes", "-e", help="The largest size.")
FACTOR = typer.Option(2, "--step-factor", "-f", help="Factor between successive sizes.")
READ = typer.Option(
    [],
    "--read",
    "-r",
    metavar="FILE",
    help="Measurements to check: output of nccl-tests, NCCL Inspector or PyTorch's profiler (also .gz), or a table "
    "of pairs (.csv). May be repeated.",
    rich_help_panel=MEASURED,
)
HOSTS = typer.Option(
    "",
    help="Names of the servers in the files, server 0 first.  [default: in the order of the files]",
    rich_help_panel=MEASURED,
)
OF = typer.Option(None, help="The collective of outputs that do not name it.", rich_help_panel=MEASURED)


@within_memory
@with_options
def expect_command(
    named: str | None = typer.Argument(
        None, metavar="[CLUSTER]", help="A cluster file, a preset (dgx-h100:4), or servers x GPUs per server (4x8)."
    ),
    *,
    collective: str | None = typer.Option(
        None, "--collective", "-c", help="Benchmarks, such as all_reduce,alltoall: {benchmarks}.  [default: all]"
    ),
    smallest: str = SMALLEST,
    largest: str = LARGEST,
    factor: int = FACTOR,
    read: list[Path] = READ,
    hosts: str = HOSTS,
    measured: str | None = OF,
    place: ClusterOptions,
    json: bool = JSON,
    page: Path | None = PAGE,
) -> None:
    """Predict what nccl-tests reports on a healthy cluster, for every collective and size.

    Example: `ropewalk expect dgx-h100:4 --collective all_reduce`

    With `--read`, compare measurements with it, and name the link, NIC, GPU or setting that best explains a shortfall.
    The exit code is 0 for a healthy cluster and 1 for an unhealthy one.

    Example: `ropewalk expect dgx-h100:4 --read all_reduce.txt --read pairs.csv`
    """
    require_outputs(page, read=(named, place.cluster, *read))
    if not read and (hosts or measured):
        raise InputError("--hosts and --measured apply to files given with --read: add --read")
    from ropewalk.expect.benchmarks import PRINTED
    from ropewalk.expect.question import ExpectQuestion, size_as_written, sizes_between
    from ropewalk.expect.study import answer

    sizes = sizes_between(size_as_written(smallest), size_as_written(largest), factor)
    wanted = PRINTED if collective is None else not_empty(split(collective), "--collective")
    question = ExpectQuestion(_cluster(named, place), wanted, sizes, tuple(read), split(hosts), measured)
    with shown_progress() as progress:
        found = answer(question, progress)
    if page is not None:
        from ropewalk.report.expect import expect_page

        write_page(page, expect_page(found))
    if json:
        print_json(found.as_json())
    else:
        print_answer(found)
    if found.diagnosis is not None and not found.diagnosis.healthy:
        raise typer.Exit(1)


def _cluster(named: str | None, place: ClusterOptions) -> Cluster:
    if named is not None and place.cluster is not None:
        raise InputError(f"{named} and --cluster {place.cluster} both name a cluster: leave one of them out")
    if named is None and place.cluster is None:
        raise InputError("name the cluster, such as dgx-h100:4, 4x8 or a cluster file")
    return replace(place, cluster=named or place.cluster).described()
