"""Stages with their own numbers of replicas."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tiny_models import FlopPrices, transformer

from ropewalk.device.numbers import Numbers
from ropewalk.errors import StrategyError
from ropewalk.records import plain, record
from ropewalk.strategy import KeptPrices, LayerChoice, Part, Placement, Strategy, check, cut, memory, shares_of
from ropewalk.timetable import timetable
from ropewalk.timetable.written import rows_of
from ropewalk.workload.operator import Split

TINY = transformer(4)
UNEVEN = Strategy(pipeline=2, micro_batch=4, micro_batches=2, parts=(Part(0, 2, (0, 1, 2, 3), 2), Part(3, 3, (4,))))


def test_ranks_see_the_degrees_of_their_part():
    first, second = UNEVEN.on_stages()
    assert (first.data, first.tensor, first.micro_batch) == (2, 2, 2)
    assert (second.data, second.tensor, second.micro_batch) == (1, 1, 4)
    assert UNEVEN.ranks == 5
    assert UNEVEN.global_batch == 8
    assert UNEVEN.said() == "4:1 GPUs, 1f1b, 2 micro-batches of 4"


def test_the_fullest_replica_counts_where_samples_do_not_divide():
    odd = Strategy(pipeline=2, micro_batch=4, parts=(Part(0, 2, (0, 1, 2)), Part(3, 3, (3,))))
    assert odd.on_stages()[0].micro_batch == 2


def test_workers_are_placed_where_the_part_names_them():
    placement = Placement(UNEVEN)
    assert [grid.ravel().tolist() for grid in placement.stage_grids] == [[0, 1, 2, 3], [4]]
    assert placement.stage_of().tolist() == [0, 0, 0, 0, 1]
    apart = Strategy(pipeline=2, parts=(Part(0, 2, (5, 2)), Part(3, 3, (0,))))
    assert Placement(apart).stage_of().tolist() == [1, -1, 0, -1, -1, 0]


def needed(strategy, model):
    shares = shares_of(model, strategy)
    return memory(strategy, shares, cut(model, strategy, shares, KeptPrices(FlopPrices())), Numbers(2.0))


def test_equal_parts_need_the_memory_of_equal_degrees():
    even = Strategy(data=2, pipeline=2, micro_batch=2, micro_batches=4, zero=1, stages=(0, 3), recompute="full")
    parts = Part(0, 2, (0, 1)), Part(3, 3, (2, 3))
    same = Strategy(pipeline=2, micro_batch=4, micro_batches=4, zero=1, parts=parts, recompute="full")
    assert np.array_equal(needed(even, transformer(4, 2)).total, needed(same, TINY).total)
    fewer = Strategy(pipeline=2, micro_batch=4, micro_batches=4, parts=(Part(0, 2, (0, 1, 3, 4)), Part(3, 3, (2,))))
    assert needed(fewer, TINY).activations[1] > needed(same, TINY).activations[1]


def test_the_sequence_is_split_where_a_part_has_tensor_ranks():
    first, second = replace(UNEVEN, sequence_parallel=True).on_stages()
    assert (first.sequence_parallel, second.sequence_parallel) == (True, False)
    split, whole = needed(replace(UNEVEN, sequence_parallel=True), TINY), needed(UNEVEN, TINY)
    assert split.activations[0] < whole.activations[0]
    assert split.activations[1] == whole.activations[1]


def test_equal_parts_of_two_copies_need_the_memory_of_equal_degrees():
    even = Strategy(data=2, pipeline=2, micro_batch=2, micro_batches=4, zero=1, stages=(0, 3), schedule="dualpipe")
    parts = Part(0, 2, (0, 1)), Part(3, 3, (2, 3))
    same = Strategy(pipeline=2, micro_batch=4, micro_batches=4, zero=1, parts=parts, schedule="dualpipe")
    for again in ("none", "full", "stage"):
        totals = [needed(replace(one, recompute=again), model).total for one, model in
                  ((even, transformer(4, 2)), (same, TINY))]  # fmt: skip
        assert np.array_equal(*totals)


MIRRORED = Strategy(pipeline=2, micro_batch=4, micro_batches=4, schedule="dualpipe",
                    parts=(Part(0, 2, (0, 1, 2, 3), 2), Part(3, 3, (4, 5), 2)))  # fmt: skip


def test_a_stage_of_two_copies_has_the_replicas_of_two_parts():
    first, last = MIRRORED.on_stages()
    assert (first.data, first.micro_batch, first.replicas) == (2, 2, 3)
    assert (last.data, last.micro_batch, last.replicas) == (1, 4, 3)
    assert MIRRORED.global_batch == 16


def test_gpus_hold_both_of_their_stages_and_the_samples_of_their_own_part():
    """Eight GPUs of the first stage would keep half of what the two of the last one keep."""
    found = needed(MIRRORED, TINY)
    assert found.weights[0] == found.weights[1] == sum(layer.parameters() for layer in split_of_tiny()) * 2.0
    assert found.activations[1] == 2 * found.activations[0]


def split_of_tiny():
    return [layer.split(Split(tensor=2)) for layer in TINY.layers]


def test_a_strategy_with_parts_and_rows_is_plain_values():
    rows = rows_of(timetable("zb-h1", 2, 2))
    strategy = Strategy(pipeline=2, micro_batches=2, schedule="made", rows=rows, parts=UNEVEN.parts,
                        choices=(LayerChoice("block*", recompute="full"),))  # fmt: skip
    assert record(Strategy, json.loads(json.dumps(plain(strategy))), "strategy", StrategyError) == strategy
    assert strategy.splits_backward
    assert rows_of(strategy.timetable) == rows
    check(strategy, TINY)


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        (Strategy(pipeline=2, data=2, parts=UNEVEN.parts), "data is 2 together with parts, .*: set data to 1"),
        (Strategy(pipeline=3, parts=UNEVEN.parts), "2 parts for 3 stages of 1 pieces: give 3"),
        (Strategy(pipeline=2, parts=(Part(0, 1, (0,)), Part(3, 3, (1,)))), "has layers 3 to 3 where 2 comes next"),
        (Strategy(pipeline=2, parts=(Part(0, 1, (0,)), Part(2, 2, (1,)))), "end with layer 2 of 4: give the last part"),
        (Strategy(pipeline=2, parts=(Part(0, 1, (0, 1, 2), 2), Part(2, 3, (3,)))), "3 workers in groups of 2"),
        (
            Strategy(pipeline=2, parts=(Part(0, 1, (0, 1)), Part(2, 3, (1,)))),
            "two parts share some but not all workers",
        ),
        (Strategy(pipeline=2, parts=(Part(0, 1, (0,)), Part(2, 3, (0,)))), "two stages have the same workers"),
        (Strategy(pipeline=2, parts=(Part(0, 1, (0, 1, 2), 3), Part(2, 3, (3,)))), "do not split over 3 tensor ranks"),
        (
            Strategy(pipeline=2, parts=UNEVEN.parts, schedule="dualpipe", micro_batches=4),
            "parts 0 and 1 on the ranks of both, but they are split over 2 and 1 .*: give both the same tensor degree",
        ),
        (
            Strategy(pipeline=2, parts=(Part(0, 1, (0,)), Part(2, 3, (1,))), sequence_parallel=True),
            "no part has several: give one tensor ranks or turn it off",
        ),
        (
            Strategy(
                pipeline=2,
                parts=(Part(0, 1, (0, 1), 2), Part(2, 3, (2,))),
                sequence_parallel=True,
                micro_batch=1,
                choices=(LayerChoice("block 0", tensor=1),),
            ),
            "so sequence parallelism has nowhere to gather it",
        ),
        (Strategy(pipeline=2, parts=UNEVEN.parts, stages=(0, 3)), "leave stages out"),
        (Strategy(pipeline=2, parts=UNEVEN.parts, rows=("0F0 0B0", "1F0 1X0")), "'1X0' in row 1 is not a pass"),
        (Strategy(pipeline=2, parts=UNEVEN.parts, rows=("0F0 1F0 1B0 0B0",)), "1 rows for 2 stages"),
        (Strategy(pipeline=2, parts=UNEVEN.parts, rows=("0F0 0B0", "1F0")), "piece 1 has 0 backward passes"),
    ],
)
def test_parts_that_do_not_fit_name_the_remedy(strategy, text):
    with pytest.raises(StrategyError, match=text):
        check(strategy, TINY)


def test_parts_that_need_more_gpus_than_there_are_say_so():
    with pytest.raises(StrategyError, match="its parts name rank 4, but there are 4 GPUs: count from 0 to 3"):
        check(UNEVEN, TINY, 4)
    check(UNEVEN, TINY, 6)
