"""`ropewalk serve slurm-files` and `import-slurm`."""

from __future__ import annotations

from pathlib import Path

import typer

from ropewalk.cli.cluster_plant import PlantOptions, plant_of
from ropewalk.cli.live_options import LiveOptions, asked
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.screen import JSON, console, print_json
from ropewalk.errors import ClusterError, InputError


@with_options
def slurm_files_command(
    to: Path = typer.Option(..., metavar="FOLDER", help="Folder for the files."),
    socket: str = typer.Option("/run/ropewalk/ropewalk.sock", metavar="PATH", help="Socket of the service."),
    at: str = typer.Option("/etc/slurm/ropewalk", metavar="FOLDER", help="Installation folder of prologs and epilogs."),
    run: str = typer.Option(
        "/run/ropewalk-jobs", metavar="FOLDER", help="Folder on the nodes for rank files of running jobs."
    ),
    partition: str = typer.Option("batch", help="Partition of the cluster's nodes."),
    operator: list[int] = typer.Option(
        [], metavar="UID", help="User id that may release held jobs besides root: that of SlurmUser. May be repeated."
    ),
    wait: float = typer.Option(0.2, metavar="SECONDS", help="Time limit of a submission for a response."),
    pause: int = typer.Option(10, metavar="SECONDS", help="After a failure, time until the service is asked again."),
    rules_wait: int = typer.Option(5, metavar="SECONDS", help="Time limit for the routes of a job."),
    json: bool = JSON,
    *,
    cluster: PlantOptions,
) -> None:
    """Write files that connect Slurm to the service: job_submit plugin, prologs, epilogs, configuration, README.

    Example: `ropewalk serve slurm-files --fabric leaf-spine:4x4x8 --gpus-per-server 2 --to slurm/`
    """
    from ropewalk.serve.slurm.files import SlurmSite, slurm_files, write_slurm_files

    site = SlurmSite(
        socket=socket,
        at=at,
        run=run,
        state=str(Path(socket).parent),
        partition=partition,
        operators=tuple(operator),
        wait_s=wait,
        pause_s=pause,
        rules_wait_s=rules_wait,
    )
    written = write_slurm_files(slurm_files(plant_of(cluster), site), to)
    if json:
        print_json({"files": [str(path) for path in written]})
        return
    for path in written:
        console().print(str(path), soft_wrap=True)
    console().print(f"what to do with them: {to / 'README.md'}", style="dim", soft_wrap=True)


@with_options
def import_slurm_command(
    source: Path | None = typer.Option(
        None, "--from", metavar="FILE", help="Output of `squeue --json`.  [default: run squeue here]"
    ),
    json: bool = JSON,
    *,
    live: LiveOptions,
) -> None:
    """Adopt jobs that already run in Slurm: they keep their servers and get dedicated links if there are any.

    Example: `squeue --json > jobs.json && ropewalk serve import-slurm --from jobs.json`
    """
    from ropewalk.documents import decode, read_bytes
    from ropewalk.serve.slurm.commands import SlurmCommands
    from ropewalk.serve.slurm.importing import import_document
    from ropewalk.serve.slurm.queue import read_queue

    if live.state is not None:
        raise InputError("import-slurm needs a service: give --service instead of --state")
    if source is None:
        jobs = SlurmCommands().queue()
    else:
        jobs = read_queue(decode(read_bytes(source, str(source), ClusterError), str(source), ClusterError), str(source))
    document = import_document(jobs)
    found = asked(live.open(), "POST", "/v1/slurm/import", document).document
    if json:
        print_json(found)
        return
    say = console().print
    for one in found["adopted"]:
        kept = "with dedicated links" if one["managed"] else "on shared links"
        say(f"{one['external']} is {one['id']} now, {kept}", soft_wrap=True)
    for one in found["left"]:
        say(f"{one['external']} was not adopted: {one['why']}", soft_wrap=True)
    counts = f"{len(found['adopted'])} adopted, {len(found['known'])} already known, {len(found['left'])} not adopted"
    say(counts, style="bold")
