"""Ctrl-C while wirings are searched: the best so far is the answer, and it says so."""

import pytest

from ropewalk.codesign import study
from ropewalk.codesign.alternate import alternate
from ropewalk.codesign.planner import Planner
from ropewalk.codesign.question import PlanQuestion, published_servers
from ropewalk.fabric.wiring import Wiring
from ropewalk.strategy.seating import Seat, Seating

ASKED = PlanQuestion("candle", published_servers(8, degree=2), precision="tf32", budget=20, rounds=2, chains=2)


def stopped(*_: object) -> None:
    """An interrupt as a kernel passes it on."""
    raise SystemError("returned a result with an exception set") from KeyboardInterrupt()


def told(question: PlanQuestion) -> tuple[study.PlanAnswer, list[tuple[int, int | None, str]]]:
    seen: list[tuple[int, int | None, str]] = []
    return study.answer(question, lambda done, most, now: seen.append((done, most, now))), seen


def test_an_interrupt_between_turns_gives_the_best_so_far():
    first, second = (Seating(4, (Seat((server,)),)) for server in range(2))
    wiring = Wiring(4, 1, True, 1.0, 0.0, (), ((0, 1, 1),), 1, 0)
    times = {first: 3.0, second: 2.0}
    found = alternate(
        [first, second], search=stopped, rewire=lambda _: wiring, time=lambda one, _: times[one], rounds=3
    )
    assert (found.best.seating, found.ended) == (second, "interrupted")


def test_an_interrupt_before_anything_is_wired_ends_the_search():
    with pytest.raises(KeyboardInterrupt):
        alternate([Seating(4, (Seat((0,)),))], search=stopped, rewire=stopped, time=stopped, rounds=3)


@pytest.mark.parametrize("during", ["_search_baselines", "_search"])
def test_a_plan_that_is_interrupted_is_whole_and_says_so(monkeypatch, during):
    monkeypatch.setattr(Planner, "_chains" if during == "_search_baselines" else during, stopped)
    found, _ = told(ASKED)
    assert found.design.ended == "interrupted"
    assert "Interrupted: this is the best so far" in " ".join(found.design.notes)
    assert not found.design.baselines
    assert 0 < found.design.step_time_s <= max(turn.seconds for turn in found.design.history)


def test_chains_of_a_turn_move_the_bar():
    _, seen = told(ASKED)
    searching = [(done, most) for done, most, now in seen if now == "searching a strategy for ideal-switch"]
    assert searching == [(0, 20), (5, 20), (10, 20)]
    of_rounds = [done for done, _, now in seen if "round 1: strategies on this wiring" in now]
    assert len(of_rounds) > 2
    assert of_rounds == sorted(of_rounds)


def test_what_else_goes_wrong_is_no_interrupt():
    def broken(*_: object) -> None:
        raise SystemError("bad call")

    with pytest.raises(SystemError, match="bad call"):
        alternate([Seating(4, (Seat((0,)),))], search=broken, rewire=broken, time=broken, rounds=3)
