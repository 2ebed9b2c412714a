"""Laws of plan files: whatever the program, the file that is read back does the collective in every order of events."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plan_worlds import named_programs, programs

from ropewalk.errors import ProgramError, ProofError
from ropewalk.export.msccl_xml import algo_of, prove_algo
from ropewalk.export.msccl_xml.read import parse_algo
from ropewalk.export.msccl_xml.write import algo_text
from ropewalk.export.mscclpp import plan_of, prove_plan
from ropewalk.export.mscclpp.plan import MscclppPlan, Operation
from ropewalk.export.mscclpp.read import parse_plan
from ropewalk.export.mscclpp.write import plan_text

CHANNELS = {
    "all memory": "memory",
    "all port": "port",
    "pairs share a server": lambda src, dst: "memory" if src // 2 == dst // 2 else "port",
}


@given(programs(), st.sampled_from(sorted(CHANNELS)), st.booleans())
@settings(max_examples=100)
def test_plans_that_are_read_back_keep_the_promise(named, channels, inplace):
    program, collective = named
    program.check()
    inplace = inplace and collective != "alltoall"
    plan = plan_of(program, collective=collective, inplace=inplace, channel=CHANNELS[channels])
    again = parse_plan(plan_text(plan), "the plan")
    assert again == plan
    prove_plan(again)


@given(programs(), st.integers(2, 8))
@settings(max_examples=60)
def test_plans_keep_the_promise_when_peers_and_lanes_share_few_thread_blocks(named, blocks):
    program, collective = named
    try:
        plan = plan_of(program, collective=collective, inplace=collective != "alltoall", most_blocks=blocks)
    except ProgramError:
        assume(False)
    assert all(len(gpu.blocks) <= blocks for gpu in plan.gpus)
    prove_plan(plan)


@given(programs(), st.sampled_from(["rccl", "executor", "msccl"]))
@settings(max_examples=80)
def test_algorithms_that_are_read_back_keep_the_promise_without_any_slots(named, target):
    program, collective = named
    algo = algo_of(program, collective=collective, target=target)
    again = parse_algo(algo_text(algo), "the algorithm")
    assert again == algo
    prove_algo(again, slots=0)


@given(named_programs(), st.sampled_from(sorted(CHANNELS)), st.data())
@settings(max_examples=80)
def test_a_plan_that_lacks_any_one_operation_is_refused(named, channels, data):
    program, collective = named
    plan = plan_of(program, collective=collective, channel=CHANNELS[channels])
    rank = data.draw(st.sampled_from([r for r, gpu in enumerate(plan.gpus) if any(b.operations for b in gpu.blocks)]))
    number = data.draw(st.sampled_from([n for n, b in enumerate(plan.gpus[rank].blocks) if b.operations]))
    place = data.draw(st.integers(0, len(plan.gpus[rank].blocks[number].operations) - 1))
    with pytest.raises(ProofError):
        prove_plan(changed(plan, rank, number, lambda ops: ops[:place] + ops[place + 1 :]))


@given(named_programs(), st.data())
@settings(max_examples=60)
def test_a_plan_with_any_one_offset_moved_is_refused(named, data):
    program, collective = named
    plan = plan_of(program, collective=collective)
    spots = [
        (rank, number, place, end)
        for rank, gpu in enumerate(plan.gpus)
        for number, block in enumerate(gpu.blocks)
        for place, operation in enumerate(block.operations)
        for end in ("src", "dst")
        if getattr(operation, end)
    ]
    rank, number, place, end = data.draw(st.sampled_from(spots))
    by = data.draw(st.sampled_from([-1, 1, 2]))

    def moved(operation: Operation) -> Operation:
        spans = getattr(operation, end)
        return replace(operation, **{end: (replace(spans[0], index=spans[0].index + by), *spans[1:])})

    with pytest.raises(ProofError):
        prove_plan(changed(plan, rank, number, lambda ops: (*ops[:place], moved(ops[place]), *ops[place + 1 :])))


@given(named_programs(), st.data())
@settings(max_examples=60)
def test_an_algorithm_whose_send_waits_for_nothing_or_whose_step_is_lost_is_refused(named, data):
    program, collective = named
    algo = algo_of(program, collective=collective)
    waiting = [
        (rank, number, place)
        for rank, gpu in enumerate(algo.gpus)
        for number, block in enumerate(gpu.blocks)
        for place, step in enumerate(block.steps)
        if step.kind == "s" and step.waits is not None
    ]
    steps = [
        (rank, number, len(block.steps) - 1)
        for rank, gpu in enumerate(algo.gpus)
        for number, block in enumerate(gpu.blocks)
    ]
    lose = data.draw(st.booleans()) or not waiting
    rank, number, place = data.draw(st.sampled_from(steps if lose else waiting))
    gpu = algo.gpus[rank]
    block = gpu.blocks[number]
    kept = () if lose else (replace(block.steps[place], waits=None),)
    # What is in place for a root is a copy onto itself, so only losing it out of place shows.
    block = replace(block, steps=(*block.steps[:place], *kept, *block.steps[place + 1 :]))
    gpu = replace(gpu, blocks=(*gpu.blocks[:number], block, *gpu.blocks[number + 1 :]))
    with pytest.raises(ProofError):
        prove_algo(replace(algo, gpus=(*algo.gpus[:rank], gpu, *algo.gpus[rank + 1 :])))


def changed(plan: MscclppPlan, rank: int, number: int, change) -> MscclppPlan:
    gpu = plan.gpus[rank]
    block = replace(gpu.blocks[number], operations=tuple(change(gpu.blocks[number].operations)))
    gpu = replace(gpu, blocks=(*gpu.blocks[:number], block, *gpu.blocks[number + 1 :]))
    return replace(plan, gpus=(*plan.gpus[:rank], gpu, *plan.gpus[rank + 1 :]))
