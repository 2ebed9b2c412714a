"""An answer in words: bandwidths as fractions where they are short, and the cut that limits it in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ropewalk.collectives.optimum import Cut
from ropewalk.synthesis.answer import GIGA, CollectiveAnswer
from ropewalk.words import listed

LONGEST_FRACTION = 24


@dataclass(frozen=True)
class Limit:
    """Why there cannot be more: a cut and what it means."""

    sentence: str
    cut: Cut | None
    """The cut to look at; None where there is no single one."""


def gigabytes(bytes_per_second: Fraction | float) -> str:
    """GB/s, exactly where the fraction is short.

    >>> gigabytes(Fraction(1200, 7) * 10**9), gigabytes(2.5e10)
    ('171.429 GB/s = 1200/7', '25 GB/s')
    """
    if isinstance(bytes_per_second, Fraction):
        exact = bytes_per_second / GIGA
        shown = f"{float(exact):.6g} GB/s"
        return shown if exact.denominator == 1 or len(str(exact)) > LONGEST_FRACTION else f"{shown} = {exact}"
    return f"{bytes_per_second / GIGA:.6g} GB/s"


def limit_of(answer: CollectiveAnswer) -> Limit:
    """What keeps the collective from being faster on this fabric."""
    optimum = answer.optimum
    if optimum.bottleneck is not None:
        return Limit(_cut_in_words(answer, optimum.bottleneck), optimum.bottleneck)
    if not optimum.cuts:
        return Limit("no single cut: the links between all pairs together", None)
    heaviest, _ = max(optimum.cuts, key=lambda weighted: weighted[1])
    many = len(optimum.cuts)
    words = _cut_in_words(answer, heaviest)
    if many == 1:
        return Limit(words, heaviest)
    alone = all(len(cut.members) == 1 for cut, _ in optimum.cuts)
    kind = f"the cuts around {many} ranks" if alone else f"{many} cuts"
    return Limit(f"{kind} together; the tightest: {words}", heaviest)


def _cut_in_words(answer: CollectiveAnswer, cut: Cut) -> str:
    """Whose data crosses the cut in which direction, over what, and how fast."""
    fabric, inside = answer.fabric, {*cut.members, *cut.forwarders}
    inwards = any(int(fabric.link_dst[link]) in inside for link in cut.links)
    if not cut.links:  # limits of hosts have no direction of their own: sums come in, everything else gets out
        inwards = answer.question.collective in ("reduce", "reducescatter")
    moving = "traffic to {} must enter" if inwards else "traffic from {} must leave"
    subject = moving.format(_ranks_in_words(answer, cut))
    over = [fabric.link_name(link) for link in cut.links] + [
        f"the limit of {fabric.node_names[host]}" for host in cut.limits
    ]
    carry = "carries" if len(over) == 1 else "carry"
    return f"{subject} by {listed(over)}, which {carry} {gigabytes(cut.capacity)}"


def _ranks_in_words(answer: CollectiveAnswer, cut: Cut) -> str:
    """`gpu0.1 and gpu0.2`, or `15 of 16 ranks (all but gpu0.0)` where those outside are fewer."""
    names = answer.fabric.node_names
    inside = [names[host] for host in cut.members]
    if len(inside) == 1:
        return inside[0]
    outside = [names[host] for host in answer.network.members.tolist() if host not in set(cut.members)]
    few = f"all but {listed(outside)}" if 0 < len(outside) < len(inside) else listed(inside)
    return f"{len(inside)} of {answer.ranks} ranks ({few})"
