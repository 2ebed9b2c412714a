"""Groups of options: a command gets them as records, and the command line sees every option in them."""

from dataclasses import dataclass
from inspect import signature

import typer

from ropewalk.cli.option_groups import names_of, with_options

SIZE = typer.Option("1MB", help="How large.")
SEED = typer.Option(0, help="Which one.")
LEVEL = typer.Option("flow", help="How finely.")


@dataclass(frozen=True)
class Sized:
    size: str
    seed: int


@dataclass(frozen=True)
class Run:
    level: str
    inside: Sized


def test_a_group_in_a_group_arrives_as_a_record_in_a_record():
    seen = []

    @with_options
    def command(name: str, *, run: Run, last: bool = False):
        seen.append((name, run, last))

    assert list(signature(command).parameters) == ["name", "level", "size", "seed", "last"]
    command(name="a", level="packet", size="2MB", seed=3, last=True)
    assert seen == [("a", Run("packet", Sized("2MB", 3)), True)]
    assert names_of(Run) == ["level", "size", "seed"]
    assert signature(command).parameters["seed"].default is SEED
