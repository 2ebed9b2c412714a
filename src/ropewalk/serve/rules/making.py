"""The rules of a job, from its allocation: one for every GPU that sends beyond its leaf, and what circuits need.

The makers are those of `export.cluster`, so `ropewalk cluster rules` and a live controller never differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from ropewalk.export.cluster.addresses import AddressPlan
from ropewalk.export.cluster.circuits import Fibre as FibreNumbers
from ropewalk.export.cluster.circuits import joined, spine_rules
from ropewalk.export.cluster.rules import leaf_rules
from ropewalk.serve.rules.changes import Over
from ropewalk.serve.rules.rule import Fibre, Join, Keep, Relay, Rule, Send
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.shards.allocate import SHARD


def rules_of(
    plant: Plant, job: str, allocation: Allocation, addresses: AddressPlan, generation: int, *, shared: bool = False
) -> tuple[Rule, ...]:
    """All rules of a job in the order of devices and keys, with the local rule of each of its leafs.

    A job on shared links has rules only where the policy routes it by source (`shared`); switches hash otherwise. A
    shard has no switches: its patch list is a file of `ropewalk cluster rules`.

    >>> from ropewalk.tenancy.plant import plant
    >>> small = plant("leaf-spine:2x2x2", gpus_per_server=1)
    >>> links = ((0, 0), (0, 1), (1, 0), (1, 1))
    >>> held = Allocation("j1", (0, 1, 2, 3), "clos", (0, 1), (0, 1), links, (0, 1, 0, 1), (0, 0, 1, 1))
    >>> for rule in rules_of(small, "j1", held, AddressPlan.numbered(small), 1)[:3]:
    ...     print(rule.device, rule.job or "-", rule.body)
    leaf0 j1 Send(source='10.0.0.1', next_hop='172.16.0.1')
    leaf0 j1 Send(source='10.0.0.2', next_hop='172.16.0.3')
    leaf0 - Keep(destination='10.0.0.0/30')
    """
    if allocation.stage == SHARD or (allocation.stage == "shared" and not shared):
        return ()
    found = [*_of_leafs(plant, job, allocation, addresses, generation)]
    if allocation.stage == "ocs" and isinstance(plant, OpticalPlant):
        found += _of_switches(plant, job, allocation, generation)
        found += _of_spines(plant, job, allocation, addresses, generation)
    return tuple(sorted(found, key=lambda rule: rule.order))


def what_is_over(
    plant: Plant, job: str, allocation: Allocation, addresses: AddressPlan, generation: int
) -> Over:  # fmt: skip
    """Where rules of an allocation may be left; some of its links may belong to the next allocation of its job."""
    devices = {plant.leaf_names[leaf] for leaf in allocation.leafs}
    if allocation.stage == "ocs":
        devices |= set(plant.spine_names)
    keys = frozenset(Send(str(addresses.nics[gpu]), "").key for gpu in allocation.gpus)
    return Over(job, generation, frozenset(devices), keys)


def _of_leafs(
    plant: Plant, job: str, allocation: Allocation, addresses: AddressPlan, generation: int
) -> Iterator[Rule]:
    for one in leaf_rules(plant, [allocation], addresses):
        leaf = plant.leaf_names[one.leaf]
        yield Rule.on(leaf, Keep(str(one.subnet)))
        for source in one.sources:
            yield Rule.on(leaf, Send(str(source.source), str(source.next_hop)), job, generation)


def _of_switches(plant: OpticalPlant, job: str, allocation: Allocation, generation: int) -> Iterator[Rule]:
    for switch, leaf, far_end in joined(plant, allocation):
        yield Rule.on(switch, Join(leaf, far_end), job, generation)


def _of_spines(
    plant: OpticalPlant, job: str, allocation: Allocation, addresses: AddressPlan, generation: int
) -> Iterator[Rule]:
    for one in spine_rules(plant, allocation):
        arrives = tuple(_fibre(plant, fibre) for fibre in one.arrives)
        gpus = tuple(str(addresses.nics[gpu]) for gpu in one.gpus)
        body = Relay(arrives, gpus, _fibre(plant, one.leaves))
        yield Rule.on(plant.spine_names[one.spine], body, job, generation)


def _fibre(plant: OpticalPlant, fibre: FibreNumbers) -> Fibre:
    leaf, switch = fibre
    return plant.leaf_names[leaf], plant.spine_names[plant.packet_spines + switch]
