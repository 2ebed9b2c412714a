"""What is said of a cluster before defaults fill the gaps: by a file, a preset, a shape, options of a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ropewalk import units
from ropewalk.errors import Findings
from ropewalk.hardware.cluster import Ports

DEFAULT_DEGREE = 4
"""Ports of a server that are to be wired, where nobody says how many."""


@dataclass(frozen=True)
class GivenPorts:
    """What the options of a command that wires ports say of them; None: nothing."""

    degree: int | None = None
    duplex: bool | None = None
    single_panel: bool | None = None
    prices: str | None = None


@dataclass(frozen=True)
class Given:
    """What the options of a command say; None: nothing."""

    gpus: int | None = None
    """Of the whole cluster, where no file, preset or shape says it."""
    device: str | None = None
    gpus_per_server: int | None = None
    nics: int | None = None
    nic_bandwidth: float | None = None
    nvlink_bandwidth: float | None = None
    network: str | None = None
    latency_s: float | None = None
    rails: bool | None = None
    servers: int | None = None
    """Of the whole cluster; to be agreed with."""
    ports: GivenPorts | None = None
    """The network is to be wired."""


@dataclass(frozen=True)
class GroupDraft:
    """A group of equal servers; None: not said."""

    count: int
    gpus: int
    device: str | None = None
    nvlink_bandwidth: float | None = None
    nics: int | None = None
    nic_bandwidth: float | None = None


@dataclass(frozen=True)
class ClusterDraft:
    """A cluster as far as it is said."""

    source: str
    """Who says it: `cluster file pod.yaml`."""
    groups: tuple[GroupDraft, ...]
    network: str | Ports | None = None
    latency_s: float | None = None
    rails: bool | None = None
    failed: tuple[str, ...] = ()
    firm: bool = True
    """Do options that say otherwise contradict it? A preset is a start: its speeds and its network can be replaced."""


def merged(draft: ClusterDraft, given: Given, findings: Findings) -> ClusterDraft:
    """The draft with what options add; an option that says something else is a finding that names both facts."""
    total = sum(one.count * one.gpus for one in draft.groups)
    if given.gpus is not None and given.gpus != total:
        findings.add(f"it has {total} GPUs, but --gpus is {given.gpus}: leave one of the two out")
    count = sum(one.count for one in draft.groups)
    if given.servers is not None and given.servers != count:
        findings.add(f"it has {count} servers, but --servers is {given.servers}: leave one of the two out")
    groups = tuple(_group(group, draft.firm, given, findings) for group in draft.groups)
    network = _network(draft, given, findings) if given.ports is None else _ports(draft, groups, given.ports, findings)
    latency = _either(draft.latency_s, given.latency_s, "links of {}", "--hop-latency", draft.firm, findings, _seconds)
    # The rails of a preset are those of its network: who names another network names its rails with it.
    said = draft.rails if draft.firm or given.network is None else None
    rails = _either(said, given.rails, "rails {}", "--rails", draft.firm, findings, str)
    return replace(draft, groups=groups, network=network, latency_s=latency, rails=rails)


def _network(draft: ClusterDraft, given: Given, findings: Findings) -> str | Ports | None:
    """The network that is described or named."""
    if given.network is None:
        return draft.network
    if draft.network is not None and draft.network != given.network and draft.firm:
        said = "ports to be wired" if isinstance(draft.network, Ports) else f"the network {draft.network}"
        findings.add(f"it has {said}, but --fabric is {given.network}: leave one of the two out")
    return given.network


def _ports(draft: ClusterDraft, groups: tuple[GroupDraft, ...], given: GivenPorts, findings: Findings) -> Ports | None:
    """The ports to be wired; every NIC is one where both are described."""
    if isinstance(draft.network, str) and draft.firm:
        findings.add(
            f"it has the network {draft.network}, so there are no ports to wire: describe ports instead, such as "
            "ports: {degree: 4}"
        )
        return None
    said = draft.network if isinstance(draft.network, Ports) else None
    nics = next((group.nics for group in groups if group.nics is not None), DEFAULT_DEGREE)

    def either(name: str, fact: str, option: str) -> Any:
        return _either(getattr(said, name, None), getattr(given, name), fact, option, draft.firm, findings, str)

    degree = either("degree", "{} ports per server", "--degree")
    duplex = either("duplex", "duplex {}", "--duplex")
    single_panel = either("single_panel", "single_panel {}", "--single-panel")
    prices = either("prices", "prices of {}", "--prices")
    return Ports(nics if degree is None else degree, duplex is not False, bool(single_panel), prices or Ports(1).prices)


def _group(group: GroupDraft, firm: bool, given: Given, findings: Findings) -> GroupDraft:
    if given.gpus_per_server is not None and given.gpus_per_server != group.gpus:
        findings.add(
            f"it has servers of {group.gpus} GPUs, but --gpus-per-server is {given.gpus_per_server}: "
            "leave one of the two out"
        )
    speed = units.show_bandwidth
    return replace(
        group,
        device=_either(group.device, given.device, "servers of {} GPUs", "--device", True, findings, str),
        nics=_either(group.nics, given.nics, "servers with {} NICs", "--nics", firm, findings, str),
        nic_bandwidth=_either(
            group.nic_bandwidth, given.nic_bandwidth, "NICs of {}", "--bandwidth", firm, findings, speed
        ),
        nvlink_bandwidth=_either(
            group.nvlink_bandwidth, given.nvlink_bandwidth, "NVLink of {}", "--nvlink-bandwidth", firm, findings, speed
        ),
    )


def _either(
    said: Any, option: Any, fact: str, name: str, firm: bool, findings: Findings, show: Callable[[Any], str]
) -> Any:
    """What the option says, where it says something; a finding where that contradicts a firm description."""
    if said is None or option is None:
        return said if option is None else option
    if firm and said != option:
        message = f"it has {fact.format(show(said))}, but {name} is {show(option)}: leave one of the two out"
        if message not in findings.messages:
            findings.add(message)
    return option


def _seconds(value: float) -> str:
    return f"{units.show_seconds(value)} latency"
