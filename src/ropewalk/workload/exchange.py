"""Points at which the ranks that share a layer must exchange data before it can go on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ropewalk.workload.dispatch import DOMAIN, sent_once
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.operator import Operator, Role, Split, part

FLOAT32 = 2
"""16-bit numbers that are as long as a float32."""


class Meeting(Enum):
    """Why ranks meet; the strategy decides whether they do and by which collective."""

    ENTER = "enter"
    """Into a tensor-parallel region (Megatron's f): nothing, then a sum of gradients in the backward pass; under
    sequence parallelism an all-gather, then a reduce-scatter."""
    LEAVE = "leave"
    """Out of a tensor-parallel region (Megatron's g): a sum of partial results, then nothing; under sequence
    parallelism a reduce-scatter, then an all-gather."""
    DISPATCH = "dispatch"
    """Tokens to their experts: an all-to-all forward and backward."""
    COMBINE = "combine"
    """Tokens back from their experts: an all-to-all forward and backward."""
    TABLES = "tables"
    """Rows of embedding tables, each held by one rank, to the ranks that train on them: an all-to-all both ways."""
    CONTEXT = "context"
    """Keys and values of all parts of a sequence to the rank of each part: an all-gather, then a reduce-scatter."""
    HEADS = "heads"
    """Parts of a sequence of all heads for the whole sequence of some heads, or back: an all-to-all both ways."""
    ARRIVED = "arrived"
    """Nothing is exchanged: what was sent before, beside the operators in between, must have arrived."""


class When(Enum):
    """Where ranks meet only if experts are split over tensor ranks, or only if they are folded (`Split.folded`)."""

    ALWAYS = "always"
    SPLIT = "split"
    FOLDED = "folded"


@dataclass(frozen=True)
class Exchange(Operator):
    """`elements` elements on each rank take part; without a split of that sort it costs nothing."""

    meeting: Meeting
    elements: int
    once: bool = False
    """A token is sent once to each place that has experts of its own (`dispatch`)."""
    experts: int = 1
    choices: int = 1
    """Experts that a token goes to."""
    domain: int = DOMAIN
    """GPUs that NVLink joins."""
    most: float = 1.0
    """The largest part of all places that a token may reach."""
    weighed: int = 0
    """Numbers of a token that is sent with a float32 for each expert of a domain (HybridEP); 0: it is sent alone."""
    when: When = When.ALWAYS
    counted: bool = False
    """The host must know how many tokens each expert gets before it can go on."""

    def meets(self, split: Split) -> bool:
        """Do ranks meet here if layers are split like this?"""
        return self.when in (When.ALWAYS, When.FOLDED if split.folded else When.SPLIT)

    def travelling(self, split: Split) -> float:
        """The part of its elements that travels between ranks which share the experts out."""
        if not self.once:
            return 1.0
        together = self.domain if split.folded else max(1, self.domain // (split.tensor * split.context))
        beside = 0.0
        if self.weighed:  # a float32 takes as much as two of the numbers of a token
            known = self.experts * min(1.0, together / split.expert)
            beside = FLOAT32 * known / self.weighed
        return (1 + beside) * sent_once(split.expert, together, self.experts, self.choices, self.most)

    def forward(self) -> tuple[Kernel, ...]:
        return ()

    def backward(self) -> tuple[Kernel, ...]:
        return ()

    def split(self, split: Split) -> Exchange:
        ways = split.context
        if self.meeting in (Meeting.DISPATCH, Meeting.COMBINE):
            ways *= split.ways(Role.ROUTED)
        return replace(self, elements=part(self.elements, ways))

    def host(self) -> tuple[str, ...]:
        return ()
