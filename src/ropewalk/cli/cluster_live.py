"""Jobs of a live cluster, by a service or a file: `ropewalk cluster submit|end|cancel|hold|release|resize|status|…`.

Exit codes: 0 started or done, 3 queued, 4 impossible, 2 bad input, 1 the service cannot be reached.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ropewalk.cli import live_screen
from ropewalk.cli.cluster_plant import PlantOptions
from ropewalk.cli.job_options import GPUS, JobOptions, WantedOptions
from ropewalk.cli.live_options import NEVER, QUEUED, LiveOptions, asked, job_named
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.screen import JSON, print_json
from ropewalk.errors import InputError
from ropewalk.files import is_folder, is_there

JOB = typer.Argument(metavar="JOB", help="Job id or name.")


@with_options
def submit_command(
    name: str = typer.Argument(help="A name for the job."),
    *,
    job: JobOptions,
    files: Path | None = typer.Option(
        None, metavar="FOLDER", help="If the job starts: folder for its node list, host file, rank files and links."
    ),
    json: bool = JSON,
    live: LiveOptions,
    cluster: PlantOptions,
) -> None:
    """Submit a job: it starts (exit code 0), waits (3) or can never start here (4).

    Example: `ropewalk cluster submit train --gpus 64 --expected 2h`

    Example: `ropewalk cluster submit train --gpus 64 --state now.json --fabric leaf-spine:64x32x32`
    """
    whom = live.open(cluster, job.settings())
    found = asked(whom, "POST", "/v1/jobs", job.body(name)).document
    if files is not None and found["state"] == "running":
        _write_files(asked(whom, "GET", f"/v1/jobs/{found['id']}/files").document["files"], files)
    _show(found, json, live_screen.print_job)
    if found["state"] == "pending":
        raise typer.Exit(QUEUED)


@with_options
def what_if_command(json: bool = JSON, *, wanted: WantedOptions, live: LiveOptions, cluster: PlantOptions) -> None:
    """Check whether and when such a job would start, without changing anything; exit codes as for `submit`.

    Example: `ropewalk cluster what-if --gpus 128`
    """
    whom = live.open(cluster, wanted.settings())
    found = asked(whom, "POST", "/v1/what-if", wanted.body("what-if")).document
    _show(found, json, live_screen.print_what_if)
    if not found["would_start"]:
        raise typer.Exit(NEVER if found.get("never") else QUEUED)


@with_options
def end_command(
    job: str = JOB,
    outcome: str = typer.Option("done", help="Outcome: done, failed, cancelled or lost."),
    json: bool = JSON,
    *,
    live: LiveOptions,
) -> None:
    """End a job: its resources are freed, and other jobs start.

    Example: `ropewalk cluster end train`
    """
    whom = live.open()
    found = asked(whom, "POST", f"/v1/jobs/{job_named(whom, job)}/end", {"outcome": outcome}).document
    _show(found, json, live_screen.print_job)


@with_options
def cancel_command(job: str = JOB, json: bool = JSON, *, live: LiveOptions) -> None:
    """Cancel a waiting or running job."""
    whom = live.open()
    found = asked(whom, "POST", f"/v1/jobs/{job_named(whom, job)}/cancel", {}).document
    _show(found, json, live_screen.print_job)


@with_options
def resize_command(job: str = JOB, gpus: int = GPUS, json: bool = JSON, *, live: LiveOptions) -> None:
    """Resize a running job.

    Example: `ropewalk cluster resize train --gpus 128`
    """
    whom = live.open()
    found = asked(whom, "POST", f"/v1/jobs/{job_named(whom, job)}/resize", {"gpus": gpus}).document
    _show(found, json, live_screen.print_job)


@with_options
def hold_command(
    job: str = JOB, note: str = typer.Option("", help="Reason, shown with the job."), json: bool = JSON,
    *, live: LiveOptions,
) -> None:  # fmt: skip
    """Hold a waiting job until it is released.

    Example: `ropewalk cluster hold train --note "data is not ready"`
    """
    whom = live.open()
    found = asked(whom, "POST", f"/v1/jobs/{job_named(whom, job)}/hold", {"note": note} if note else {}).document
    _show(found, json, live_screen.print_job)


@with_options
def release_command(job: str = JOB, json: bool = JSON, *, live: LiveOptions) -> None:
    """Release a held job to its place in the queue."""
    whom = live.open()
    found = asked(whom, "POST", f"/v1/jobs/{job_named(whom, job)}/release", {}).document
    _show(found, json, live_screen.print_job)


@with_options
def status_command(
    job: str | None = typer.Argument(None, metavar="[JOB]", help="Job id or name."),
    json: bool = JSON,
    *,
    live: LiveOptions,
) -> None:
    """Show the cluster and its jobs, or one job.

    Example: `ropewalk cluster status`
    """
    whom = live.open()
    if job is not None:
        _show(asked(whom, "GET", f"/v1/jobs/{job_named(whom, job)}").document, json, live_screen.print_job)
        return
    status = asked(whom, "GET", "/v1/status").document
    jobs = asked(whom, "GET", "/v1/jobs", query={"state": "live", "limit": live_screen.MOST_JOBS}).document
    _show(status | {"live": jobs["jobs"], "more": jobs["next"] is not None}, json, live_screen.print_status)


@with_options
def queue_command(json: bool = JSON, *, live: LiveOptions) -> None:
    """List waiting jobs in queue order, with reasons."""
    _show(asked(live.open(), "GET", "/v1/queue").document, json, live_screen.print_queue)


def _show(document: dict[str, Any], json: bool, show: Any) -> None:
    if json:
        print_json(document)
    else:
        show(document)


def _write_files(files: dict[str, str], folder: Path) -> None:
    from ropewalk.export.cluster import write_files

    if is_there(folder) and not is_folder(folder):
        raise InputError(f"{folder} is a file: give a folder")
    for name in files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InputError(
                f"the service sent a file named {name!r} outside the folder: refused; check that the service is yours"
            )
    for path in write_files(files, folder):
        typer.echo(f"file: {path}", err=True)
