import time

import pytest

from ropewalk.serve.rules.driver import DriverError, DriverTimeout
from ropewalk.serve.rules.reach import Reach, reach_by

HERE = Reach(lambda device: [], 5.0)


def test_a_script_runs_where_its_prefix_leads():
    assert HERE.run("leaf0", "echo $((6 * 7))\n") == "42\n"
    assert reach_by("env LEAF={device}", 5.0).run("leaf0", "echo $LEAF\n") == "leaf0\n"


def test_a_script_that_fails_says_why():
    with pytest.raises(DriverError, match="leaf0: no such table: try the same by hand, through env A=leaf0 sh"):
        reach_by("env A={device}", 5.0).run("leaf0", "echo no such table >&2; exit 3\n")


def test_a_prefix_that_is_not_there_is_an_error_in_words():
    with pytest.raises(DriverError, match="no-such-command"):
        reach_by("no-such-command-here {device}", 5.0).run("leaf0", "true\n")


def test_a_device_that_does_not_answer_is_given_up(tmp_path):
    late = tmp_path / "late"
    with pytest.raises(DriverTimeout, match="no answer within 1 s"):
        Reach(lambda device: ["env"], 1.0).run("leaf0", f"sleep 3; touch {late}\n")
    time.sleep(2.5)
    assert not late.exists(), "what was given up must not happen later"


@pytest.mark.parametrize("device", ["-oProxyCommand=x", "leaf 0", "leaf;reboot", "", "../leaf"])
def test_names_that_could_be_options_or_commands_are_refused(device):
    with pytest.raises(DriverError, match="is not allowed in a command"):
        reach_by("ssh {device}", 5.0).run(device, "true\n")
