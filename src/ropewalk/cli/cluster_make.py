"""`ropewalk cluster size` and `generate`: how large a cluster can be, and jobs to try it with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from ropewalk.cli.cluster_plant import PlantOptions, plant_of
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.screen import JSON, console, print_json, require_outputs
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.tenancy.plant import Plant
    from ropewalk.tenancy.traces import TraceJob

Value = TypeVar("Value")


def size_command(
    ports: int = typer.Option(64, help="Ports per switch."),
    json: bool = JSON,
) -> None:
    """Compute how many GPUs two tiers of switches support, rearrangeable and strictly non-blocking.

    Example: `ropewalk cluster size --ports 64`
    """
    from ropewalk.tenancy.sizing import rearrangeable, strictly_non_blocking

    kinds = {"rearrangeable": rearrangeable(ports), "strictly non-blocking": strictly_non_blocking(ports)}
    if json:
        print_json(
            {
                name: {
                    "gpus": one.gpus,
                    "switches": one.switches,
                    "leafs": one.leafs,
                    "spines": one.spines,
                    "gpus_per_leaf": one.gpus_per_leaf,
                    "unused_leaf_ports": one.unused_leaf_ports,
                    "switches_per_gpu": float(one.switches_per_gpu),
                    "fabric": one.expression,
                }
                for name, one in kinds.items()
            }
        )
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title_justify="left",
                  title=f"two tiers of {ports}-port switches")  # fmt: skip
    for name in ("", "GPUs", "switches", "per GPU", "fabric"):
        table.add_column(name, justify="left" if name in ("", "fabric") else "right", no_wrap=True)
    for name, one in kinds.items():
        cells = (one.gpus, one.switches, f"{float(one.switches_per_gpu):.4f}", one.expression)
        table.add_row(name, *map(str, cells))
    console().print(table)


@with_options
def generate_command(
    out: Path = typer.Argument(metavar="FILE", help="The jobs.csv to write."),
    jobs: int = typer.Option(1000, min=1, help="Number of jobs."),
    load: float | None = typer.Option(
        None, help="Offered load as a fraction of all GPU time; alternative to --mean-gap.  [default: 0.8]"
    ),
    mean_gap: str | None = typer.Option(None, help="Mean time between arrivals, such as 300s."),
    sizes: str = typer.Option("histogram-10000", help="histogram-10000, histogram-18825 or tpu-v4-slices."),
    durations: str = typer.Option("helios", help="helios, philly, seren, kalos or pai."),
    shortest: str = typer.Option("1000s", help="Durations below this are raised to it."),
    longest: str = typer.Option("100000s", help="Durations above this are cut to it."),
    slack: float | None = typer.Option(None, help="Deadlines between 1 and this many durations after arrival."),
    seed: int = typer.Option(0, min=0, help="The same seed gives the same file."),
    json: bool = JSON,
    *,
    cluster: PlantOptions,
) -> None:
    """Generate a synthetic trace with published sizes and durations and Poisson arrivals.

    Example: `ropewalk cluster generate jobs.csv --jobs 5000 --fabric leaf-spine:64x32x32 --load 0.9`
    """
    from ropewalk import units
    from ropewalk.tenancy.traces import DURATIONS, SIZES, Synthetic, write_jobs

    require_outputs(out)
    plant = plant_of(cluster)
    drawn = replace(
        _of(DURATIONS, durations, "--durations"),
        shortest_s=units.seconds(shortest),
        longest_s=units.seconds(longest),
    )
    if load is None and mean_gap is None:
        load = 0.8
    synthetic = Synthetic(
        jobs,
        plant.gpus,
        load=load,
        mean_gap_s=None if mean_gap is None else units.seconds(mean_gap),
        sizes=_of(SIZES, sizes, "--sizes"),
        durations=drawn,
        slack=slack,
        seed=seed,
    )
    made = synthetic.build()
    write_jobs(made, out)
    _say(out, made, plant, json=json)


def _say(out: Path, made: Sequence[TraceJob], plant: Plant, *, json: bool) -> None:
    """What was written, in a few figures."""
    from ropewalk.tenancy.traces import load_of

    gap = made[-1].arrival_s / len(made)
    facts = {
        "file": str(out),
        "jobs": len(made),
        "gpus_of_the_cluster": plant.gpus,
        "largest_job": max(job.gpus for job in made),
        "mean_gpus": sum(job.gpus for job in made) / len(made),
        "mean_gap_s": gap,
        "load": load_of(made, gap, plant.gpus),
    }
    if json:
        print_json(facts)
    else:
        console().print(
            f"{out}: {len(made)} jobs of {facts['mean_gpus']:.1f} GPUs on average (largest {facts['largest_job']}), "
            f"one every {gap:.0f} s: load {facts['load']:.3f} of {plant.gpus} GPUs",
            soft_wrap=True,
        )


def _of(table: dict[str, Value], name: str, option: str) -> Value:
    if name not in table:
        raise InputError(f"{option} {name!r} is not known: write one of {', '.join(table)}")
    return table[name]
