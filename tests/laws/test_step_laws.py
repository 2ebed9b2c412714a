"""The sweep over intervals against a plain count of elementary spans, on random steps."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tiny_steps import run_step

from ropewalk.sim.step import statistics
from ropewalk.task.step import Act, StepSketch


@some.composite
def steps(draw):
    ranks = draw(some.integers(1, 4))
    sketch = StepSketch(ranks, ("compute", "tensor", "data"))
    for number in range(draw(some.integers(1, 14))):
        after = draw(some.lists(some.integers(0, number - 1), max_size=2, unique=True)) if number else []
        amount = float(draw(some.integers(0, 5)))
        act = draw(some.sampled_from([Act.COMPUTE, Act.SEND, Act.ALL_REDUCE] if ranks > 1 else [Act.COMPUTE]))
        if act == Act.COMPUTE:
            sketch.compute(draw(some.integers(0, ranks - 1)), amount, after=after)
        elif act == Act.SEND:
            src, dst = draw(some.permutations(range(ranks)))[:2]
            sketch.send(src, dst, amount * 1e9, after=after, stream=draw(some.integers(1, 2)))
        else:
            size = draw(some.integers(1, ranks))
            group = draw(some.permutations(range(ranks)))[:size]
            sketch.collective(act, group, amount * 1e9, after=after, stream=draw(some.integers(1, 2)))
    return sketch.step()


def plain_times(run, rank):
    """Seconds of (compute, communication, exposed, exposed by stream) of one rank, span by span."""
    occupied = run.occupied
    mine = [
        (start, end, run.purpose_of(operation))
        for who, operation, start, end in zip(
            occupied.rank.tolist(), occupied.operation.tolist(), occupied.start, occupied.end, strict=True
        )
        if who == rank
    ]
    edges = sorted({edge for start, end, _ in mine for edge in (start, end)})
    compute = communication = exposed = 0.0
    parts = {"tensor": 0.0, "data": 0.0}
    for left, right in itertools.pairwise(edges):
        active = {purpose for start, end, purpose in mine if start <= left and right <= end}
        purposes = active - {"compute"}
        compute += (right - left) * ("compute" in active)
        communication += (right - left) * bool(purposes)
        if purposes and "compute" not in active:
            exposed += right - left
            for purpose in purposes:
                parts[purpose] += (right - left) / len(purposes)
    return compute, communication, exposed, parts


@given(steps())
def test_the_sweep_counts_what_a_plain_count_of_spans_does(step):
    run = run_step(step)
    found = statistics(run)
    for rank in range(step.ranks):
        compute, communication, exposed, parts = plain_times(run, rank)
        assert found.times.compute_s[rank] == pytest.approx(compute)
        assert found.times.communication_s[rank] == pytest.approx(communication)
        assert found.times.exposed_communication_s[rank] == pytest.approx(exposed)
        assert found.times.bubble_s[rank] == pytest.approx(found.step_time_s - compute - exposed)
        for purpose, seconds in found.times.exposed_by_purpose_s.items():
            assert seconds[rank] == pytest.approx(parts[purpose])


@given(steps())
def test_the_critical_path_is_no_longer_than_the_step(step):
    found = statistics(run_step(step))
    assert sum(part.seconds for part in found.path) <= found.step_time_s * (1 + 1e-9)
