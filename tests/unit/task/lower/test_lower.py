"""A step as it is lowered: who waits for whom, what is sent, how long a pipeline takes."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_models import EvenPrices, FlopPrices, clocked, on_stream, step_time, transformer

from ropewalk.device.numbers import Numbers
from ropewalk.device.work import Work
from ropewalk.errors import StrategyError
from ropewalk.strategy import KeptPrices, LayerChoice, Order, Placement, Strategy, cut, memory, shares_of
from ropewalk.task.lower import lower
from ropewalk.task.step import Act
from ropewalk.workload.dense import Linear
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.table import EmbeddingBags
from ropewalk.workload.workload import Layer, Workload, chain

TINY = transformer()
PARAMETERS = 12 * 16**2 + 13 * 16
ACTIVATION = 8 * 16 * 2
"""Bytes of what a block hands on."""


def lowered(strategy, model=TINY, detail="layer", prices=None):
    return lower(model, strategy, Placement(strategy), prices or FlopPrices(), detail)


def rows(step, **wanted):
    """Operations by act, stream or label."""
    found = np.ones(step.operations, bool)
    if "act" in wanted:
        found &= step.act == wanted["act"]
    if "stream" in wanted:
        found &= on_stream(step, wanted["stream"])
    if "label" in wanted:
        found &= np.array([wanted["label"] in step.name_of(at) for at in range(step.operations)], bool)
    return np.flatnonzero(found)


def needed(step, operation):
    return step.dep[step.dep_start[operation] : step.dep_start[operation + 1]].tolist()


def test_one_gpu_computes_forward_backward_and_updates():
    step = lowered(Strategy())
    assert [step.name_of(at) for at in range(9)] == [
        *(f"block {at} forward" for at in range(4)),
        *(f"block {at} backward" for at in (3, 2, 1, 0)),
        "update",
    ]
    assert step.amount[:8].sum() == TINY.forward_flops() + TINY.backward_flops() == step.flops


def test_micro_batches_are_sized_and_all_of_them_counted():
    step = lowered(Strategy(micro_batch=3, micro_batches=5, data=2))
    assert step.flops == 30 * (TINY.forward_flops() + TINY.backward_flops())
    assert step.phases == {"samples": 30.0, "tokens": 240.0}


def test_tensor_ranks_meet_twice_in_each_pass_of_a_block():
    step = lowered(Strategy(tensor=4))
    sums = rows(step, act=Act.ALL_REDUCE)
    assert len(sums) == 4 * 4
    assert (step.amount[sums] == ACTIVATION).all()
    assert step.groups[step.group[sums[0]]].tolist() == [0, 1, 2, 3]
    assert len(needed(step, sums[0])) == 4  # all tensor ranks arrive


def test_sequence_parallel_ranks_gather_and_scatter_instead():
    step = lowered(Strategy(tensor=4, sequence_parallel=True))
    assert not len(rows(step, act=Act.ALL_REDUCE))
    for act in (Act.ALL_GATHER, Act.REDUCE_SCATTER):
        assert len(rows(step, act=act)) == 4 * 4
        assert (step.amount[rows(step, act=act)] == ACTIVATION).all()


def test_layer_that_is_not_split_needs_no_meeting():
    plan = Strategy(tensor=4, choices=(LayerChoice("block 0", tensor=1),))
    step = lowered(plan)
    assert len(rows(step, act=Act.ALL_REDUCE)) == 3 * 4
    assert step.amount[rows(step, label="block 0 forward")].tolist() == [TINY.layers[0].forward_flops()] * 4


def test_computing_a_layer_again_repeats_its_forward_pass():
    again = lowered(Strategy(tensor=2, recompute="full"))
    assert len(rows(again, act=Act.ALL_REDUCE)) == 4 * 6
    ahead, repeated = rows(again, label="forward"), rows(again, label="recompute")
    computes = again.act == Act.COMPUTE
    assert again.amount[ahead][computes[ahead]].sum() == again.amount[repeated][computes[repeated]].sum()


def test_selective_recomputation_repeats_the_core_of_attention():
    step = lowered(Strategy(recompute="selective"))
    core = TINY.layers[0].operators[3:7]
    seconds = sum(kernel.flops for op in core for kernel in op.forward())
    assert step.amount[rows(step, label="recompute")].tolist() == [seconds] * 4


def test_gradients_are_reduced_in_buckets_while_the_backward_pass_goes_on():
    step = lowered(Strategy(data=3, micro_batches=2, order=Order(2 * PARAMETERS * 2)))
    sums = rows(step, stream="data")
    assert (step.act[sums] == Act.ALL_REDUCE).all()
    assert step.amount[sums].tolist() == [2 * PARAMETERS * 2] * 2
    assert step.groups[step.group[sums[0]]].tolist() == [0, 1, 2]
    start, _ = clocked(step, byte_s=1e-3)
    last = rows(step, label="block 0 backward")[-1]
    assert start[sums[0]] <= start[last]
    assert sums[0] in needed(step, sums[1])  # buckets stay in order
    firsts = [step.name_of(at) for at in needed(step, sums[0])]
    assert firsts == ["block 2 backward"] * 3


def test_without_overlap_gradients_wait_for_the_end():
    plan = Strategy(data=2, order=Order(1.0, overlap=False))
    step = lowered(plan)
    start, end = clocked(step)
    sums = rows(step, stream="data")
    assert len(sums) == 4
    assert start[sums].min() == end[rows(step, label="backward")].max()


def test_shared_out_gradients_without_overlap_stop_the_next_micro_batch():
    step = lowered(Strategy(data=2, zero=2, micro_batches=2, order=Order(overlap=False)))
    start, end = clocked(step, byte_s=1.0)
    sums, ahead = rows(step, stream="data"), rows(step, label="block 0 forward")
    assert len(sums) == 2
    assert start[ahead].max() == end[sums[0]]


def test_layer_larger_than_a_bucket_counts_as_several_collectives():
    step = lowered(Strategy(data=2, order=Order(PARAMETERS)))
    assert set(step.repeats[rows(step, stream="data")].tolist()) == {2}


def test_update_waits_for_all_gradients():
    step = lowered(Strategy(data=2))
    update, sums = rows(step, label="update"), rows(step, stream="data")
    assert all(sums[-1] in needed(step, at) for at in update)
    assert step.amount[update].tolist() == [4 * PARAMETERS] * 2


def test_zero_1_scatters_once_and_gathers_weights_after_the_update():
    step = lowered(Strategy(data=4, zero=1, micro_batches=3))
    assert step.amount[rows(step, act=Act.REDUCE_SCATTER)].sum() == 4 * PARAMETERS * 2
    gathers = rows(step, act=Act.ALL_GATHER)
    assert step.amount[gathers].tolist() == [4 * PARAMETERS * 2]
    assert set(needed(step, gathers[0])) == set(rows(step, label="update", act=Act.COMPUTE).tolist())
    assert step.amount[rows(step, label="update", act=Act.COMPUTE)].tolist() == [PARAMETERS] * 4


def test_zero_2_scatters_for_every_micro_batch():
    step = lowered(Strategy(data=4, zero=2, micro_batches=3))
    assert step.amount[rows(step, act=Act.REDUCE_SCATTER)].sum() == 3 * 4 * PARAMETERS * 2


def test_zero_3_gathers_layers_one_ahead_and_not_twice_at_the_turn():
    step = lowered(Strategy(data=2, zero=3))
    gathers = rows(step, act=Act.ALL_GATHER)
    labels = [step.name_of(at) for at in gathers]
    assert labels == [f"block {at} weights" for at in (0, 1, 2, 3, 2, 1, 0)]
    assert len(rows(step, act=Act.REDUCE_SCATTER)) == 4
    forward = {step.name_of(at): at for at in rows(step, label="forward")}
    assert gathers[2] in needed(step, forward["block 2 forward"])
    before = [step.name_of(at) for at in needed(step, gathers[2])]
    assert before == ["block 0 forward"] * 2 + ["block 1 weights"]  # gathered while block 1 computes


def test_weights_that_are_kept_are_gathered_in_the_forward_pass_alone():
    step = lowered(Strategy(data=2, zero=3, regather=False, micro_batches=2))
    labels = [step.name_of(at) for at in rows(step, act=Act.ALL_GATHER)]
    assert labels == 2 * [f"block {at} weights" for at in range(4)]
    assert len(rows(step, act=Act.REDUCE_SCATTER)) == 2 * 4


def test_without_prefetch_weights_come_when_they_are_needed():
    ahead, late = (step_time(lowered(Strategy(data=2, zero=3, prefetch=flag)), byte_s=30.0) for flag in (True, False))
    assert late > ahead


def test_prefetched_weights_hide_behind_computation():
    free = step_time(lowered(Strategy(data=2, zero=3)))
    busy = step_time(lowered(Strategy(data=2, zero=3)), byte_s=1e-3)
    gather = PARAMETERS * 2 / 2 * 1e-3
    assert busy - free == pytest.approx(2 * gather)  # the first gather and the last scatter stand out


def test_stages_send_activations_ahead_and_gradients_back():
    step = lowered(Strategy(pipeline=4, micro_batches=3))
    sends = rows(step, act=Act.SEND)
    assert len(sends) == 2 * 3 * 3
    assert set(step.amount[sends].tolist()) == {float(ACTIVATION)}
    ends = {(int(step.rank[at]), int(step.peer[at])) for at in sends}
    assert ends == {(0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0)}


@pytest.mark.parametrize(
    ("plan", "part", "gathers"),
    [
        (Strategy(scatter_gather=False), 1, 0),
        (Strategy(scatter_gather=True), 4, 2 * 2),
        (Strategy(sequence_parallel=True), 4, 0),
    ],
    ids=["whole", "scatter-gather", "sequence"],
)
def test_tensor_ranks_send_their_part_or_all(plan, part, gathers):
    step = lowered(replace(plan, tensor=4, pipeline=2, micro_batches=2))
    sends = rows(step, act=Act.SEND)
    assert len(sends) == 2 * 2 * 4
    assert set(step.amount[sends].tolist()) == {ACTIVATION / part}
    assert len(rows(step, label="received")) == gathers


def test_tied_embedding_is_summed_between_first_and_last_stage():
    model = transformer(words=48)
    step = lowered(Strategy(pipeline=3, micro_batches=3, tensor=2, data=2), model)
    tied = rows(step, label="tied")
    assert (step.amount[tied] == 48 / 2 * 16 * 2).all()
    assert [step.groups[at].tolist() for at in step.group[tied]] == [[0, 8], [1, 9], [2, 10], [3, 11]]
    updates = {int(step.rank[at]): at for at in rows(step, label="update")}
    assert tied[0] in needed(step, updates[0])
    assert tied[0] in needed(step, updates[8])
    assert len(rows(lowered(Strategy(tensor=2), model), label="tied")) == 0


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_both_copies_of_a_tied_embedding_are_summed_over_data_ranks_before_they_meet(zero):
    model = transformer(words=48)
    step = lowered(Strategy(pipeline=2, micro_batches=2, data=2, zero=zero), model)
    embedding = 48 * 16
    for part, group in enumerate(([0, 1], [2, 3])):
        reduced = [at for at in rows(step, label="gradients") if step.groups[step.group[at]].tolist() == group]
        held = sum(layer.parameters() for layer in model.layers[3 * part : 3 * part + 3])
        passes = 2 if zero >= 2 else 1
        assert step.amount[reduced].sum() == passes * 2 * (held + (embedding if part else 0))


def test_a_copy_of_a_tied_embedding_is_gathered_where_weights_are_shared_out():
    model = transformer(words=48)
    step = lowered(Strategy(pipeline=2, micro_batches=1, data=2, zero=3), model)
    gathered = [at for at in rows(step, label="head weights") if step.groups[step.group[at]].tolist() == [2, 3]]
    assert step.amount[gathered].min() >= 48 * 16 * 2


def test_experts_exchange_tokens_and_reduce_among_those_who_have_them():
    model = transformer(mixture=8)
    step = lowered(Strategy(data=4, expert=2), model)
    exchanges = rows(step, act=Act.ALL_TO_ALL)
    assert len(exchanges) == 4 * 4 * 2  # two in each pass of each block, for both groups
    assert (step.amount[exchanges] == 2 * ACTIVATION).all()
    assert [step.groups[at].tolist() for at in step.group[exchanges[:2]]] == [[0, 1], [2, 3]]
    groups = {tuple(step.groups[at].tolist()) for at in step.group[rows(step, stream="data")]}
    assert groups == {(0, 1, 2, 3), (0, 2), (1, 3)}
    expert = sum(op.parameters() for layer in model.layers for op in layer.operators if hasattr(op, "ffn"))
    reduced = {len(step.groups[at]): 0.0 for at in step.group[rows(step, stream="data")]}
    for at in rows(step, stream="data"):
        reduced[len(step.groups[step.group[at]])] += step.amount[at]
    assert reduced == {4: (model.parameters() - expert) * 2, 2: expert * 2}  # two groups with half of the experts each


def test_context_ranks_gather_keys_and_values():
    step = lowered(Strategy(context=2))
    gathers = rows(step, stream="context")
    assert (step.amount[gathers] == 2 * ACTIVATION).all()
    assert len(gathers) == 4 * 2
    assert step.groups[step.group[rows(step, stream="data")[0]]].tolist() == [0, 1]


def test_tables_are_spread_over_data_ranks_and_never_reduced():
    bags = EmbeddingBags(6, 4, 2, 100, 8)
    layers = (
        Layer("tables", (bags, Exchange(Meeting.TABLES, 4 * 6 * 8)), 4 * 6 * 8),
        Layer("bottom", (Linear(4, 13, 8),), 32),
        Layer("top", (Linear(4, 56, 1),), 4, (0, 1)),
    )
    step = lowered(Strategy(data=3, micro_batch=4), Workload("clicks", layers, 4))
    exchanges = rows(step, stream="tables")
    assert (step.act[exchanges] == Act.ALL_TO_ALL).all()
    assert step.amount[exchanges].tolist() == [4 * 6 * 8 * 2] * 2
    assert step.amount[rows(step, label="gradients")].sum() == 2 * (13 * 8 + 8 + 56 + 1)
    assert step.amount[rows(step, label="update")].tolist() == [2 * 100 * 8 + 13 * 8 + 8 + 56 + 1] * 3


def test_branches_are_sent_past_stages_that_do_not_need_them():
    layers = (
        Layer("a", (Linear(1, 2, 2),), 10),
        Layer("b", (Linear(1, 2, 2),), 20, (0,)),
        Layer("c", (Linear(1, 2, 2),), 1, (0, 1)),
    )
    step = lowered(Strategy(pipeline=3), Workload("branches", layers, 1))
    sends = {(int(step.rank[at]), int(step.peer[at])): float(step.amount[at]) for at in rows(step, act=Act.SEND)}
    assert sends == {(0, 1): 20, (0, 2): 20, (1, 2): 40, (1, 0): 20, (2, 0): 20, (2, 1): 40}


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 4), (2, 1), (4, 8), (4, 3)])
def test_bubble_is_stages_less_one_over_micro_batches(schedule, stages, micro_batches):
    plan = Strategy(pipeline=stages, micro_batches=micro_batches, schedule=schedule)
    busy = 3.0 * 4 / stages * micro_batches
    taken = step_time(lowered(plan, prices=EvenPrices()))
    assert taken / busy - 1 == pytest.approx((stages - 1) / micro_batches)


@pytest.mark.parametrize(("stages", "pieces", "micro_batches"), [(2, 2, 4), (2, 4, 2), (4, 2, 8), (4, 4, 12)])
def test_interleaving_divides_the_bubble_by_the_pieces(stages, pieces, micro_batches):
    plan = Strategy(pipeline=stages, interleave=pieces, micro_batches=micro_batches, schedule="interleaved")
    taken = step_time(lowered(plan, transformer(stages * pieces), prices=EvenPrices()))
    busy = 3.0 * pieces * micro_batches
    assert taken / busy - 1 == pytest.approx((stages - 1) / (pieces * micro_batches))


PLANS = [
    Strategy(tensor=2),
    Strategy(tensor=4, data=2, pipeline=2, micro_batches=4),
    Strategy(tensor=2, sequence_parallel=True, pipeline=4, micro_batches=3, schedule="gpipe", recompute="full"),
    Strategy(tensor=2, data=3, zero=1, order=Order(3000.0), micro_batches=2, recompute="selective"),
    Strategy(tensor=2, data=2, zero=3, pipeline=2, micro_batches=2),
    Strategy(tensor=2, pipeline=2, interleave=2, schedule="interleaved", micro_batches=4, data=2),
    Strategy(tensor=2, context=2, data=2),
]


@pytest.mark.parametrize("plan", PLANS, ids=Strategy.said)
@pytest.mark.parametrize("model", [transformer(), transformer(words=32)], ids=["blocks", "words"])
def test_summing_up_stages_changes_no_time(plan, model):
    fine, coarse = (lowered(plan, model, detail) for detail in ("layer", "stage"))
    assert coarse.operations < fine.operations or plan.zero == 3
    for clock in ({}, {"byte_s": 7.0}, {"byte_s": 0.3, "round_s": 500.0}):
        assert step_time(coarse, **clock) == pytest.approx(step_time(fine, **clock), rel=1e-9)
    for act in Act:
        assert coarse.amount[coarse.act == act].sum() == pytest.approx(fine.amount[fine.act == act].sum())
        assert coarse.repeats[coarse.act == act].sum() == fine.repeats[fine.act == act].sum()


def test_auto_sums_up_only_what_would_be_too_large(monkeypatch):
    plan = Strategy(tensor=2, micro_batches=2)
    fine = lowered(plan, detail="layer").operations
    assert lowered(plan, detail="auto").operations == fine
    monkeypatch.setattr("ropewalk.task.lower.lowering.MOST_OPERATIONS", 100)
    assert lowered(plan, detail="auto").operations == lowered(plan, detail="stage").operations < fine


def test_prices_are_asked_once_for_layers_that_are_alike():
    few, many = FlopPrices(), FlopPrices()
    lowered(Strategy(tensor=2), transformer(2), prices=few)
    lowered(Strategy(tensor=2, micro_batches=9, data=3), transformer(40), prices=many)
    assert few.asked == many.asked


class Launched(FlopPrices):
    """Launching an operator takes the host a fixed time in each pass."""

    def __init__(self, launch_s):
        super().__init__()
        self.launch_s = launch_s

    def forward_work(self, operators):
        return Work(self.forward(operators), self.launch_s * len(operators))

    def backward_work(self, operators):
        return Work(self.backward(operators), self.launch_s * len(operators))

    def weight_work(self, operators):
        return Work(self.weight(operators))

    def update_work(self, parameters, tensors, optimiser):
        return Work(self.update(parameters, tensors), 0.0)


def test_slow_host_stretches_a_whole_step_and_a_fast_one_nothing():
    free, hidden, slow = (lowered(Strategy(tensor=2), prices=Launched(host)) for host in (0.0, 1e-3, 1e6))
    assert hidden.amount == pytest.approx(free.amount)
    computes = slow.act == Act.COMPUTE
    stretch = slow.amount[computes] / free.amount[computes]
    assert stretch == pytest.approx(np.full(computes.sum(), stretch[0]))
    launched = 2 * sum(not isinstance(op, Exchange) for layer in TINY.layers for op in layer.operators)
    assert slow.amount[computes & (slow.rank == 0)].sum() == pytest.approx(1e6 * launched, rel=1e-3)
    assert (slow.amount[~computes] == free.amount[~computes]).all()


def test_same_input_gives_the_same_bytes():
    plan = PLANS[1]
    first, second = lowered(plan), lowered(plan)
    assert all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("act", "rank", "peer", "group", "amount", "dep", "dep_start", "label", "repeats")
    )


def test_wrong_detail_and_a_placement_of_another_strategy_are_refused():
    with pytest.raises(StrategyError, match="no detail 'fine': use one of auto, layer, stage"):
        lowered(Strategy(), detail="fine")
    with pytest.raises(StrategyError, match="placement is of another strategy"):
        lower(TINY, Strategy(), Placement(Strategy(data=2)), FlopPrices())


def test_layer_without_operators_is_passed_through():
    layers = [Layer("a", (Linear(1, 2, 2),), 2), Layer("nothing", (), 2), Layer("b", (Linear(1, 2, 2),), 2)]
    step = lowered(Strategy(pipeline=3, micro_batches=2), chain("gap", layers, batch=1))
    assert len(rows(step, act=Act.SEND)) == 2 * 2 * 2
    last = rows(step, label="b forward")[0]
    sent = [at for at in needed(step, last) if step.act[at] == Act.SEND]
    assert [int(step.rank[at]) for at in sent] == [1]
    assert [int(step.rank[at]) for at in needed(step, sent[0]) if step.act[at] == Act.SEND] == [0]


def test_stage_that_is_computed_again_takes_as_long_as_its_layers_and_keeps_its_input_alone():
    layers, stage = (
        Strategy(pipeline=2, micro_batches=4, recompute=recompute, tensor=2) for recompute in ("full", "stage")
    )
    assert step_time(lowered(stage)) == pytest.approx(step_time(lowered(layers)))
    again = [at for at, label in enumerate(lowered(stage).labels) if "recompute" in label]
    assert again
    kept = [
        memory(one, shares, cut(TINY, one, shares, KeptPrices(FlopPrices())), Numbers(2.0)).activations[0]
        for one in (Strategy(pipeline=2, micro_batches=40), Strategy(pipeline=2, micro_batches=40, recompute="stage"))
        for shares in [shares_of(TINY, one)]
    ]
    assert kept[1] < kept[0]


def test_gradients_of_passes_side_by_side_are_reduced_behind_their_own_backward_pass():
    """Where nothing overlaps: the n-th gradients of a rank are there when its n-th backward pass has ended."""
    strategy = Strategy(data=2, pipeline=2, micro_batches=4, schedule="dualpipev", zero=2, order=Order(overlap=False))
    step = lower(TINY, strategy, Placement(strategy), EvenPrices(), "stage")
    start, end = clocked(step)
    passes = [at for at, label in enumerate(step.labels) if label.endswith(("backward", "backward weights"))]
    done = np.sort(end[(step.rank == 0) & np.isin(step.label, passes)])
    mine = [0 in step.groups[group] if group >= 0 else False for group in step.group]
    reduced = np.sort(start[on_stream(step, "data") & mine])
    assert len(reduced) == len(done) == 8
    assert (reduced >= done).all()


def test_two_copies_share_weights_out_over_the_ranks_of_both():
    """With a micro-batch in each, they gather the weights of a layer together."""
    strategy = Strategy(pipeline=2, micro_batches=4, schedule="dualpipe", zero=3)
    step = lowered(strategy)
    for name, act in (("data", Act.REDUCE_SCATTER), ("zero", Act.ALL_GATHER)):
        mine = on_stream(step, name)
        assert (step.act[mine] == act).all()
        assert all(step.groups[group].tolist() == [0, 1] for group in step.group[mine])
    reduced = step.label[on_stream(step, "data")]
    assert len(reduced) == len(TINY.layers) * 2
