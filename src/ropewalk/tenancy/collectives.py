"""What the ranks of a job exchange, by name, as programs: what is proved free of contention, and what runs.

A name is a collective of the table (`ring`, `hips`, `xor`), for an all-reduce or for the act that it has; an act
(`all-gather`), which then runs what libraries run; both (`all-gather:mesh`); or one of two patterns of pipelines.
`rounds.py` rolls the same programs up for replays, so that what slows jobs down is what was proved.

Ranks are in the order of the allocation, leaf by leaf. Every GPU has a NIC, so rings do not look into servers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ropewalk.collectives.act import EXCHANGES, Act
from ropewalk.collectives.folding import among
from ropewalk.collectives.group import Group, whole_fabric
from ropewalk.collectives.program import Program, Round, arrows, only, owner
from ropewalk.collectives.ring import ring_all_reduce
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.errors import ClusterError, ProgramError
from ropewalk.fabric import Dgx


def job_group(leaf_sizes: Sequence[int], ranks_per_server: int = 1) -> Group:
    """Who takes part: ranks on each leaf in order, and how many consecutive ranks share a server."""
    return Group((1,) * sum(leaf_sizes), leafs=tuple(leaf_sizes), block=ranks_per_server, own_paths=False)


def pipeline_sends(stage: int, *, both_ways: bool = False) -> Callable[[Group], Program]:
    """Every rank sends to the rank one stage further on, and with `both_ways` also to the one before, at once."""

    def program(group: Group) -> Program:
        ranks = group.ranks
        if not 0 < stage < ranks:
            raise ProgramError(f"a stage of {stage} of {ranks} ranks sends nowhere: give 1 to {ranks - 1} ranks")
        near = np.arange(ranks - stage)
        src = np.concatenate([near, near + stage]) if both_ways else near
        dst = np.concatenate([near + stage, near]) if both_ways else near + stage
        chunk = np.arange(len(src))
        return Program(
            f"pipeline sends over stages of {stage}",
            ranks,
            len(src),
            (Round(arrows(src, dst, 1, reduces=False), lambda: (np.arange(len(src) + 1), chunk)),),
            pre=owner(ranks, lambda ids: src[ids]),
            post=owner(ranks, lambda ids: dst[ids]),
            own_chunks=1,
        )

    return program


def ends(group: Group) -> Program:
    """All-reduce between the first and the last rank alone: pipeline stages that hold the same embedding."""
    both = np.array([0, group.ranks - 1])
    inner = ring_all_reduce([[0, 1]])
    held = only(group.ranks, both)
    return Program("all-reduce between the ends", group.ranks, inner.chunks, tuple(among(inner, both)), held, held)


PATTERNS: dict[str, Callable[[Group], Program]] = {"pipeline": pipeline_sends(1, both_ways=True), "ends": ends}
"""A pipeline here has one rank in each stage; `pipeline_sends` takes larger ones."""

USUAL: dict[str, str] = {
    act.words: "shift" if act is Act.ALL_TO_ALL else "ring" for act in EXCHANGES if act is not Act.ALL_REDUCE
}
"""What runs where a job names an act alone."""


def is_synthesised(name: str) -> bool:
    """Is it made for a network?"""
    named = collective_named(name)
    return named is not None and COLLECTIVES[named[1]].own_paths


def collective_named(name: str) -> tuple[Act, str] | None:
    """The act and the collective that a name stands for; None for a pattern of pipelines.

    >>> collective_named("all-gather"), collective_named("xor")
    ((<Act.ALL_GATHER: 3>, 'ring'), (<Act.ALL_TO_ALL: 5>, 'xor'))
    """
    if name in PATTERNS:
        return None
    word, _, chosen = name.partition(":")
    named = chosen or USUAL.get(word, word)
    if named not in COLLECTIVES:
        raise ClusterError(COLLECTIVES.unknown(named, also=(*USUAL, *PATTERNS)))
    if word in USUAL:
        return next(act for act in EXCHANGES if act.words == word), named
    return next(iter(COLLECTIVES[named].make)), named


def fitting(name: str, group: Group) -> tuple[Act, str] | None:
    """The same; refused, with what does apply, where it does not apply to these ranks."""
    named = collective_named(name)
    refusal = COLLECTIVES.refusal(named[1], named[0], group) if named is not None else None
    if refusal is not None:
        raise ClusterError(refusal)
    return named


def program_of(name: str, group: Group) -> Program:
    """The program of what a job exchanges, round by round."""
    named = fitting(name, group)
    return PATTERNS[name](group) if named is None else COLLECTIVES[named[1]].program(named[0], group)


def synthesised_program(name: str, group: Group) -> Program:
    """What is made for a network, for ranks in servers under one switch: a job does not know its place beforehand.

    It is then routed as everything else; the paths that a schedule brings lead through that one switch.
    """
    block = max(group.block, 1)
    servers = Dgx(group.ranks // block, gpus=block, rails=1).build()
    return program_of(name, whole_fabric(servers, own_paths=True))
