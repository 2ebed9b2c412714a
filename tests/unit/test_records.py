"""Records as plain values: what is written is read back, and every mistake is named by its place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from math import inf

import pytest

from ropewalk.errors import GraphError, StrategyError
from ropewalk.records import plain, record


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Leaf:
    size: int
    colour: Colour = Colour.RED
    cap: float = inf


@dataclass(frozen=True)
class Tree:
    name: str
    leafs: tuple[Leaf, ...] = ()
    span: tuple[int, float] = (0, 1.0)
    root: Leaf | None = None
    sizes: float | tuple[tuple[str, ...], ...] = 1.0
    tall: bool = False

    def __post_init__(self) -> None:
        if self.name == "":
            raise StrategyError("a tree without a name: give it one")


FULL = Tree("oak", (Leaf(1), Leaf(2, Colour.BLUE, 3.5)), (3, 0.5), Leaf(4), (("a", "b"), ("c",)), True)


@pytest.mark.parametrize("tree", [FULL, Tree("ash")])
def test_what_is_written_as_json_is_read_back(tree: Tree) -> None:
    text = json.dumps(plain(tree), allow_nan=False)
    assert record(Tree, json.loads(text), "tree", GraphError) == tree


def test_an_infinite_number_is_written_as_text() -> None:
    assert plain(Leaf(1))["cap"] == "inf"
    assert record(Leaf, plain(Leaf(1)), "leaf", GraphError).cap == inf


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": 3}, "name is 3: give text"),
        ({"tall": 1}, "tall is 1: give true or false"),
        ({"leafs": [{"size": 1.5}]}, r"leafs\[0\].size is 1.5: give a whole number"),
        ({"leafs": [{"size": True}]}, r"leafs\[0\].size is True: give a whole number"),
        ({"leafs": [{"size": 1, "colour": "green"}]}, "use one of red, blue"),
        ({"leafs": {}}, r"leafs is \{\}: give a list"),
        ({"span": [1]}, r"span is \[1\]: give a list of 2"),
        ({"root": {}}, "root.size is missing: give it"),
        ({"span": [1, 1e301]}, r"span\[1\] is 1e\+301: give a number"),
        ({"span": [1, 10**400]}, "give a number"),
        ({"name": ""}, "a tree without a name: give it one"),
        ({"extra": 1}, "extra: unknown entry: remove it"),
    ],
)
def test_a_mistake_is_named_by_its_place(change: dict[str, object], said: str) -> None:
    with pytest.raises(GraphError, match=said):
        record(Tree, plain(FULL) | change, "tree", GraphError)


def test_all_mistakes_are_raised_together() -> None:
    with pytest.raises(GraphError, match="3 findings"):
        record(Tree, {"leafs": 1, "tall": "yes"}, "tree", GraphError)
