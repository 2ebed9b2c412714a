"""The fewest servers that reach a target, by a made-up cost of a size."""

import pytest

from ropewalk.errors import InputError, PlanError, UnitError
from ropewalk.planner.target import fewest_servers, read_target, sizes_that_divide

SIZES = sizes_that_divide(96, 48)


def work(size):
    """A hundred seconds of work that splits evenly."""
    return 100 / size


def fewest(seconds_of, longest_s, sizes=SIZES):
    said = {"limit_of": lambda size: f"{size} servers wait for the network", "text": "30s"}
    return fewest_servers(sizes, seconds_of, longest_s, **said)


@pytest.mark.parametrize("longest", [100, 50, 49, 30, 25, 12.5, 9, 5, 3, 2.1])
def test_the_fewest_servers_are_found_among_all_where_more_are_always_faster(longest):
    found = fewest(work, longest)
    assert found.servers == min(size for size in SIZES if work(size) <= longest)
    assert found.seconds == work(found.servers)


def test_sizes_are_doubled_and_then_all_between_are_tried():
    found = fewest(work, 100 / 24)
    assert [one.servers for one in found.tried] == [1, 2, 4, 8, 16, 32, 24]
    assert found.said == (
        "servers tried: 1 (100 s), 2 (50 s), 4 (25 s), 8 (12.5 s), 16 (6.25 s), 32 (3.125 s), 24 (4.167 s)"
    )
    assert fewest(work, 100).said == "servers tried: 1 (100 s)"


def test_a_size_between_doublings_counts_where_no_doubling_reaches_the_target():
    odd = {2: 20.0, 3: 1.0, 4: 15.0}
    assert fewest(lambda size: odd.get(size, 100.0), 10.0).servers == 3


def test_sizes_that_cannot_train_the_model_are_passed_over_and_said():
    def large_only(size):
        if size < 8:
            raise InputError(f"does not fit on {size}")
        return work(size)

    found = fewest(large_only, 20.0)
    assert found.servers == 8
    assert found.said.startswith("servers tried: 1 (no plan), 2 (no plan)")
    assert found.as_json()["tried"][0] == {"servers": 1, "seconds": None, "problem": "does not fit on 1"}


def test_a_target_that_nobody_reaches_names_the_fastest_and_what_limits_it():
    with pytest.raises(PlanError) as refused:
        fewest(lambda size: max(work(size), 7.0) + size / 100, 5.0)
    assert str(refused.value).startswith(
        "target 30s is 5 s per step, which no number of servers up to 48 reaches: 16 are fastest with 7.16 s, and 16 "
        "servers wait for the network: ask for 7.167 s per step, or name a larger cluster (servers tried: 1 (100 s), "
    )


def test_what_the_refusal_asks_for_is_reached():
    slow = lambda size: max(work(size), 7.0) + size / 100  # noqa: E731
    assert fewest(slow, 7.167).seconds == pytest.approx(7.16)


def test_a_model_that_fits_on_no_size_is_refused_with_the_reason_of_the_largest():
    def never(size):
        raise InputError(f"{size} servers are short of memory: use larger GPUs")

    with pytest.raises(PlanError, match="cannot be trained on 48 servers or fewer: 48 servers are short of memory"):
        fewest(never, 5.0, sizes=(1, 48))


def test_targets_are_steps_or_tokens():
    assert read_target("500ms").step_seconds(None) == 0.5
    assert read_target("1e12tokens/30days").step_seconds(1024 * 8192) == pytest.approx(21.74, abs=0.01)
    assert read_target("15Btokens / 1h").tokens_per_s == pytest.approx(15e9 / 3600)
    assert read_target("2e6tokens/s").step_seconds(4e6) == 2.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("30", "has no unit: write it like 10us"),
        ("0s", "the step time is too short: write it like 30s"),
        ("1e12tokens", "has no time: write it like 1e12tokens/30days"),
        ("1e12/30days", "token count '1e12' has no unit: write it like 1e12tokens"),
        ("1e12tokens/30", "has no unit"),
        ("0tokens/1s", "zero tokens or zero time"),
        ("1e12tokens/0s", "zero tokens or zero time"),
        ("fast", "not a number with a unit"),
    ],
)
def test_a_target_that_cannot_be_read_is_refused_with_how_to_write_it(text, message):
    with pytest.raises((PlanError, UnitError), match=message):
        read_target(text)


def test_a_model_without_tokens_has_targets_of_steps_only():
    with pytest.raises(PlanError, match="have no tokens: give a step time, such as --target 30s"):
        read_target("1e9tokens/1h").step_seconds(None)
