"""`ropewalk list`: every table, searched, on the screen and as JSON, without loading what is listed."""

import json
import re
import subprocess
import sys

import pytest

from ropewalk.cli.tables import TABLES, DescribedCommand, filled, table
from ropewalk.errors import InputError


def run(*arguments):
    script = "import sys; from ropewalk.cli import main; main()"
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)


def test_alone_it_lists_the_kinds_with_counts():
    answer = run("list", "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == {plural: len(table(plural)) for plural in TABLES}


@pytest.mark.parametrize("plural", TABLES)
def test_every_table_is_called_what_people_type_and_every_choice_says_what_it_is(plural):
    choices = table(plural)
    assert choices.plural == plural
    for choice in choices.values():
        assert choice.about, choice.name
        assert not choice.about.endswith("."), choice.about
        assert all(choice.facts().values()), choice.name
        json.dumps(choice.as_json())
    assert len({tuple(choice.facts()) for choice in choices.values()}) == 1, "one set of columns"


@pytest.mark.parametrize("plural", TABLES)
def test_listing_loads_neither_numba_nor_scipy(plural):
    script = f"""
import sys
sys.argv = ["ropewalk", "list", "{plural}"]
from ropewalk.cli import app
app(standalone_mode=False)
assert "numba" not in sys.modules and "scipy" not in sys.modules, sorted(sys.modules)
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert all(name in answer.stdout for name in table(plural))


def test_programs_get_a_line_for_every_entry():
    lines = run("list", "collectives").stdout.splitlines()
    names = [line.split()[0] for line in lines[1:]]
    assert names == list(table("collectives"))


def test_a_search_finds_names_and_sentences():
    names = [row["name"] for row in json.loads(run("list", "models", "llama", "--json").stdout)["models"]]
    assert "llama-7b" in names
    assert all("llama" in name for name in names)
    grids = json.loads(run("list", "routers", "torus", "--json").stdout)["routers"]
    assert [row["name"] for row in grids] == ["dimension", "dimension-rotated"]


def test_models_show_parameters_and_devices_where_their_rates_come_from():
    (vgg,) = json.loads(run("list", "models", "vgg16", "image", "classifier", "--json").stdout)["models"]
    assert vgg["parameters"] == 138_357_544
    shown = run("list", "devices", "h200").stdout
    assert "141 GB" in shown
    assert "NVIDIA H200" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("routres",), "there is nothing called 'routres' to list: use one of models, devices"),
        (("models", "llamma"), "no model matches 'llamma': did you mean llama"),
    ],
)
def test_what_cannot_be_listed_is_refused_with_a_remedy(arguments, message):
    answer = run("list", *arguments)
    assert answer.returncode == 2
    assert message in answer.stderr


def test_help_texts_are_filled_from_the_tables():
    assert filled("Routers: {routers}.") == f"Routers: {', '.join(table('routers'))}."
    assert table("routers")["spray"].about in filled("{routers.described}")
    with pytest.raises(InputError, match="nothing called 'ropes' to list"):
        filled("{ropes}")


def every_command():
    from typer.main import get_command

    from ropewalk.cli import app

    def walk(command, words):
        if hasattr(command, "commands"):
            for name, inner in command.commands.items():
                yield from walk(inner, [*words, name])
        else:
            yield " ".join(words), command

    return dict(walk(get_command(app), []))


@pytest.mark.parametrize("words", every_command())
def test_the_help_of_every_command_names_choices_and_leaves_no_blanks(words):
    command = every_command()[words]
    assert isinstance(command, DescribedCommand)
    for text in [command.help, *(getattr(parameter, "help", None) for parameter in command.params)]:
        assert not re.search(r"[{}]", filled(text or ""))


def test_rates_of_devices_have_no_exponents():
    rates = table("devices")["b300"].facts()["peak TFLOP/s"]
    assert rates.endswith("nvfp4 13500")
    assert not any("e+" in choice.facts()["peak TFLOP/s"] for choice in table("devices").values())
