"""The tables: every named collective is proved on every fabric, and follows its structure where it has one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from collective_names import PROGRAMS

from ropewalk.collectives.act import EXCHANGES, Act
from ropewalk.collectives.group import whole_fabric
from ropewalk.collectives.table import COLLECTIVES, program_on
from ropewalk.errors import ProgramError
from ropewalk.fabric import (
    BCube,
    Circulant,
    Dgx,
    Dragonfly,
    FatTree,
    Hypercube,
    IdealSwitch,
    LeafSpine,
    Mesh,
    Ring,
    Torus,
)

FABRICS = [
    IdealSwitch(2),
    IdealSwitch(7),
    IdealSwitch(12),
    FatTree(2),
    FatTree(4),
    FatTree(4, 3),
    FatTree(6, 2),
    LeafSpine(3, 2, 4),
    *(BCube(n, k) for n in (2, 3, 4, 5) for k in (1, 2, 3) if n**k <= 64),
    *map(Torus, [(2,), (1, 3), (2, 2), (3, 4), (4, 4), (5, 3), (2, 3, 1, 4), (3, 3, 3)]),
    Mesh((3, 4)),
    Ring(6),
    Hypercube(4),
    Dragonfly(3, 2, 2, 1),
    Dgx(2),
    Circulant(10, (1, 3)),
    Circulant(6, (2, 3)),
]


@pytest.mark.parametrize("builder", FABRICS, ids=lambda builder: builder.expression)
@pytest.mark.parametrize("name", [name for name in PROGRAMS if Act.ALL_REDUCE in COLLECTIVES[name].make])
def test_every_all_reduce_is_proved_on_every_fabric(builder, name):
    program = program_on(builder.build(), name)
    assert program.ranks == builder.hosts
    program.check()
    workers = builder.hosts - (name == "ps-dedicated")
    everywhere = program.post(np.arange(program.chunks))
    assert everywhere[:workers].all()
    assert np.array_equal(everywhere, program.pre(np.arange(program.chunks)))


@pytest.mark.parametrize("builder", FABRICS, ids=lambda builder: builder.expression)
def test_every_other_collective_is_proved_or_refused_with_a_remedy(builder):
    fabric = builder.build()
    for act, name in product(EXCHANGES, PROGRAMS):
        if act not in COLLECTIVES[name].make:
            continue
        if COLLECTIVES.refusal(name, act, whole_fabric(fabric)) is None:
            program_on(fabric, name, act).check()
        else:
            assert name in ("halving-doubling", "xor")
            with pytest.raises(ProgramError, match=r"needs a power of two of ranks, and there are \d+: use"):
                program_on(fabric, name, act)


@pytest.mark.parametrize(
    ("builder", "rings"),
    [
        (Torus((4, 4)), 4),
        (Torus((3, 4, 5)), 6),
        (Torus((2, 5)), 2),
        (BCube(3, 2), 4),
        (BCube(2, 4), 4),
        (Hypercube(5), 4),
        (Ring(5), 2),
        (Circulant(10, (1, 3)), 4),
        (Circulant(6, (2, 3)), 1),
        (FatTree(4), 1),
        (LeafSpine(2, 2, 3), 1),
        (IdealSwitch(5), 1),
        (Dgx(2), 8),
    ],
    ids=lambda value: getattr(value, "expression", None),
)
def test_ring_runs_as_many_rings_as_the_fabric_has_cycles_or_a_server_gpus(builder, rings):
    fabric = builder.build()
    assert program_on(fabric, "ring").lanes == rings
    assert program_on(fabric, "ring-one-way").lanes == 1
    assert program_on(fabric, "double-ring").lanes == 2


def only_uses_neighbours(name, fabric):
    links = set(zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True))
    patterns = program_on(fabric, name).patterns
    return all(set(zip(each.src.tolist(), each.dst.tolist(), strict=True)) <= links for each in patterns)


@pytest.mark.parametrize("builder", [Torus((3, 4, 5)), Ring(5), Hypercube(4), Circulant(10, (1, 3))])
@pytest.mark.parametrize("name", ["ring", "ring-one-way", "double-ring"])
def test_rings_on_direct_fabrics_only_use_neighbours(builder, name):
    assert only_uses_neighbours(name, builder.build())


@pytest.mark.parametrize("builder", [Torus((3, 4, 5)), Ring(5), Hypercube(4)])
def test_hierarchies_on_direct_fabrics_only_use_neighbours(builder):
    assert only_uses_neighbours("hips", builder.build())
    assert not only_uses_neighbours("mesh", builder.build())


def test_rings_on_bcube_cross_one_switch_at_a_time_and_use_every_nic_alike():
    cube = BCube(3, 3)
    program = program_on(cube.build(), "ring")
    digits = np.arange(cube.levels)
    for pattern in program.patterns:
        differs = cube.digit(pattern.src[:, None], digits) != cube.digit(pattern.dst[:, None], digits)
        assert (differs.sum(axis=1) == 1).all()
        nic = np.bincount(pattern.src * cube.levels + np.argmax(differs, axis=1), minlength=cube.hosts * cube.levels)
        assert (nic == 2).all()


def test_a_fabric_without_a_builder_is_ringed_in_host_order():
    fabric = replace(Torus((3, 3)).build(), builder=None)
    program = program_on(fabric, "ring")
    program.check()
    assert program.lanes == 1
    assert np.array_equal(program.patterns[0].dst, (program.patterns[0].src + 1) % 9)
    program_on(fabric, "hips").check()


def test_servers_of_gpus_reduce_inside_the_server_first():
    program = program_on(Dgx(3, gpus=4).build(), "hips")
    inside, across = (step.pattern for step in program.rounds[:2])
    assert (inside.src // 4 == inside.dst // 4).all()
    assert (across.src % 4 == across.dst % 4).all()


@pytest.mark.parametrize("name", ["ps", "ps-dedicated"])
def test_one_parameter_server_is_the_hot_spot(name):
    program = program_on(IdealSwitch(8).build(), name)
    server = 0 if name == "ps" else 7
    assert program.sent_chunks()[server] == 7
    assert np.delete(program.sent_chunks(), server).tolist() == [1] * 7


def test_collectives_do_not_load_the_heavy_libraries():
    check = "import sys, ropewalk.collectives; print([m for m in ('numba', 'scipy', 'networkx') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
