"""A plan as a folder with everything that starts the job: files of all frameworks that run it, ranks, Slurm, NCCL.

The folder is complete or absent: files are written beside it and moved into place together.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import mkdtemp

from ropewalk.errors import InputError
from ropewalk.export import deepspeed, environment, pytorch, torchtitan
from ropewalk.export.job import PlannedJob
from ropewalk.export.megatron import megatron_arguments
from ropewalk.export.mscclpp.of_plan import mscclpp_meetings, write_meeting
from ropewalk.export.nccl.of_plan import tuner_rows_of, tuner_table
from ropewalk.export.ranks import ranks_csv
from ropewalk.export.readme import readme
from ropewalk.export.slurm import ENVIRONMENT, LAUNCHER, batch_script, launch_script
from ropewalk.export.torch_pipeline import compute_only
from ropewalk.export.wiring import patch_csv, tables_csv
from ropewalk.files import is_file, is_folder, note_written, real_path, require_writable, write_whole
from ropewalk.plans import Plan, write_plan
from ropewalk.routing.listed import routes_listed
from ropewalk.strategy.frameworks import FRAMEWORKS

MARK = "README.md"


def write_run_folder(plan: Plan, folder: Path) -> list[Path]:
    """Write all files that apply; a folder that an earlier export wrote is replaced, any other is left alone."""
    _require_free(folder)
    target = real_path(folder)
    require_writable(target / MARK if is_folder(target) else target)
    try:
        made = Path(mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as problem:
        raise InputError(f"cannot write {folder}: {problem.strerror or problem}: choose another path") from None
    try:
        names = _fill(plan, made)
        made.chmod(0o777 & ~_umask())
        _take_place(made, target)
        note_written()
    except OSError as problem:
        raise InputError(f"cannot write {folder}: {problem.strerror or problem}: choose another path") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return [folder / name for name in names]


def _take_place(made: Path, target: Path) -> None:
    """The folder before is there until the new one is, also where somebody presses Ctrl-C in between."""
    before = made.with_name(f"{made.name}.before")
    try:
        if is_folder(target):
            os.replace(target, before)
        os.replace(made, target)
    finally:
        if is_folder(before) and not is_folder(target):
            os.replace(before, target)
        shutil.rmtree(before, ignore_errors=True)


def _umask() -> int:
    """What is taken from the rights of new files; it can only be read by setting it."""
    now = os.umask(0)
    os.umask(now)
    return now


def _require_free(folder: Path) -> None:
    """A folder that holds anything but an earlier export is nobody's to replace."""
    if is_file(folder):
        raise InputError(f"cannot write {folder}: it is a file: name a new folder")
    if (
        is_folder(folder)
        and any(folder.iterdir())
        and not ((folder / MARK).is_file() and (folder / "plan.json").is_file())
    ):
        raise InputError(f"cannot write {folder}: it holds other files: name a new folder")


def _fill(plan: Plan, folder: Path) -> list[str]:
    """Write everything into an empty folder; the names of the files, the first one to read first."""
    job = PlannedJob(plan)
    why_not = {name: job.refusal(name) for name in FRAMEWORKS}
    if why_not["pytorch"] is None:
        why_not["pytorch"] = pytorch.unfilled(job)
    frameworks = tuple(name for name, reason in why_not.items() if reason is None)
    files = _frameworks(job, frameworks)
    if frameworks:
        files |= _launching(job, frameworks, folder)
    files |= _wiring(plan)
    for name, content in files.items():
        write_whole(folder / name, content)
    write_plan(plan, folder / "plan.json")
    written = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    write_whole(folder / MARK, readme(job, why_not, written))
    return [MARK, *written]


def _frameworks(job: PlannedJob, frameworks: tuple[str, ...]) -> dict[str, str]:
    """What each framework reads."""
    plan, files = job.plan, {}
    if "megatron" in frameworks:
        files["megatron.args"] = megatron_arguments(plan, by_rank_file=True)
    if "torchtitan" in frameworks:
        files["torchtitan.toml"] = torchtitan.torchtitan_toml(plan)
        if torchtitan.needs_csv(job):
            files[torchtitan.CSV] = compute_only(plan.strategy.timetable)
    if "deepspeed" in frameworks:
        files["deepspeed.json"] = deepspeed.deepspeed_json(plan)
    if "pytorch" in frameworks:
        files["train.py"] = pytorch.pytorch_script(plan)
    return files


def _launching(job: PlannedJob, frameworks: tuple[str, ...], folder: Path) -> dict[str, str]:
    """Ranks, Slurm, NCCL; files of MSCCL++ go straight into the folder, where they are proved."""
    plan = job.plan
    on_mscclpp = mscclpp_meetings(plan)
    for meeting in on_mscclpp:
        write_meeting(plan, meeting, folder / environment.MSCCLPP)
    rows = tuner_rows_of(plan)
    names = [f"{'rings along cables' if one.along_cables else one.name} for {one.purpose}" for one in on_mscclpp]
    files = {
        "ranks.csv": ranks_csv(plan),
        LAUNCHER: launch_script(),
        "job.slurm": batch_script(job, frameworks),
        ENVIRONMENT: environment.nccl_environment(plan, rows, list(dict.fromkeys(names))),
    }
    table = tuner_table(rows)
    return files | ({environment.TUNER: table} if table else {})


def _wiring(plan: Plan) -> dict[str, str]:
    """What the people at the patch panel and the switches need, where the network was designed."""
    if plan.designed is None:
        return {}
    routes = routes_listed(plan.designed.fabric(), plan.designed.routes)
    cables = patch_csv(plan.designed.wiring, single_panel=plan.cluster.ports.single_panel)
    return {"patch.csv": cables, "tables.csv": tables_csv(routes)}
