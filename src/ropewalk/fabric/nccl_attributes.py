"""Attributes of NCCL's topology elements as numbers; what cannot be read is a finding with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import overload

from ropewalk.documents.from_xml import Element
from ropewalk.errors import Findings
from ropewalk.fabric.nccl_speeds import UNKNOWN_LANES, LinkSpeeds, transfers_of

_WHOLE = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,15})?")
_BUS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-9a-fA-F])")
_HIDDEN = re.compile(r"f+(:f+)*(\.f)?|", re.IGNORECASE)
"""What drivers write for a device that they do not show."""
MOST_LINKS = 1 << 16
"""Between two ends: far more than any device has, and few enough to be counted."""


def text_of(element: Element, name: str, findings: Findings, default: str | None = None) -> str | None:
    value = element.attributes.get(name, default)
    if value is None:
        findings.add(f"line {element.line}: <{element.name}> has no {name}: add it, or dump the topology again")
    return value


@overload
def whole_of(element: Element, name: str, findings: Findings, default: int) -> int: ...
@overload
def whole_of(element: Element, name: str, findings: Findings, default: int | None = None) -> int | None: ...
def whole_of(element: Element, name: str, findings: Findings, default: int | None = None) -> int | None:
    """A whole number, decimal or 0x…."""
    if name not in element.attributes and default is not None:
        return default
    text = text_of(element, name, findings)
    if text is None:
        return None
    if _WHOLE.fullmatch(text.strip()) is None or len(text) > 18:
        findings.add(f"line {element.line}: {name} is {text[:20]!r}: write a whole number")
        return default
    return int(text, 16 if "x" in text.lower() else 10)


def count_of(element: Element, findings: Findings) -> int | None:
    """How many links an element stands for."""
    count = whole_of(element, "count", findings)
    if count is not None and not 1 <= count <= MOST_LINKS:
        findings.add(f"line {element.line}: count is {count}: write the number of links, or remove the element")
        return None
    return count


def microseconds_of(element: Element, name: str, findings: Findings) -> float | None:
    """A duration in microseconds as seconds; none is no time."""
    text = element.attributes.get(name, "0")
    if _DECIMAL.fullmatch(text.strip()) is None:
        findings.add(f"line {element.line}: {name} is {text[:20]!r}: write a number of microseconds")
        return None
    return float(text) * 1e-6


def bus_of(element: Element, name: str, findings: Findings) -> int | None:
    """The address of a PCI device as a number, so that 0000:07:00.0 and 00000000:07:00.0 are the same."""
    text = text_of(element, name, findings)
    if text is None or _HIDDEN.fullmatch(text):
        return None
    match = _BUS.fullmatch(text)
    if match is None:
        findings.add(f"line {element.line}: {name} is {text[:20]!r}: write a PCI address such as 0000:07:00.0")
        return None
    domain, bus, device, function = (int(part, 16) for part in match.groups())
    return domain << 20 | bus << 12 | device << 4 | function


def pcie_of(element: Element, speeds: LinkSpeeds, findings: Findings) -> float | None:
    """Bytes/s of the PCIe link above a device, one direction; as NCCL does, x16 of version 3 where nobody knows."""
    transfers = transfers_of(element.attributes.get("link_speed", ""))
    if transfers is None:
        findings.add(
            f"line {element.line}: link_speed is {element.attributes['link_speed'][:20]!r}: write it as the kernel "
            "does, such as 16.0 GT/s PCIe"
        )
        return None
    if element.attributes.get("link_width", "") in ("", "0"):
        return speeds.pcie_bandwidth(transfers, UNKNOWN_LANES)
    lanes = whole_of(element, "link_width", findings)
    if lanes is None:
        return None
    if not 1 <= lanes <= 32:
        findings.add(f"line {element.line}: link_width is {lanes}: write 1 to 32 lanes, or 0 if unknown")
        return None
    return speeds.pcie_bandwidth(transfers, lanes)


@dataclass(frozen=True)
class LinkBundle:
    """`count` NVLinks or Infinity Fabric links from a GPU to one target, each of `bandwidth` bytes/s."""

    target: int | None
    target_class: str
    count: int
    bandwidth: float
    element: Element


def lines_of(gpu: Element, speeds: LinkSpeeds, findings: Findings) -> Iterator[LinkBundle]:
    """The links of a GPU to other GPUs and to switches."""
    for element in gpu.inside:
        if element.name not in ("nvlink", "xgmi"):
            continue
        count = count_of(element, findings)
        target_class = text_of(element, "tclass", findings)
        target = bus_of(element, "target", findings)
        if element.name == "xgmi":
            kind = text_of(gpu, "gcn", findings)
            bandwidth = None if kind is None else speeds.xgmi_bandwidth(kind)
        else:
            capability = whole_of(gpu, "sm", findings)
            bandwidth = None if capability is None else speeds.nvlink_bandwidth(capability)
        if count is None or target_class is None or bandwidth is None:
            continue
        yield LinkBundle(target, target_class, count, bandwidth, element)
