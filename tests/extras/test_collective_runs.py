"""`ropewalk collective --run`: schedules in real processes give what torch.distributed gives."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

pytestmark = pytest.mark.extras

ROPEWALK = [sys.executable, "-c", "from ropewalk.cli import main; main()", "collective"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("allreduce", "mesh:2x3"),
        ("allgather", "ring:4", "--method", "topoadopt"),
        ("alltoall", "ring:4"),
        ("broadcast", "switch:4", "--root", "2"),
        ("allreduce", "torus:3x3", "--group", "0,4,8"),
    ],
    ids=["allreduce", "topoadopt", "alltoall", "broadcast", "relays"],
)
def test_a_schedule_that_is_run_agrees_with_torch_on_the_screen_and_on_the_page(arguments, tmp_path):
    page = tmp_path / "page.html"
    asked = (*arguments, "--no-compare", "--run", "--run-size", "1kB", "--json", "--page", str(page))
    done = subprocess.run([*ROPEWALK, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["run"]
    assert report["agrees"]
    assert {row["dtype"]: row["max_error"] for row in report["rows"]}["int64"] == 0
    assert f"Run in {report['ranks']} local processes" in page.read_text()
