"""What NVIDIA publishes as fastest (rows and sources in the data file), looked up in the ranking of our own search."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from modern_runs import MODELS
from published_choices import Ranked, published_choices, ranked


def test_rows_that_cannot_be_said_are_counted_by_reason():
    why = Counter(one.why_not() for one in published_choices())
    assert sum(why.values()) == 123
    assert {one.id for one in published_choices() if not one.why_not()} >= {
        "g02166", "g02211", "g02256", "g02333", "g02367", "g02368", "g02371", "g02373"
    }  # fmt: skip
    assert all(
        reason.endswith(("not priced", "no device here", "no such products", "no model here", "ranks too", ""))
        for reason in why
    )


def test_seconds_of_a_step_follow_from_tokens_per_second():
    gpt_oss = next(one for one in published_choices() if one.id == "g02166")
    assert round(gpt_oss.seconds, 3) == round(1280 * 4096 / (5824 * 64), 3)
    assert (gpt_oss.zero, gpt_oss.expert, gpt_oss.pipeline, gpt_oss.interleave) == (1, 8, 4, 1)
    assert next(one for one in published_choices() if one.id == "g02373").zero == 3


def test_a_published_choice_has_its_place_in_the_ranking(monkeypatch):
    monkeypatch.setitem(MODELS, "llama, tiny", "llama:layers=4,hidden=256,heads=4")
    h100 = next(one for one in published_choices() if one.id == "g02373")
    tiny = replace(h100, model="llama, tiny", gpus=2, batch=8, sequence=128, context=1, pipeline=2, sharded=0)
    found = ranked(replace(tiny, pipeline=1))
    assert isinstance(found, Ranked)
    assert found.theirs == "dp 2, zero 1, 4 micro-batches of 1"
    assert 1 <= found.rank <= found.fit
    assert found.ratio >= 1 - 1e-9
    assert ranked(replace(tiny, micro_batch=3)) == "outside of the space"
