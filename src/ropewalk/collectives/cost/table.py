"""Which closed form holds for a collective on a fabric under a routing: a formula where there is one, else counting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ropewalk.collectives.cost.bcube import BCUBE_FORMS, printed_ring
from ropewalk.collectives.cost.counted import counted, counted_at_hosts
from ropewalk.collectives.cost.fat_tree import FAT_TREE_FORMS
from ropewalk.collectives.cost.form import HASHED, ClosedForm, Derivation
from ropewalk.collectives.cost.leaf_spine import LEAF_SPINE_FORMS
from ropewalk.collectives.cost.star import SWITCH_FORMS
from ropewalk.collectives.cost.torus import TORUS_FORMS, printed_mesh
from ropewalk.collectives.table import COLLECTIVES, program_on
from ropewalk.fabric import BCube, Builder, FatTree, Hypercube, IdealSwitch, LeafSpine, Ring, Torus
from ropewalk.routing import ROUTERS

COUNTED_HOSTS = 4096
"""Hosts up to which a form without formula is counted: some seconds and some hundred megabytes."""

COUNTED_HOSTS_ALL_TO_ALL = 512
"""The same for collectives in which every pair of hosts talks."""


@dataclass(frozen=True)
class _Family:
    """The formulas of one kind of fabric, and the routings whose load they know."""

    forms: Mapping[str, Derivation]
    routings: tuple[str, ...]
    as_record: Callable[[Any], Any] = lambda builder: builder
    """The builder as the record that the formulas are written for."""


_TREES, _GRIDS = ("dmodk", "spray"), ("dimension", "dimension-rotated")

_FAMILIES: Mapping[type, _Family] = {
    IdealSwitch: _Family(SWITCH_FORMS, _TREES),
    FatTree: _Family(FAT_TREE_FORMS, _TREES),
    LeafSpine: _Family(LEAF_SPINE_FORMS, _TREES),
    BCube: _Family(BCUBE_FORMS, _GRIDS),
    Torus: _Family(TORUS_FORMS, _GRIDS),
    Ring: _Family(TORUS_FORMS, _GRIDS, lambda ring: Torus((ring.hosts,))),
    Hypercube: _Family(TORUS_FORMS, _GRIDS, lambda cube: Torus((2,) * cube.dimensions)),
}

_NO_FORMULAS = _Family({}, ())

_PRINTED: Mapping[tuple[type, str], Callable[[Any], ClosedForm | None]] = {
    (Torus, "mesh"): printed_mesh,
    (BCube, "ring"): printed_ring,
}


def closed_form(logical: str, builder: Builder, routing: str) -> ClosedForm | None:
    """How long an all-reduce takes, by its name and the name of the routing; None where counting would take too long.

    A routing that hashes has no closed form: the form without collisions is given, and says that it is a bound.

    >>> closed_form("hips", BCube(4, 2), "dimension").bandwidth_term
    Fraction(15, 16)
    """
    family = _FAMILIES.get(type(builder), _NO_FORMULAS)
    _check_names(logical, routing, builder, family)
    derive = family.forms.get(logical) if routing in family.routings or _is_single_path(routing) else None
    hashes = ROUTERS[routing].hashes
    form = derive(family.as_record(builder), routing if routing in family.routings else "hashed") if derive else None
    if form is not None and (not form.is_bound or hashes):
        return form
    if not _is_countable(logical, builder):
        return form
    if not hashes:
        return _count(logical, builder, routing)
    if "spray" in family.routings:
        # Spraying loads the links of every switch of a tree alike, and no choice of single paths can do better.
        return _count(logical, builder, "spray").as_bound(HASHED)
    return _bound(logical, builder)


def closed_forms(logical: str, builder: Builder, routing: str) -> tuple[ClosedForm, ...]:
    """Every edition that is known: the one that holds first, then the printed one where it differs."""
    printed = _PRINTED.get((type(builder), logical))
    editions = (closed_form(logical, builder, routing), printed(builder) if printed else None)
    return tuple(form for form in editions if form is not None)


def _is_single_path(routing: str) -> bool:
    """Does it give every pair one of its shortest paths, so that forms that hold for any such path hold for it?"""
    return routing == "shortest" or ROUTERS[routing].hashes


def _is_countable(logical: str, builder: Builder) -> bool:
    return builder.hosts <= (COUNTED_HOSTS_ALL_TO_ALL if logical in ("mesh", "ps-sharded") else COUNTED_HOSTS)


@lru_cache(maxsize=256)
def _count(logical: str, builder: Builder, routing: str) -> ClosedForm:
    fabric = builder.build()
    program = program_on(fabric, logical)
    src, dst = (np.concatenate([getattr(p, end) for p in program.patterns]) for end in ("src", "dst"))
    return counted(program, ROUTERS[routing].make(0)(fabric, src, dst), builder.bandwidth)


@lru_cache(maxsize=256)
def _bound(logical: str, builder: Builder) -> ClosedForm:
    fabric = builder.build()
    return counted_at_hosts(program_on(fabric, logical), fabric, builder.bandwidth)


def _check_names(logical: str, routing: str, builder: Builder, family: _Family) -> None:
    COLLECTIVES.named(logical)
    ROUTERS.fitting(routing, builder)
