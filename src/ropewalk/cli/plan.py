"""`ropewalk plan`: what should I do with this model on this cluster?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.best import SAMPLES_PER_GPU, ExplainedRequest, estimate_best, find_best, rerun_best
from ropewalk.cli.best_options import SpaceOptions
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.idle_options import given, refuse
from ropewalk.cli.lists import split
from ropewalk.cli.memory_limit import within_memory
from ropewalk.cli.model_options import ModelOptions
from ropewalk.cli.option_groups import names_of, with_options
from ropewalk.cli.packet_options import refuse_without_packets
from ropewalk.cli.places import refuse_plan
from ropewalk.cli.plan_networks import compare_networks
from ropewalk.cli.plan_options import (
    ComparisonOptions,
    NetworkOptions,
    Outputs,
    PlanRunOptions,
    PortOptions,
    SearchOptions,
)
from ropewalk.cli.screen import require_outputs
from ropewalk.cli.stack_options import StackOptions
from ropewalk.cli.wired import rewire, wire
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.codesign.question import PlanQuestion
    from ropewalk.sim.level import LevelUse

OF_A_RERUN = {*names_of(Outputs), *names_of(PlanRunOptions), "engine"}
"""Options beside `--from`: what is written, where the search runs and how finely its answer is simulated."""
OF_PORTS = ("servers", "degree", "duplex", "single_panel")
"""Options that say that ports are to be wired."""
OF_NETWORKS = ("optimiser", *names_of(SpaceOptions), *names_of(StackOptions))
OF_WIRING = ("prime_only", "selection", "budget", "chains", "rounds", "compare", "prices", "patch", "tables")
OF_ONE_NETWORK = (*OF_PORTS, *(name for name in OF_WIRING if name != "prices"), "explain")
"""Options that are about the one network of a cluster, or about its ports."""
NOT_ESTIMATED = ("plan", "page", "level", "most")
"""Options that an estimate cannot follow."""
DEFAULT_GPUS = 8


@within_memory
@with_options
def plan_command(
    context: typer.Context,
    model: str | None = typer.Argument(
        None,
        help="dlrm, candle, bert, ncf, resnet50 or vgg16 of the published study, or any model of `ropewalk simulate`.",
    ),
    *,
    what: ModelOptions,
    stack: StackOptions,
    place: ClusterOptions,
    ports: PortOptions,
    search: SearchOptions,
    space: SpaceOptions,
    against: ComparisonOptions,
    networks: NetworkOptions,
    run: PlanRunOptions,
    outputs: Outputs,
) -> None:
    """Find the best strategy for a model on a cluster, with a bound on any further gain.

    On an existing network: `ropewalk plan llama3-70b --cluster dgx-h100:64 --batch 1024 --seq 8192 --page plan.html`

    With ports to be wired, including the wiring: `ropewalk plan dlrm --servers 16 --degree 4 --bandwidth 100Gbps
    --compare all` (as published: `--device a100 --gpus-per-server 4 --dtype tf32`)

    Compare networks: `ropewalk plan llama-7b --cluster dgx-h100:4 --batch 256 --network rails,rail-only,wire`
    """
    files = (outputs.plan, outputs.page, outputs.patch, outputs.tables)
    require_outputs(*files, read=(model, outputs.again, place.cluster))
    if (model is None) == (outputs.again is None):
        raise InputError("name either a model to plan for, or a plan to rerun with --from")
    refuse_without_packets(context, (run.level,))
    level = run.use()
    if model is None:
        assert outputs.again is not None
        decided = given(context, (name for name in context.params if name not in OF_A_RERUN))
        refuse(decided, f"{outputs.again} fixes the question: leave it out, or plan for the model instead")
        _rerun(outputs.again, search.engine, level, outputs)
        return
    refuse_plan(model, f"rerun it with --from {model}, or name a model")
    if search.quick:
        refuse(given(context, (*OF_PORTS, "network", "target")), "--quick applies to one given network: leave it out")
    if networks.named:
        refuse(given(context, OF_ONE_NETWORK), "it does not apply to several networks or sizes: leave it out")
        question = _question(model, what, stack, place, space, search, level).question
        compare_networks(context, question, ports, networks, search.engine, outputs)
    elif given(context, OF_PORTS) or _has_ports(place):
        refuse(given(context, ("fabric", "rails")), "the planner wires the ports itself: leave it out")
        reason = "it applies to a given network, and here ports are to be wired: leave it out"
        refuse(given(context, OF_NETWORKS), reason)
        wire(_wiring_question(model, what, place, ports, search, against), search.engine, level, outputs)
    else:
        reason = "it applies to ports to be wired: leave it out, or give --servers and --degree"
        refuse(given(context, OF_WIRING), reason)
        _for_one_network(context, _question(model, what, stack, place, space, search, level), search, outputs)


def _for_one_network(context: typer.Context, asked: ExplainedRequest, search: SearchOptions, outputs: Outputs) -> None:
    """The plan for a cluster as it is, or with `--quick` an estimate of it."""
    if not search.quick:
        find_best(asked, outputs)
        return
    refuse(
        given(context, NOT_ESTIMATED),
        "--quick gives an estimate, which is neither simulated at a level nor a plan: leave out this option or --quick",
    )
    estimate_best(asked, json=outputs.json)


def _has_ports(place: ClusterOptions) -> bool:
    """Does the cluster that is named have ports to be wired?"""
    from ropewalk.hardware import Ports, read_cluster

    return place.cluster is not None and isinstance(read_cluster(place.cluster, place.given()).network, Ports)


def _wiring_question(
    model: str, what: ModelOptions, place: ClusterOptions, ports: PortOptions, search: SearchOptions,
    against: ComparisonOptions,
) -> PlanQuestion:  # fmt: skip
    from ropewalk.codesign.question import PlanQuestion

    cluster = ports.cluster(place)
    return PlanQuestion(
        what.named(model, cluster),
        cluster,
        precision=what.dtype,
        batch=what.batch,
        sequence=what.seq,
        prime_only=search.prime_only,
        selection=search.selection,
        allow=split(search.allow),
        budget=search.budget,
        chains=search.chains,
        rounds=search.rounds,
        compare=against.names,
        seed=search.seed,
    )


def _question(
    model: str, what: ModelOptions, stack: StackOptions, place: ClusterOptions, space: SpaceOptions,
    search: SearchOptions, level: LevelUse,
) -> ExplainedRequest:  # fmt: skip
    from ropewalk.planner.question import PlannerQuestion
    from ropewalk.strategy.by_stack import as_run_by
    from ropewalk.workload.zoo.stacks import stack_in

    cluster = place.of_gpus(None, DEFAULT_GPUS)
    named = what.named(model, cluster)
    question = PlannerQuestion(
        named,
        cluster,
        what.batch or SAMPLES_PER_GPU * cluster.gpus,
        what.seq,
        what.dtype,
        space.space(
            max(group.gpus for group in cluster.servers),
            as_run_by(stack_in(named), replace(stack.usual(), optimiser=what.optimiser)),
        ),
        split(search.allow),
        space.routing,
        search.seed,
        level,
        space.most,
    )
    return ExplainedRequest(question, tuple(space.explain or ()), search.engine)


def _rerun(path: Path, engine: str, level: LevelUse, outputs: Outputs) -> None:
    from ropewalk.planner.planned import is_searched
    from ropewalk.plans import read_plan

    if is_searched(read_plan(path)):
        rerun_best(path, engine, outputs)
    else:
        rewire(path, engine, level, outputs)
