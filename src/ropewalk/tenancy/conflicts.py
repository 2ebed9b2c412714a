"""What prevents an allocation from being placed: all conflicts, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ropewalk.errors import ClusterError, Findings
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.plant import Plant

if TYPE_CHECKING:
    from ropewalk.tenancy.occupancy import Occupancy


def refuse(state: Occupancy, allocation: Allocation, *, on_drained: bool) -> NoReturn:
    """Name every GPU and cable of a job that does not exist or is not free."""
    plant = state.plant
    findings = Findings(ClusterError, f"job {allocation.job}")
    if allocation.job in state.jobs:
        findings.add("it is already running: release it first")
    if len(set(allocation.gpus)) < len(allocation.gpus):
        findings.add("a GPU is listed twice: list each once")
    if not all(0 <= gpu < plant.gpus for gpu in allocation.gpus):
        findings.add(f"a GPU is not one of 0 to {plant.gpus - 1}: name GPUs of {plant.name}")
        findings.raise_if_any()
    for server, bit in _gpu_bits(plant, allocation):
        taken = bit & ~int(state.free_gpus[server])
        if taken or not (on_drained or state.free_in_server[server]):
            why = "drained" if not taken else f"taken (GPUs {_numbers(taken)})"
            findings.add(f"server {plant.server_names[server]} is {why}: ask for what is free")
    _find_taken_cables(state, allocation, findings, on_drained)
    findings.raise_if_any()
    raise AssertionError(f"{allocation.job} was refused without a reason")


def refuse_links(state: Occupancy, name: str, allocation: Allocation) -> NoReturn:
    """Name every cable that cannot be kept under a name after its job has ended."""
    findings = Findings(ClusterError, f"links of {name}")
    if name in state.releasing:
        findings.add("they are already being released: name them once")
    _find_taken_cables(state, allocation, findings, on_drained=True)
    findings.raise_if_any()
    raise AssertionError(f"{allocation.job} was refused without a reason")


def link_name(plant: Plant, leaf: int, spine: int) -> str:
    """A leaf and a spine by name."""
    return f"{plant.leaf_names[leaf]} - {plant.spine_names[spine]}"


def _find_taken_cables(state: Occupancy, allocation: Allocation, findings: Findings, on_drained: bool) -> None:
    plant = state.plant
    below = ("leaf", plant.leaf_names), ("spine", plant.spine_names), allocation.reserved(), state.links
    above = ("spine", plant.spine_names), ("core", plant.core_names), allocation.reserved_above(), state.core_links
    for (lower, names), (upper, upper_names), reserved, links in (below, above):
        for one, two, cable in reserved:
            if not (0 <= one < len(names) and 0 <= two < len(upper_names)):
                findings.add(f"{plant.name} has no {lower} {one} with a {upper} {two}: name links of the plant")
                continue
            free = cable >= 0 and int(links.bits[one, two]) >> cable & 1
            if not free or not (on_drained or links.count[one, two]):
                link = f"{names[one]} - {upper_names[two]}"
                findings.add(f"cable {cable} of {link} is not free: reserve another {upper}")
        if len(set(reserved)) < len(reserved):
            findings.add("a cable is reserved twice: reserve each once")


def _gpu_bits(plant: Plant, allocation: Allocation) -> list[tuple[int, int]]:
    """The GPUs of a job as (server, bits of its mask)."""
    bits: dict[int, int] = {}
    for gpu in allocation.gpus:
        server, place = divmod(gpu, plant.gpus_per_server)
        bits[server] = bits.get(server, 0) | 1 << place
    return sorted(bits.items())


def _numbers(bits: int) -> str:
    return ", ".join(str(place) for place in range(bits.bit_length()) if bits >> place & 1)
