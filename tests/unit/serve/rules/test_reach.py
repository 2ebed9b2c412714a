import time
from pathlib import Path

import pytest

from ropewalk.serve.rules.driver import DriverError, DriverTimeout
from ropewalk.serve.rules.reach import Reach, reach_by

PATIENCE_S = 300.0
"""Before something is taken for lost: the machine may be busy with other things."""
HERE = Reach(lambda device: [], PATIENCE_S)


def test_a_script_runs_where_its_prefix_leads():
    assert HERE.run("leaf0", "echo $((6 * 7))\n") == "42\n"
    assert reach_by("env LEAF={device}", PATIENCE_S).run("leaf0", "echo $LEAF\n") == "leaf0\n"


def test_a_script_that_fails_says_why():
    with pytest.raises(DriverError, match="leaf0: no such table: try the same by hand, through env A=leaf0 sh"):
        reach_by("env A={device}", PATIENCE_S).run("leaf0", "echo no such table >&2; exit 3\n")


def test_a_prefix_that_is_not_there_is_an_error_in_words():
    with pytest.raises(DriverError, match="no-such-command"):
        reach_by("no-such-command-here {device}", PATIENCE_S).run("leaf0", "true\n")


def test_a_device_that_does_not_answer_is_given_up():
    with pytest.raises(DriverTimeout, match="no answer within 1 s"):
        Reach(lambda device: ["env"], 1.0).run("leaf0", "sleep 900\n")


def test_what_was_given_up_does_not_happen_later(tmp_path):
    shell = tmp_path / "shell"
    for limit_s in (1.0, 10.0, 100.0):  # until it has begun
        with pytest.raises(DriverTimeout):
            Reach(lambda device: ["env"], limit_s).run("leaf0", f"echo $$ > {shell}; sleep 900\n")
        if shell.exists() and shell.read_text():
            break
    deadline = time.monotonic() + PATIENCE_S
    while _runs(int(shell.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _runs(process):
    """Whether a process runs; one that has ended, and that nobody has asked about yet, does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.mark.parametrize("device", ["-oProxyCommand=x", "leaf 0", "leaf;reboot", "", "../leaf"])
def test_names_that_could_be_options_or_commands_are_refused(device):
    with pytest.raises(DriverError, match="is not allowed in a command"):
        reach_by("ssh {device}", PATIENCE_S).run(device, "true\n")
