"""`ropewalk cluster allocate` and `rules`: one job on a cluster as it is now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ropewalk.cli.change_options import ChangeOptions
from ropewalk.cli.cluster_plant import ISOLATE_OF_STATE, STATE, PlantOptions, plant_for, read_state
from ropewalk.cli.cluster_screen import some
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.screen import JSON, console, print_json, print_whole, require_outputs
from ropewalk.errors import ClusterError, InputError
from ropewalk.files import is_file, is_folder, is_there

if TYPE_CHECKING:
    from ropewalk.tenancy.allocation import Allocation, Waiting
    from ropewalk.tenancy.occupancy import Occupancy
    from ropewalk.tenancy.plant import Plant
    from ropewalk.tenancy.policies import Policy
    from ropewalk.tenancy.seats import RankSwitches
    from ropewalk.tenancy.shards.plant import PanelPlant

NUMBERED = "numbered"
"""Addresses that are made up, for a plant that has none yet."""
QUEUED, NEVER = 3, 4
"""Exit codes: the job waits; it can never start here."""
MOST_RANKS = 32
"""Rows of the table of ranks; all are in the JSON."""


@with_options
def allocate_command(
    *,
    gpus: int | None = typer.Option(None, min=1, help="GPUs of the job; not needed for --release, --drain or "
        "--restore alone."),
    job: str = typer.Option("job", help="Its name."),
    state: Path | None = STATE,
    isolate: str | None = ISOLATE_OF_STATE,
    changes: ChangeOptions,
    save: Path | None = typer.Option(
        None, metavar="FILE", help="Write the state with the job placed; without this option nothing changes."
    ),
    prove: str | None = typer.Option(
        None, metavar="COLLECTIVE", help="Prove that this collective is contention-free, or show a contended round."
    ),
    metrics: Path | None = typer.Option(
        None, metavar="FILE", help="Write used, free and requested resources in Prometheus format."
    ),
    json: bool = JSON,
    cluster: PlantOptions,
) -> None:  # fmt: skip
    """Show the leafs, spines, links and rank order that a job would get now, or why it waits.

    Exit code 0: it starts; 3: it waits; 4: it can never start here.

    Example: `ropewalk cluster allocate --fabric leaf-spine:64x32x32 --state now.json --gpus 128 --save next.json`
    """
    if gpus is None and not changes.given:
        raise InputError("there is nothing to do: give --gpus for a job, or --release, --drain or --restore")
    if gpus is None and prove is not None:
        raise InputError("--prove needs a job to place: add --gpus")
    require_outputs(save, metrics, read=(cluster.cluster, cluster.fabric))
    _refuse_to_forget(save)
    policy = policy_for(isolate, state)
    now = read_state(policy, plant_for(cluster, state), state)
    still = changes.make(now)
    got = None if gpus is None else request(policy, now, job, gpus)
    document: dict[str, Any] = {"plant": now.plant.name, "free_gpus": now.free, "released": changes.release}
    if got is not None:
        document = describe(now.plant, got, job, gpus or 0, policy)
    document["still_on_drained_parts"] = list(still)
    if prove is not None and document["placed"]:
        document["proof"] = _proof(now, got, prove)
    if save is not None:
        if document.get("placed"):
            now.place(got)  # type: ignore[arg-type]
        _save(now, save)
    if metrics is not None:
        _write_metrics(now, got, metrics)
    if json:
        print_json(document)
    elif got is None:
        console().print(f"{now.free} of {now.plant.gpus} GPUs are free", style="bold")
    else:
        _print(document)
    if not document.get("placed", True):
        raise typer.Exit(NEVER if document["never"] else QUEUED)


def request(policy: Policy, now: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
    """Ask for GPUs; more than the cluster has can never start."""
    from ropewalk.tenancy.job import name_flaw

    if flaw := name_flaw(job):
        raise ClusterError(flaw)
    if job in now.jobs:
        raise ClusterError(f"job {job!r} is already running: give another name, or --release it first")
    return policy.make(now, job, gpus)


def _waits_above(plant: Plant, got: Waiting) -> dict[str, Any]:
    """What only jobs that wait on three tiers have."""
    if got.tier is None:
        return {}
    return {"tier": got.tier, "blocking_cores": [plant.core_names[core] for core in got.blocking_cores]}


def _above(plant: Plant, got: Allocation) -> dict[str, Any]:
    """What only jobs over several pods have."""
    if not got.core_links:
        return {}
    return {
        "pods": len(set(plant.tiers.pod_of_leaf[list(got.leafs)].tolist())),
        "cores": [plant.core_names[core] for core in got.cores],
        "core_links": [
            [plant.spine_names[spine], plant.core_names[core], cable] for spine, core, cable in got.reserved_above()
        ],
    }


def policy_for(isolate: str | None, state: Path | None) -> Policy:
    """The policy that was asked for; else that of a state file which has one, else vClos."""
    if isolate is None and state is not None and is_there(state):
        from ropewalk.serve.state_file import plant_of_state

        kept = plant_of_state(state)
        if kept is not None:
            return kept[1].rule
    return policy_named(isolate or "vclos")


def policy_named(isolate: str) -> Policy:
    from ropewalk.tenancy.policies import POLICIES, policies_named

    (policy,) = policies_named([isolate], None, compare=False) if isolate != "none" else (POLICIES["ecmp"],)
    return policy


def describe(plant: Plant, got: Allocation | Waiting, job: str, gpus: int, policy: Policy) -> dict[str, Any]:
    """An answer by the names of the plant; a job that can never start is told which sizes near it can."""
    from ropewalk.tenancy.allocation import Waiting
    from ropewalk.tenancy.other_sizes import sizes_that_start

    asked = {"job": job, "gpus": gpus, "plant": plant.name}
    if isinstance(got, Waiting):
        return asked | {
            "placed": False,
            "reason": got.reason.value,
            "explanation": got.explanation,
            "blocking_spines": [plant.spine_names[spine] for spine in got.blocking_spines],
            "never": got.never,
            **({"sizes_that_start": list(sizes_that_start(policy.make, plant, gpus))} if got.never else {}),
            **_waits_above(plant, got),
        }
    cables = got.cables or (0,) * len(got.links)
    return asked | {
        "placed": True,
        "stage": got.stage,
        "guarantee": got.guarantee,
        "leafs": [plant.leaf_names[leaf] for leaf in got.leafs],
        "gpus_on_leaf": list(got.gpus_on_leaf()),
        "spines": [plant.spine_names[spine] for spine in got.spines],
        "links": [
            [plant.leaf_names[leaf], plant.spine_names[spine], cable]
            for (leaf, spine), cable in zip(got.links, cables, strict=True)
        ],
        **_above(plant, got),
        "rank_order": [
            {
                "rank": rank,
                "server": plant.server_names[gpu // plant.gpus_per_server],
                "gpu": gpu % plant.gpus_per_server,
                "leaf": plant.leaf_names[leaf],
                "spine": plant.spine_names[spine] if spine >= 0 else None,
                **({"core": plant.core_names[got.core_of_gpu[rank]]} if got.core_links else {}),
            }
            for rank, (gpu, leaf, spine) in enumerate(zip(got.gpus, got.leaf_of_gpu, got.spine_of_gpu, strict=True))
        ],
    }


def _proof(now: Occupancy, got: Allocation | Waiting | None, collective: str) -> dict[str, Any]:
    from ropewalk.tenancy.allocation import Allocation
    from ropewalk.tenancy.contention import Proof, contention_free
    from ropewalk.tenancy.shards.allocate import SHARD
    from ropewalk.tenancy.shards.plant import PanelPlant

    assert isinstance(got, Allocation)
    if got.size < 2:
        return {"collective": collective, "contention_free": True, "fact": "one GPU sends nothing"}
    if isinstance(now.plant, PanelPlant) and got.stage == SHARD:
        return {"collective": collective, **_on_its_cables(now.plant, got, collective)}
    seen = _seen(now, got)
    found = contention_free(
        seen,
        collective,
        ranks_per_server=min(now.plant.gpus_per_server, got.size),
        plant=None if got.has_circuits else now.plant,
    )
    if isinstance(found, Proof):
        fact = (
            f"{found.rounds} rounds, {found.cross_leaf_flows} flows between leafs, no link carries more than a NIC does"
        )
        return {"collective": collective, "contention_free": True, "fact": fact}
    return {"collective": collective, "contention_free": False, "fact": str(found)}


def _seen(now: Occupancy, got: Allocation) -> Allocation | RankSwitches:
    """What the theory is about: a job with circuits as if its virtual switches were real ones."""
    from ropewalk.tenancy.optical.circuits import as_virtual_clos, as_virtual_tree

    if got.stage in ("ocs-core", "ocs-pods"):
        return as_virtual_tree(now.plant, got)
    return as_virtual_clos(got) if got.stage == "ocs" else got


def _on_its_cables(plant: PanelPlant, got: Allocation, collective: str) -> dict[str, Any]:
    """What a topology that is wired for the collective makes of it."""
    from ropewalk.tenancy.rates import SharedNetwork
    from ropewalk.tenancy.shards.wired import wired_for
    from ropewalk.tenancy.work import Iteration, JobExchange

    work = Iteration(0.0, (JobExchange(collective, 1e9),))
    wired = wired_for(plant, work, got)
    footprint = SharedNetwork(plant, "source", 0).footprint(work, got)
    slower = footprint.alone_iteration_s / footprint.quiet_iteration_s
    busiest = "at the full speed of the NICs" if slower <= 1 + 1e-9 else f"the busiest makes it {slower:.2f} x as long"
    fact = f"{0 if wired is None else wired.cables} cables of its own, wired for it, {busiest}"
    return {"contention_free": slower <= 1 + 1e-9, "fact": fact}


def _save(now: Occupancy, path: Path) -> None:
    from ropewalk.tenancy.saved_state import write_state

    now.check()
    write_state(path, now.as_document())
    typer.echo(f"state: {path} ({len(now.jobs)} job{'s' * (len(now.jobs) != 1)}, {now.free} GPUs free)", err=True)


def _refuse_to_forget(save: Path | None) -> None:
    """A file that keeps a queue and a history is not written over by a snapshot, which has neither."""
    if save is None or not is_file(save):
        return
    from ropewalk.serve.state_file import is_controllers

    if is_controllers(save):
        raise InputError(
            f"{save} keeps a queue and a history, which a snapshot does not have: save to another file, or change it "
            "by "
            "`ropewalk cluster submit`, `end` and `drain` with --state"
        )


def _write_metrics(now: Occupancy, got: Allocation | Waiting | None, path: Path) -> None:
    from ropewalk.export.cluster import metrics
    from ropewalk.files import write_whole
    from ropewalk.tenancy.allocation import Waiting

    write_whole(path, metrics(now, [got] if isinstance(got, Waiting) else ()))


def explained(document: dict[str, Any]) -> str:
    """Why a job does not start, and what to ask for instead if it never does."""
    from ropewalk.tenancy.other_sizes import ask_for

    advice = ask_for(document.get("sizes_that_start", ()))
    return f"{document['explanation']}. {advice[0].upper()}{advice[1:]}" if advice else str(document["explanation"])


def _print(document: dict[str, Any]) -> None:
    say = console().print
    if not document["placed"]:
        verdict = "can never start here" if document["never"] else "waits"
        say(f"{document['job']} {verdict}: {document['reason']}", style="bold")
        say(explained(document), soft_wrap=True)
        for kind in ("spines", "cores"):
            if document.get(f"blocking_{kind}"):
                say(f"blocking {kind}: {some(document[f'blocking_{kind}'])}", soft_wrap=True)
        return
    spread = [f"{name} ({n})" for name, n in zip(document["leafs"], document["gpus_on_leaf"], strict=True)]
    say(
        f"{document['job']} starts on {document['gpus']} GPUs: {document['stage']}, {document['guarantee']}",
        style="bold",
    )
    say(f"leafs: {some(spread)}", soft_wrap=True)
    if document["spines"]:
        say(f"spines: {some(document['spines'])}; {len(document['links'])} dedicated links", soft_wrap=True)
    if "cores" in document:
        count = len(document["core_links"])
        say(f"cores: {some(document['cores'])}; {count} dedicated links, over {document['pods']} pods", soft_wrap=True)
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("rank", "server", "gpu", "leaf", "spine", *["core"] * ("cores" in document)):
        table.add_column(name, justify="right" if name in ("rank", "gpu") else "left", no_wrap=True)
    for row in document["rank_order"][:MOST_RANKS]:
        switches = row["leaf"], row["spine"] or "–", *([row["core"]] if "core" in row else [])
        table.add_row(str(row["rank"]), row["server"], str(row["gpu"]), *switches)
    print_whole(table)
    if len(document["rank_order"]) > MOST_RANKS:
        say(f"and {len(document['rank_order']) - MOST_RANKS} more ranks; --json lists all", style="dim")
    if "proof" in document:
        proof = document["proof"]
        verdict = "contention-free" if proof["contention_free"] else "CONTENDED"
        say(f"{proof['collective']} {verdict}: {proof['fact']}", soft_wrap=True)


@with_options
def rules_command(
    job: str = typer.Argument(help="A job of the state file."),
    to: Path = typer.Option(..., metavar="FOLDER", help="Folder for the files."),
    state: Path | None = STATE,
    isolate: str | None = ISOLATE_OF_STATE,
    addresses: str | None = typer.Option(
        None, metavar="FILE", help="Addresses of NICs, leaf subnets and uplinks (CSV); `numbered` generates a plan. "
        "Without it there are no leaf rules.",
    ),
    json: bool = JSON,
    *,
    cluster: PlantOptions,
) -> None:  # fmt: skip
    """Write the files of a running job: nodes in rank order, rank files, reserved links, rules (JSON and SONiC).

    SONiC files hold the rules of all jobs on the leafs of this one, because a leaf has one table for all.

    Example: `ropewalk cluster rules big --state now.json --fabric leaf-spine:64x32x32 --addresses nics.csv --to big/`
    """
    from ropewalk.export.cluster import (
        AddressPlan,
        addresses_csv,
        check_written,
        job_files,
        leaf_rules,
        read_addresses,
        sonic_documents,
        sonic_files,
        write_files,
    )  # fmt: skip

    policy = policy_for(isolate, state)
    now = read_state(policy, plant_for(cluster, state), state)
    if job not in now.jobs:
        some = ", ".join(list(now.jobs)[:8])
        raise ClusterError(f"no job {job!r} runs in the state{f': name one of {some}' if some else ', which has none'}")
    held = now.jobs[job]
    plan, everybody = None, []
    if addresses == NUMBERED:
        plan = AddressPlan.numbered(now.plant)
    elif addresses is not None:
        plan = read_addresses(addresses, now.plant)
    files = job_files(now.plant, held, plan)
    if plan is not None:
        everybody = [one for one in leaf_rules(now.plant, now.jobs.values(), plan) if one.leaf in held.leafs]
        files |= sonic_files(sonic_documents(everybody, now.plant, plan), now.plant)
        if addresses == NUMBERED:
            files["addresses.csv"] = addresses_csv(plan, now.plant)
    if is_there(to) and not is_folder(to):
        raise InputError(f"{to} is a file: give a folder")
    written = write_files(files, to)
    checked = check_written(to, files, now.plant, held, plan, everybody)
    if json:
        print_json({"job": job, "files": [str(path) for path in written], "read_back": list(checked)})
    else:
        for path in written:
            console().print(str(path), soft_wrap=True)
        console().print(f"{len(checked)} files read back and compared with the state", style="dim")
