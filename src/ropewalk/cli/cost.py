"""`ropewalk cost`: what does one step of this model cost on one GPU?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import DEVICE, POWER
from ropewalk.cli.model_options import ModelOptions
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.places import refuse_plan
from ropewalk.cli.screen import JSON, console, print_json, require_outputs
from ropewalk.cli.step_options import MEMORY_CHECK
from ropewalk.errors import MemoryShortage

if TYPE_CHECKING:
    from ropewalk.device.cost import LayerCost, StepCost
    from ropewalk.device.pricer import Pricer
    from ropewalk.training.checked import Expected
    from ropewalk.workload.workload import Workload

USUAL_BATCH = 8
"""Samples of the step unless given."""
LONGEST = 12
"""Layers that are shown on the screen."""


@with_options
def cost_command(
    model: str = typer.Argument(
        help="A model: a name such as gpt2, file.py:Class, .onnx, a profile or a workload file."
    ),
    *,
    what: ModelOptions,
    device: str | None = DEVICE,
    power: str | None = POWER,
    memory_check: bool = MEMORY_CHECK,
    layers: bool = typer.Option(False, "--layers", help="Show the slowest layers."),
    workload: Path | None = typer.Option(
        None,
        metavar="FILE",
        help="Write the model as a workload file (.yaml or .json), which every command reads without PyTorch.",
    ),
    json: bool = JSON,
) -> None:
    """Predict a training step on one GPU: forward, both passes, whole step.

    Example: `ropewalk cost gpt2 --device h200 --dtype bf16 --batch 8 --seq 1024`

    A module traced once, for machines without PyTorch: `ropewalk cost net.py:Net --workload net.yaml`
    """
    require_outputs(workload, read=(model,))
    refuse_plan(model, "run it with `ropewalk simulate`, or name a model")

    from ropewalk.device.cost import step_cost
    from ropewalk.device.held import held_to
    from ropewalk.device.pricer import REFERENCE, pricer
    from ropewalk.strategy import Strategy
    from ropewalk.strategy.memory import memory_on_one_gpu
    from ropewalk.training.checked import interval_of_step
    from ropewalk.workload.files import write_workload
    from ropewalk.workload.source import open_workload

    batch = what.batch or USUAL_BATCH
    opened = open_workload(what.named(model), batch, what.seq)
    named = held_to(REFERENCE if device is None else device, power)
    prices = pricer(named, what.dtype).sustained(opened)
    cost = step_cost(opened, prices, what.optimiser)
    needed = memory_on_one_gpu(opened, what.optimiser, prices.numbers).most
    if memory_check and needed > prices.device.memory_bytes:
        raise _shortage(opened, prices, what.optimiser, needed)
    expected = interval_of_step(cost.step_s, opened, named, prices, Strategy(optimiser=what.optimiser), gpus=1)
    if workload is not None:
        write_workload(opened, workload)
        typer.echo(f"workload: {workload}", err=True)
    if json:
        memory = {"memory_bytes": needed, "memory_capacity_bytes": prices.device.memory_bytes}
        size = {"global_batch": batch, "sequence": opened.sequence or None}
        print_json(cost.summary() | {"interval": asdict(expected)} | size | memory)
    else:
        _print(cost, expected, batch, opened.sequence, show_layers=layers)
        console().print(
            f"memory: {units.show_size(needed)} of {units.show_size(prices.device.memory_bytes)}", style="dim"
        )


def _shortage(opened: Workload, prices: Pricer, optimiser: str, needed: float) -> MemoryShortage:
    """What does not fit, with the largest batch that does."""
    from ropewalk.device.device import unlimited
    from ropewalk.strategy.memory import memory_on_one_gpu

    def fits(batch: int) -> bool:
        return memory_on_one_gpu(opened.at_batch(batch), optimiser, prices.numbers).most <= prices.device.memory_bytes

    most, over = 0, opened.batch
    while over - most > 1:
        middle = (most + over) // 2
        most, over = (middle, over) if fits(middle) else (most, middle)
    remedy = f"give --batch {most}" if most else "split it over several GPUs with `ropewalk plan`"
    return MemoryShortage(
        f"memory: a step of {opened.batch} samples of {opened.name} needs {units.show_size(needed)}, and "
        f"{unlimited(prices.device.name)} has {units.show_size(prices.device.memory_bytes)}: {remedy}, or price it all "
        "the same with --no-memory-check",
        needed,
    )


def _print(cost: StepCost, expected: Expected, batch: int, sequence: int, *, show_layers: bool) -> None:
    from rich import box
    from rich.table import Table

    from ropewalk.device.held import device_in_words

    out = console()
    size = f"batch {batch}" + (f" x {sequence} tokens" if sequence else "")
    trained = f", {cost.trained_parameters:,} trained" if cost.trained_parameters < cost.parameters else ""
    what = f"{cost.model}, {size}, {cost.precision} on {device_in_words(cost.device)}"
    out.print(f"{what}: {cost.parameters:,} parameters{trained}", style="bold")
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    for name in ("time", "GPU busy", "host busy"):
        table.add_column(name, justify="right")
    both = cost.forward + cost.backward
    for name, work in (("forward", cost.forward), ("forward + backward", both), ("step", both + cost.update)):
        table.add_row(name, *map(units.show_seconds, (work.seconds, work.gpu_s, work.host_s + work.waiting_s)))
    out.print(table)
    if show_layers:
        longest = Table(title="layers", title_justify="left", box=box.SIMPLE_HEAD)
        for name in ("layer", "forward", "backward"):
            longest.add_column(name, justify="left" if name == "layer" else "right")
        equal: dict[tuple[str, str], list[LayerCost]] = {}
        for layer in sorted(cost.layers, key=lambda layer: -(layer.forward.gpu_s + layer.backward.gpu_s)):
            shown = units.show_seconds(layer.forward.gpu_s), units.show_seconds(layer.backward.gpu_s)
            equal.setdefault(shown, []).append(layer)
        for times, layers in list(equal.items())[:LONGEST]:
            count = f" … {layers[-1].name} ({len(layers)})" if len(layers) > 1 else ""
            longest.add_row(layers[0].name + count, *times)
        out.print(longest)
    step = both + cost.update
    limit = "the host's launches" if step.host_s > step.gpu_s else "the GPU"
    out.print(f"limited by {limit}; costs {cost.source}; optimiser {cost.optimiser}", style="dim")
    out.print(f"interval of the step: {expected.said()}", style="dim")
