"""A wheel installs and works without the repository: every command, all data inside, kernels as it brought them."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ropewalk import __version__, compiled
from ropewalk.cli.commands import CLUSTER, COMMANDS, SERVE
from ropewalk.compiled import KernelTarget

pytestmark = pytest.mark.extras
ROOT = Path(__file__).parents[2]
MINUTES = 60.0
SMOKE = {
    "plan": "plan gpt2 --cluster 2x4 --batch 16 --seq 128 --plan plan.json --page plan.html",
    "export": "export plan.json --to run --output job",
    "simulate": "simulate plan.json --page step.html",
    "sync": "sync --logical ring --physical torus --hosts 16 --level packet --page sync.html",
    "collective": "collective allreduce dgx-a100:2 --export schedule.json --page collective.html",
    "pipeline": "pipeline gpt2 --cluster 1x4 --page pipeline.html",
    "overlap": "overlap resnet50 --cluster 2x2 --batch 64 --page overlap.html",
    "fabric": "fabric leaf-spine:2x2x2 --page fabric.html",
    "expect": "expect 2x4 -b 1MiB -e 1MiB",
    "cost": "cost gpt2",
    "list": "list devices",
    "warm": "warm --help",
    "ui": "ui --help",
    "profile": "profile --help",
    "cluster generate": "cluster generate jobs.csv --jobs 20 --fabric leaf-spine:4x8x8",
    "cluster": "cluster jobs.csv --fabric leaf-spine:4x8x8 --seeds 1 --page cluster.html",
    "cluster allocate": "cluster allocate --fabric leaf-spine:4x8x8 --gpus 16 --save state.json",
    "cluster submit": "cluster submit train --gpus 16 --state live.json --fabric leaf-spine:4x8x8",
    "serve": "serve token add --role submit --name ci --database store.db",
    "serve slurm-files": "serve slurm-files --fabric leaf-spine:4x8x8 --to slurm",
    "serve kubernetes-files": "serve kubernetes-files --fabric leaf-spine:4x8x8 --to kubernetes",
    "serve systemd-unit": "serve systemd-unit --user ropewalk",
    "lab": "lab status",
}
MOST_BYTES = 1_000_000
"""Of a page that a command writes."""


def ran(*command, **options):
    answer = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=60 * MINUTES, **options
    )
    assert answer.returncode == 0, f"{command}\n{answer.stdout[-2000:]}\n{answer.stderr[-4000:]}"
    return answer.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel with the kernels that this user's commands have compiled already."""
    folder = tmp_path_factory.mktemp("built")
    kernels = folder / "kernels"
    beside = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    ran(sys.executable, "-m", "ropewalk", *SMOKE["expect"].split(), env=beside)
    for module in compiled.kept().glob("ropewalk.*"):
        shutil.copytree(module, kernels / module.name, ignore=shutil.ignore_patterns("*.tmp.*"))
    KernelTarget.here().write(kernels)
    environment = {**os.environ, "ROPEWALK_KERNELS": str(kernels)}
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    ran(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT, env=environment)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment that has the wheel, its requirements and the extra `serve`, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    ran(sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    pins = ("--constraint", ROOT / "requirements" / "constraints.txt")
    ran(python, "-m", "pip", "--quiet", "install", "--no-compile", *pins, f"{wheel}[serve]")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    environment["XDG_CACHE_HOME"] = str(folder / "cache")  # of a user who has compiled nothing

    def run(*words):
        return ran(python.with_name("ropewalk"), *words, cwd=folder, env=environment)

    run.python, run.folder, run.environment = python, folder, environment
    return run


def test_the_wheel_has_the_version_the_data_and_nothing_of_the_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.name.startswith(f"ropewalk-{__version__}-cp3")
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "recipes"))]
    ours = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "ropewalk").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert ours <= set(names)


def test_every_command_is_in_the_smoke():
    assert {words.split()[0] for words in SMOKE} == set(COMMANDS)
    assert {words.split()[1] for words in SMOKE if " " in words} <= set(CLUSTER) | set(SERVE)


def test_every_command_answers_without_the_repository(installed):
    where = ran(installed.python, "-c", "import ropewalk; print(ropewalk.__file__)", cwd=installed.folder,
                env=installed.environment)  # fmt: skip
    assert Path(where.strip()).is_relative_to(installed.folder)
    assert installed("--version") == f"ropewalk {__version__}\n"
    for words in SMOKE.values():
        installed(*words.split())
    assert json.loads((installed.folder / "plan.json").read_text())
    assert (installed.folder / "job" / "README.md").exists()
    pages = {page.name: page.stat().st_size for page in installed.folder.glob("*.html")}
    assert len(pages) == 8
    assert max(pages.values()) < MOST_BYTES, pages


def test_kernels_of_the_wheel_are_taken(installed):
    script = (
        "from ropewalk import compiled; assert compiled._brought() is not None\n"
        "from numba.core import event\n"
        "with event.install_recorder('numba:compile') as heard:\n"
        "    from ropewalk.cli import run; assert run('expect 2x4 -b 1MiB -e 1MiB'.split()) == 0\n"
        "names = [one.data['dispatcher'].py_func.__name__ for _, one in heard.buffer]\n"
        "assert not names, names"
    )
    ran(installed.python, "-c", script, cwd=installed.folder, env=installed.environment)


def test_what_errors_advise_installs_the_extra_from_the_wheel(installed):
    python, folder = installed.python, installed.folder
    (folder / "net.onnx").touch()
    answer = subprocess.run(
        [python.with_name("ropewalk"), "cost", "net.onnx"], cwd=folder, env=installed.environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 2
    advice = answer.stderr.partition("not installed: ")[2].strip()
    assert advice == f'{python} -m pip install "ropewalk[onnx]"'
    subprocess.run(advice, shell=True, check=True, cwd=folder, env=installed.environment, capture_output=True)
    again = subprocess.run(
        [python.with_name("ropewalk"), "cost", "net.onnx"], cwd=folder, env=installed.environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert "has no operations" in again.stderr
