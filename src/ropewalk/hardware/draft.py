"""What is said of a cluster before defaults fill the gaps: by a file, a preset, a shape, options of a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from ropewalk import units
from ropewalk.errors import Findings
from ropewalk.hardware.cluster import Ports


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

    @property
    def anything(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))


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
class Draft:
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


def merged(draft: Draft, given: Given, findings: Findings) -> Draft:
    """The draft with what options add; an option that says something else is a finding that names both facts."""
    total = sum(one.count * one.gpus for one in draft.groups)
    if given.gpus is not None and given.gpus != total:
        findings.add(f"it has {total} GPUs, but --gpus is {given.gpus}: leave one of the two out")
    groups = tuple(_group(group, draft.firm, given, findings) for group in draft.groups)
    network: Any = draft.network
    if given.network is not None:
        said = "ports to be wired" if isinstance(network, Ports) else f"the network {network}"
        if network is not None and network != given.network and draft.firm:
            findings.add(f"it has {said}, but --fabric is {given.network}: leave one of the two out")
        network = given.network
    latency = _either(draft.latency_s, given.latency_s, "links of {}", "--hop-latency", draft.firm, findings, _seconds)
    rails = _either(draft.rails, given.rails, "rails {}", "--rails", draft.firm, findings, str)
    return replace(draft, groups=groups, network=network, latency_s=latency, rails=rails)


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
