"""Commands are imported when somebody asks for them; what lists say without them is what they say themselves."""

import subprocess
import sys

import pytest
from typer.main import get_command

from ropewalk.cli import app, blanks, commands
from ropewalk.cli.later import Later, LaterCommands

TABLES = {"": commands.COMMANDS, "cluster": commands.CLUSTER, "serve": commands.SERVE, "serve token": commands.TOKEN}
TABLES["lab"] = commands.LAB
ALL = [(words, word) for words, table in TABLES.items() for word in table]


def command_of(words):
    found = get_command(app)
    for word in words:
        found = found.commands[word]
    return found


@pytest.mark.parametrize(("group", "word"), ALL)
def test_a_list_of_commands_says_what_their_own_help_says_first(group, word):
    command, later = command_of([*group.split(), word]), TABLES[group][word]
    assert command.name == word
    assert command.help.partition("\n\n")[0].replace("\n", " ") == later.about
    assert later.panel == command.rich_help_panel or later.panel is None


def test_help_of_all_commands_loads_no_numbers_and_the_first_of_them_no_other_command():
    script = f"""
import sys
from ropewalk.cli import run
assert run(["--version"]) == run(["--help"]) == run(["lab", "--help"]) == run(["list", "--help"]) == 0
assert not [name for name in sys.modules if name in ("ropewalk.cli.plan", "ropewalk.cli.lab", "ropewalk.cli.cluster")]
for group, word in {ALL}:
    assert run([*group.split(), word, "--help"]) == 0
    loaded = [name for name in ("numpy", "scipy", "numba", "networkx", "jinja2") if name in sys.modules]
    assert not loaded, (group, word, loaded)
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_blanks_in_help_texts_are_written_down_as_the_tables_have_them():
    assert blanks.written() == blanks.found(), "run `python -m ropewalk.cli.blanks`"


def test_the_usual_command_of_a_group_may_be_left_out(ropewalk):
    assert "trace nowhere.csv does not exist" in ropewalk("cluster", "nowhere.csv").stderr


def test_a_slip_in_a_command_is_answered_with_the_nearest_one(ropewalk):
    answer = ropewalk("pln")
    assert answer.code == 2
    assert "Did you mean 'plan'" in answer.stderr


def test_commands_of_a_group_can_be_added_replaced_and_removed():
    table = LaterCommands({"one": Later("ropewalk.cli.list_command", "list_command", "One.")})
    table["two"] = "second"
    assert list(table) == ["one", "two"]
    assert table["one"].name == "one"
    table["one"] = "first"
    assert table["one"] == "first"
    del table["one"]
    assert dict(table) == {"two": "second"}
    assert "one" not in table
