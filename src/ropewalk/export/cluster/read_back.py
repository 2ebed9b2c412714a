"""Files of a job read back after they were written, and compared with what they should say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ropewalk.errors import PhysicsError
from ropewalk.export.cluster.address_files import read_addresses
from ropewalk.export.cluster.addresses import AddressPlan
from ropewalk.export.cluster.files import sonic_file
from ropewalk.export.cluster.links import read_links, reserved_links
from ropewalk.export.cluster.ranks import read_rank_file, read_rank_table
from ropewalk.export.cluster.rule_files import read_rules
from ropewalk.export.cluster.rules import LeafRules, leaf_rules
from ropewalk.export.cluster.sonic import read_sonic
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.plant import Plant


def check_written(
    folder: Path,
    written: Collection[str],
    plant: Plant,
    allocation: Allocation,
    addresses: AddressPlan | None = None,
    on_its_leafs: Sequence[LeafRules] = (),
) -> tuple[str, ...]:
    """Prove that files say which GPU is which rank, which links are the job's, which rules; answers their names.

    `written` are the names of all files; node lists, for instance, are not read back.
    `on_its_leafs` are the rules of all jobs on the leafs of this one, which the SONiC files hold.
    """
    links = reserved_links(allocation)
    expected: dict[str, tuple[Callable[[Path], Any], Any]] = {
        "rankfile.openmpi": (lambda path: read_rank_file(path, plant), allocation.gpus),
        "ranks.csv": (lambda path: read_rank_table(path, plant), allocation.gpus),
        "links.csv": (lambda path: read_links(path, plant), links),
        "links.json": (lambda path: read_links(path, plant), links),
    }
    if addresses is not None:
        expected["rules.json"] = (lambda path: read_rules(path, plant), leaf_rules(plant, [allocation], addresses))
        expected["addresses.csv"] = (lambda path: read_addresses(path, plant), addresses)
        for one in on_its_leafs:
            expected[sonic_file(plant, one.leaf)] = (_sonic_reader(one.leaf, plant, addresses), _of_nobody(one))
    checked = tuple(name for name in expected if name in written)
    for name in checked:
        read, meant = expected[name]
        if read(folder / name) != meant:
            raise PhysicsError(f"{folder / name} differs from what was to be written: write it again")
    return checked


def _sonic_reader(leaf: int, plant: Plant, addresses: AddressPlan) -> Callable[[Path], LeafRules]:
    return lambda path: read_sonic(path, leaf, plant, addresses)


def _of_nobody(rules: LeafRules) -> LeafRules:
    """SONiC's documents do not name jobs."""
    return replace(rules, sources=tuple(replace(rule, job="") for rule in rules.sources))
