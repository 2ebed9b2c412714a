"""Debian's Slurm with the controller beside it: slurmctld and 16 slurmd on this machine, jobs through sbatch."""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from served_process import Served
from slurm_machine import ENDED, PATIENCE_S, SlurmMachine, why_not
from slurm_story import tell_story, views_agree

from ropewalk.serve.slurm.files import SlurmSite, slurm_files, write_slurm_files
from ropewalk.tenancy.plant import plant

pytestmark = [pytest.mark.extras, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]
FABRIC = ("--fabric", "leaf-spine:4x8x8", "--gpus-per-server", "2")
NOBODY = 65534


@pytest.fixture(scope="module")
def site():
    """A short path, because sockets have short names, that other users may enter."""
    folder = Path(tempfile.mkdtemp(prefix="rw-slurm-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def machine(site):
    small = plant("leaf-spine:4x8x8", gpus_per_server=2)
    where = SlurmSite(
        socket=str(site / "rw.sock"),
        at=str(site / "files"),
        run=str(site / "jobs"),
        state=str(site),
        wait_s=30,
        pause_s=2,
        rules_wait_s=2,
    )
    write_slurm_files(slurm_files(small, where), site / "files")
    with SlurmMachine(site / "slurm", small.server_names, site / "files") as running:
        yield running


@pytest.fixture(scope="module")
def served(site, machine):
    options = (*FABRIC, "--no-auth", "--slurm", "--slurm-poll", "1s", "--slurm-patience", "30s")
    with Served(site / "serve", *options, environment=machine.environment, socket=site / "rw.sock") as running:
        yield running


@pytest.fixture
def quiet(machine, served):
    """Nothing runs or waits before a test and after it."""
    yield
    for number, job in machine.jobs().items():
        if job["job_state"] not in ENDED:
            machine.ask("scancel", number, check=False)
    machine.wait_for(machine.all_over, "the test's jobs are over")
    machine.wait_for(lambda: not served.jobs(), "the controller has none of them")


def test_a_job_gets_servers_and_links_and_its_ranks_in_order(machine, served, site, quiet):
    first, said = machine.sbatch("--nodes=1", script="sleep 900")
    assert not said
    out = site / "ranks.txt"
    script = f"{site}/files/ropewalk-srun sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME' > {out}; sleep 900"
    number, _ = machine.sbatch("--nodes=8", "--ntasks-per-node=2", script=script)
    machine.wait_for(lambda: views_agree(machine, served, 2), "both run")
    job = next(one for one in served.jobs("running") if one["external"] == f"slurm:{number}")
    assert job["allocation"]["guarantee"] == "contention-free"
    order = [server["name"] for server in job["allocation"]["servers"]]
    machine.wait_for(lambda: out.exists() and len(out.read_text().splitlines()) == 16, "all ranks have spoken")
    ranks = dict(line.split() for line in out.read_text().splitlines())
    assert [ranks[str(rank)] for rank in range(16)] == [name for name in order for _ in range(2)]
    assert f"slurm:{first}" in {one["external"] for one in served.jobs("running")}


def test_a_job_that_must_wait_is_held_and_its_user_cannot_release_it(machine, served, quiet):
    first, _ = machine.sbatch("--nodes=16", script="sleep 900")
    held, said = machine.sbatch("--nodes=2", script="sleep 900", user=NOBODY)
    assert "ropewalk holds this job" in said
    machine.wait_for(lambda: machine.jobs()[held]["priority"] == 0, "it is held")
    refused = machine.ask("scontrol", "release", held, user=NOBODY, check=False)
    assert "denied" in refused.stderr
    assert "ropewalk starts this job when its links are free" in machine.log()
    refused = machine.ask("scontrol", "update", f"JobId={held}", "NumNodes=1", user=NOBODY, check=False)
    assert "denied" in refused.stderr
    assert "cancel the job and submit it again" in machine.log()
    assert machine.jobs()[held]["job_state"] == "PENDING"
    machine.ask("scancel", first)
    machine.wait_for(lambda: machine.jobs()[held]["job_state"] == "RUNNING", "ropewalk starts it")
    machine.wait_for(lambda: views_agree(machine, served, 1), "both sides see it")


def test_an_impossible_job_is_refused_with_its_reason(machine, served):
    number, said = machine.sbatch("--nodes=5", check=False)
    assert number is None
    assert "can never be allocated" in said


def test_a_job_array_gets_its_servers_task_by_task(machine, served, quiet):
    machine.sbatch("--nodes=4", "--array=0-5", script="sleep 0.5")
    machine.wait_for(machine.all_over, "all tasks are over")
    tasks = [job for job in machine.jobs().values() if job["array_job_id"]]
    assert {job["job_state"] for job in tasks} == {"COMPLETED"}
    assert all("ropewalk token=" in job["admin_comment"] for job in tasks)


def test_a_job_cancelled_in_the_controller_is_cancelled_in_slurm(machine, served, quiet):
    number, _ = machine.sbatch("--nodes=2", script="sleep 900")
    machine.wait_for(lambda: views_agree(machine, served, 1), "it runs")
    (job,) = served.jobs("running")
    served.ask("POST", f"/v1/jobs/{job['id']}/cancel")
    machine.wait_for(lambda: machine.jobs()[number]["job_state"] == "CANCELLED", "Slurm cancels it")


def test_a_node_out_of_service_in_slurm_gets_no_jobs(machine, served, quiet):
    machine.ask("scontrol", "update", "NodeName=server0", "State=DRAIN", "Reason=test")
    machine.wait_for(lambda: "server:server0" in served.ask("GET", "/v1/status")["drained"], "it is drained here")
    number, _ = machine.sbatch("--nodes=1", script="sleep 900")
    machine.wait_for(lambda: machine.jobs()[number]["job_state"] == "RUNNING", "it runs")
    assert machine.jobs()[number]["nodes"] != "server0"
    machine.ask("scontrol", "update", "NodeName=server0", "State=RESUME")
    machine.wait_for(lambda: not served.ask("GET", "/v1/status")["drained"], "it is back")


def test_without_an_answer_slurm_goes_on_and_says_so_and_the_job_is_adopted_later(machine, served, quiet):
    time.sleep(2.1)
    served.hang()
    try:
        number, said = machine.sbatch("--nodes=4", script="sleep 900")
        assert "ropewalk does not answer (timeout): Slurm places this job alone" in said
        # The next ones do not ask at all: a hung controller costs one submission its time.
        _, said = machine.sbatch("--nodes=1", script="sleep 900")
        assert "Slurm places this job alone" in said
        assert "not placed by ropewalk" in machine.jobs()[number]["admin_comment"]
        machine.wait_for(lambda: machine.jobs()[number]["nodes"], "Slurm starts it")
    finally:
        served.go_on()
    machine.wait_for(lambda: views_agree(machine, served, 2), "adopted")
    assert any(job["external"] == f"slurm:{number}" for job in served.jobs("running"))


def test_running_jobs_are_imported_by_a_controller_that_is_new_to_the_cluster(machine, served, site, quiet):
    machine.sbatch("--nodes=4", script="sleep 900")
    machine.wait_for(lambda: views_agree(machine, served, 1), "it runs")
    listing = site / "jobs.json"
    listing.write_text(machine.ask("squeue", "--json").stdout)
    with Served(site / "new", *FABRIC, "--no-auth") as new:
        command = ["import-slurm", "--from", str(listing), "--service", f"unix:{new.socket}"]
        for expected in ("1 adopted, 0 already known", "0 adopted, 1 already known"):
            ran = subprocess.run(
                [sys.executable, "-m", "ropewalk", "serve", *command],
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
            )
            assert expected in ran.stdout, ran.stderr
        (job,) = new.jobs("running")
        assert len(job["allocation"]["servers"]) == 4


def test_forty_jobs_with_both_sides_killed_leave_nothing_behind(machine, served):
    told = tell_story(machine, served, 40, seed=18, kills=2, restarts=1)
    assert not told.violations
    assert told.polls > 10
    assert told.kills == 2
    assert served.ask("GET", "/v1/status")["gpus"] == {"total": 32, "used": 0, "free": 32}
    assert set(told.outcomes) <= {"COMPLETED", "CANCELLED"}
    assert not Path("/ropewalk-was-here").exists()
