"""Tables of choices: lookup, refusals, help texts and colours derive from the records."""

from dataclasses import dataclass

import pytest

from ropewalk.choices import Choice, Choices
from ropewalk.errors import InputError, RouteError
from ropewalk.palette import BLUE, GREY, SERIES


def even(number: int) -> str | None:
    return None if number % 2 == 0 else f"needs an even number, not {number}"


HALVES = Choices(
    "division",
    (
        Choice("halve", lambda number: number // 2, "half of it", applies=even, where="even numbers", colour=BLUE),
        Choice("keep", lambda number: number, "all of it", title="Keep it"),
        Choice("drop", lambda number: 0, "nothing of it"),
    ),
    error=RouteError,
)


def test_a_table_is_a_mapping_in_the_order_it_was_written():
    assert list(HALVES) == ["halve", "keep", "drop"]
    assert len(HALVES) == 3
    assert HALVES["halve"].make(8) == 4
    assert "half" not in HALVES
    assert HALVES.get("half") is None


def test_an_unknown_name_is_refused_with_near_names_and_the_list():
    with pytest.raises(RouteError) as caught:
        HALVES.named("HALF")
    assert str(caught.value) == "there is no division 'HALF': did you mean halve? use one of halve, keep, drop"
    assert HALVES.unknown("xyz", also=["default"]) == (
        "there is no division 'xyz': use one of default, halve, keep, drop"
    )


def test_a_choice_that_does_not_apply_is_refused_with_those_that_do():
    assert HALVES.names_for(3) == ("keep", "drop")
    assert HALVES.fitting("halve", 4).name == "halve"
    with pytest.raises(RouteError, match="division halve needs an even number, not 3: use one of keep, drop"):
        HALVES.fitting("halve", 3)


def test_where_nothing_applies_the_refusal_says_so():
    lonely = Choices("division", (HALVES["halve"],))
    with pytest.raises(InputError, match="not 3: no division applies here"):
        lonely.fitting("halve", 3)


def test_help_texts_come_from_the_records():
    assert HALVES.described() == "halve (half of it), keep (all of it), drop (nothing of it)"
    assert HALVES.described(["drop"]) == "drop (nothing of it)"
    assert [choice.label for choice in HALVES.values()] == ["halve", "Keep it", "drop"]


def test_every_choice_has_a_colour_and_free_ones_take_those_that_nobody_has():
    colours = HALVES.colours()
    assert colours["halve"] == BLUE
    assert colours["keep"] == next(colour for colour in SERIES if colour != BLUE)
    assert len(set(colours.values())) == 3
    many = Choices("number", [Choice(str(number), number, "a number") for number in range(len(SERIES) + 1)])
    assert list(many.colours().values()) == [*SERIES, GREY]


def test_a_table_can_have_another_record_for_a_while():
    with HALVES.including(Choice("keep", lambda number: -number, "the opposite"), Choice("third", len, "a third")):
        assert list(HALVES) == ["halve", "keep", "drop", "third"]
        assert HALVES["keep"].make(3) == -3
    assert list(HALVES) == ["halve", "keep", "drop"]
    assert HALVES["keep"].make(3) == 3


def test_a_name_cannot_be_in_a_table_twice():
    with pytest.raises(ValueError, match="division keep is in its table twice"):
        Choices("division", (HALVES["keep"], HALVES["keep"]))


def test_kinds_may_say_more_about_their_choices():
    @dataclass(frozen=True)
    class Pieced(Choice[int]):
        pieces: int = 1

    table = Choices("piece", (Pieced("two", 2, "two pieces", pieces=2),))
    assert table["two"].pieces == 2
