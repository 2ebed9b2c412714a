"""Random steps that a trace can say: ranks wait only for what they take part in."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from ropewalk.task.step import Act, Step, StepSketch

RANKS = 4
GROUPS = ([0, 1, 2, 3], [0, 1], [3, 2], [2, 0], [1], [3, 1, 0])
COLLECTIVES = [act for act in Act if act.is_collective]


@st.composite
def traceable_steps(draw: st.DrawFn, most: int = 12) -> Step:
    """Any acts, with sizes and times that do not fit into whole bytes and microseconds."""
    sketch = StepSketch(RANKS, ("compute", "communication", "pipeline"))
    taking_part: list[set[int]] = []
    amounts = st.sampled_from([0.0, 1.0, 0.25, 1 / 3, 1e-7, 12345.678, 1e6])
    for number in range(draw(st.integers(1, most))):
        act = draw(st.sampled_from([Act.COMPUTE, Act.COMPUTE, Act.SEND, Act.SEND, *COLLECTIVES]))
        stream, priority = draw(st.integers(0, 2)), draw(st.integers(-1, 1))
        options = {"stream": stream, "priority": priority, "label": draw(st.sampled_from(["a", "b", "ünï code"]))}
        if act is Act.COMPUTE:
            ranks = {draw(st.integers(0, RANKS - 1))}
        elif act is Act.SEND:
            ends = draw(st.lists(st.integers(0, RANKS - 1), min_size=2, max_size=2, unique=True))
            ranks = set(ends)
        else:
            group = draw(st.sampled_from(GROUPS))
            ranks = set(group)
        seen = [earlier for earlier in range(number) if taking_part[earlier] & ranks]
        after = draw(st.lists(st.sampled_from(seen), max_size=3, unique=True)) if seen else []
        if act is Act.COMPUTE:
            sketch.compute(*ranks, draw(amounts), after=after, **options)
        elif act is Act.SEND:
            sketch.send(*ends, draw(amounts), after=after, **options)
        else:
            sketch.collective(act, group, draw(amounts), after=after, **options)
        taking_part.append(ranks)
    return sketch.step(flops=draw(st.sampled_from([0.0, 1e15 / 3])))


def assert_same_step(one: Step, other: Step) -> None:
    """Everything that a step says is the same; only the numbering of labels may differ."""
    assert (one.ranks, one.streams, one.flops, one.phases) == (other.ranks, other.streams, other.flops, other.phases)
    for column in ("act", "rank", "peer", "amount", "stream", "priority", "repeats"):
        assert np.array_equal(getattr(one, column), getattr(other, column)), column
    assert [one.name_of(i) for i in range(one.operations)] == [other.name_of(i) for i in range(other.operations)]
    for operation in range(one.operations):
        waits = [set(s.dep[s.dep_start[operation] : s.dep_start[operation + 1]].tolist()) for s in (one, other)]
        assert waits[0] == waits[1]
        if one.group[operation] >= 0:
            groups = [s.groups[s.group[operation]].tolist() for s in (one, other)]
            assert groups[0] == groups[1]
