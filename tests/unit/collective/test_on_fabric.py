"""The tables: every named collective is proved on every fabric, and follows its structure where it has one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from ropewalk.collective import ALL_GATHERS, ALL_REDUCES, ALL_TO_ALLS, REDUCE_SCATTERS
from ropewalk.collective.on_fabric import host_groups
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
@pytest.mark.parametrize("name", ALL_REDUCES)
def test_every_all_reduce_is_proved_on_every_fabric(builder, name):
    program = ALL_REDUCES[name](builder.build())
    assert program.ranks == builder.hosts
    program.check()
    workers = builder.hosts - (name == "ps-dedicated")
    everywhere = program.post(np.arange(program.chunks))
    assert everywhere[:workers].all()
    assert np.array_equal(everywhere, program.pre(np.arange(program.chunks)))


@pytest.mark.parametrize("builder", FABRICS, ids=lambda builder: builder.expression)
def test_every_other_collective_is_proved_or_refused_with_a_remedy(builder):
    fabric = builder.build()
    power_of_two = builder.hosts.bit_count() == 1
    groups, size = host_groups(fabric)
    exists = {"halving": power_of_two, "doubling": power_of_two, "xor": power_of_two, "hierarchical": size > 1 < groups}
    for name, collective in [*REDUCE_SCATTERS.items(), *ALL_GATHERS.items(), *ALL_TO_ALLS.items()]:
        if exists.get(name, True):
            collective(fabric).check()
        else:
            with pytest.raises(ProgramError, match=r"or use a ring|use the shifted one"):
                collective(fabric)


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
        (Dgx(2), 1),
    ],
    ids=lambda value: getattr(value, "expression", None),
)
def test_ring_runs_as_many_rings_as_the_fabric_has_cycles_for(builder, rings):
    fabric = builder.build()
    assert ALL_REDUCES["ring"](fabric).lanes == rings
    assert ALL_REDUCES["ring-one-way"](fabric).lanes == 1
    assert ALL_REDUCES["ring-both-ways"](fabric).lanes == 2


def only_uses_neighbours(name, fabric):
    links = set(zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True))
    patterns = ALL_REDUCES[name](fabric).patterns
    return all(set(zip(each.src.tolist(), each.dst.tolist(), strict=True)) <= links for each in patterns)


@pytest.mark.parametrize("builder", [Torus((3, 4, 5)), Ring(5), Hypercube(4), Circulant(10, (1, 3))])
@pytest.mark.parametrize("name", ["ring", "ring-one-way", "ring-both-ways"])
def test_rings_on_direct_fabrics_only_use_neighbours(builder, name):
    assert only_uses_neighbours(name, builder.build())


@pytest.mark.parametrize("builder", [Torus((3, 4, 5)), Ring(5), Hypercube(4)])
def test_hierarchies_on_direct_fabrics_only_use_neighbours(builder):
    assert only_uses_neighbours("hips", builder.build())
    assert not only_uses_neighbours("mesh", builder.build())


def test_rings_on_bcube_cross_one_switch_at_a_time_and_use_every_nic_alike():
    cube = BCube(3, 3)
    program = ALL_REDUCES["ring"](cube.build())
    digits = np.arange(cube.levels)
    for pattern in program.patterns:
        differs = cube.digit(pattern.src[:, None], digits) != cube.digit(pattern.dst[:, None], digits)
        assert (differs.sum(axis=1) == 1).all()
        nic = np.bincount(pattern.src * cube.levels + np.argmax(differs, axis=1), minlength=cube.hosts * cube.levels)
        assert (nic == 2).all()


def test_a_fabric_without_a_builder_is_ringed_in_host_order():
    fabric = replace(Torus((3, 3)).build(), builder=None)
    program = ALL_REDUCES["ring"](fabric)
    program.check()
    assert program.lanes == 1
    assert np.array_equal(program.patterns[0].dst, (program.patterns[0].src + 1) % 9)
    ALL_REDUCES["hips"](fabric).check()


def test_servers_of_gpus_reduce_inside_the_server_first():
    program = ALL_REDUCES["hips"](Dgx(3, gpus=4).build())
    inside, across = (step.pattern for step in program.rounds[:2])
    assert (inside.src // 4 == inside.dst // 4).all()
    assert (across.src % 4 == across.dst % 4).all()


@pytest.mark.parametrize("name", ["ps", "ps-dedicated"])
def test_one_parameter_server_is_the_hot_spot(name):
    program = ALL_REDUCES[name](IdealSwitch(8).build())
    server = 0 if name == "ps" else 7
    assert program.sent_chunks()[server] == 7
    assert np.delete(program.sent_chunks(), server).tolist() == [1] * 7


def test_collectives_do_not_load_the_heavy_libraries():
    check = "import sys, ropewalk.collective; print([m for m in ('numba', 'scipy', 'networkx') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
