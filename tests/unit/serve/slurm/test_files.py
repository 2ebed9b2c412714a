"""The files for Slurm: whole, readable by Slurm's importer, and clean to the tools that check such files."""

import re
import shutil
import subprocess

import pytest

from ropewalk.errors import ClusterError, InputError
from ropewalk.serve.slurm.files import SCRIPTS, SlurmSite, slurm_files, topology_conf, write_slurm_files
from ropewalk.tenancy.imports import AssumedCabling, read_plant
from ropewalk.tenancy.plant import Plant, plant

SMALL = plant("leaf-spine:4x4x8", gpus_per_server=2)


def test_nothing_is_left_to_fill_in(tmp_path):
    files = slurm_files(SMALL, SlurmSite())
    assert not [name for name, text in files.items() if re.search("@[A-Z_]+@", text)]
    for path in write_slurm_files(files, tmp_path / "new"):
        assert (path.stat().st_mode & 0o111 != 0) == (path.name in SCRIPTS)


def test_the_topology_reads_back_as_the_same_plant(tmp_path):
    path = tmp_path / "topology.conf"
    path.write_text(topology_conf(SMALL))
    again = read_plant(path, AssumedCabling(gpus_per_server=2, spines=4))
    assert again.server_names == SMALL.server_names
    assert again.leaf_names == SMALL.leaf_names
    assert (again.server_leaf == SMALL.server_leaf).all()


@pytest.mark.skipif(shutil.which("luac5.1") is None, reason="luac5.1 is not installed (Debian: lua5.1)")
def test_the_plugin_is_lua(tmp_path):
    write_slurm_files(slurm_files(SMALL, SlurmSite()), tmp_path)
    subprocess.run(["luac5.1", "-p", tmp_path / "job_submit.lua"], check=True)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_the_scripts_are_clean(tmp_path):
    write_slurm_files(slurm_files(SMALL, SlurmSite()), tmp_path)
    subprocess.run(["shellcheck", "--shell=sh", *(tmp_path / name for name in SCRIPTS)], check=True)


@pytest.mark.parametrize(
    "fields",
    [
        {"socket": "relative.sock"},
        {"socket": "/run/$(reboot).sock"},
        {"socket": "/run/" + "x" * 120},
        {"at": "/etc/a b"},
        {"run": "/run/'; reboot; '"},
        {"partition": "a b"},
        {"operators": (-1,)},
        {"wait_s": 0.0},
    ],
)
def test_what_could_break_a_script_is_refused(fields):
    with pytest.raises(ClusterError, match="give"):
        SlurmSite(**fields)


def test_names_that_slurm_cannot_read_are_refused():
    odd = Plant("odd", 1, [0, 0], [[1]], server_names=("a b", "c"), leaf_names=("l",), spine_names=("s",))
    with pytest.raises(ClusterError, match="rename it"):
        slurm_files(odd, SlurmSite())


def test_a_file_in_the_way_is_not_overwritten(tmp_path):
    (tmp_path / "f").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        write_slurm_files(slurm_files(SMALL, SlurmSite()), tmp_path / "f")
