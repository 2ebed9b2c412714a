"""The two schemas of a fabric file, as pydantic models, and the way from a parsed document to rows.

Rows are validated one by one, so that a mistake in one link does not hide the mistakes in the others.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, ValidationError

from ropewalk import units
from ropewalk.documents.entries import sentence
from ropewalk.documents.numbers import ratio
from ropewalk.errors import Findings, UnitError
from ropewalk.fabric.sheet import LinkRow, NodeRow


def _as_name(value: object) -> object:
    """Numbers are good names; what YAML makes of words such as `on` is not what was written."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a name: write it in quotes")
    return value


def _as_text(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)  # the reader of quantities says what is missing: the unit
    return value


def _as_gigabytes(value: object) -> object:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        exact = ratio(value.strip()) if isinstance(value, str) else Fraction(value)
        return float(exact * 10**9)
    except (ValueError, OverflowError):
        raise ValueError(f"capacity {value!r} is not a number of GB/s: write it like 25, 12.5 or 25/2") from None


Name = Annotated[str, BeforeValidator(_as_name)]
Quantity = Annotated[str, BeforeValidator(_as_text)]
Gigabytes = Annotated[float, BeforeValidator(_as_gigabytes)]
Strict = ConfigDict(extra="forbid")


class Sheet(BaseModel):
    """The usual form: links carry their units and are duplex unless said otherwise."""

    model_config = Strict
    name: Name | None = None
    description: str | None = None
    hosts: list[Any]
    switches: list[Any] = []
    links: list[Any]


class CompactSheet(BaseModel):
    """The compact form: every row of links is one directed link with a capacity in GB/s."""

    model_config = Strict
    name: Name | None = None
    description: str | None = None
    units: Literal["GB/s"] = "GB/s"
    compute: list[Any]
    switches: list[Any] = []
    links: list[Any]


class HostEntry(BaseModel):
    model_config = Strict
    name: Name
    server: Annotated[StrictInt, Field(ge=0, lt=2**31)] | None = None


class SwitchEntry(BaseModel):
    model_config = Strict
    name: Name
    level: Annotated[StrictInt, Field(ge=1, lt=2**15)] = 1


class LinkEntry(BaseModel):
    model_config = Strict
    src: Name = Field(alias="from")
    dst: Name = Field(alias="to")
    bandwidth: Quantity
    latency: Quantity = "0s"
    cables: Annotated[StrictInt, Field(ge=1, lt=2**31)] = 1
    duplex: StrictBool = True


class CompactLink(BaseModel):
    src: Name
    dst: Name
    capacity: Gigabytes


Model = TypeVar("Model", bound=BaseModel)
Rows = tuple[str | None, list[NodeRow], list[LinkRow]]


def rows_of(document: object, findings: Findings) -> Rows:
    """Name, nodes and links of a parsed file; whatever does not fit is added to the findings."""
    if not isinstance(document, dict):
        findings.add("is not a mapping: begin with the keys hosts, switches and links")
        findings.raise_if_any()
    compact = isinstance(document, dict) and "compute" in document
    model: type[Sheet] | type[CompactSheet] = CompactSheet if compact else Sheet
    sheet = validated(model, document, "", findings)
    if sheet is None:  # which keys there are is not known, so no row can be read
        findings.raise_if_any()
        raise AssertionError("a sheet that is not valid has findings")
    host_key, host_entries = ("compute", sheet.compute) if isinstance(sheet, CompactSheet) else ("hosts", sheet.hosts)
    nodes = [
        NodeRow(entry.name, 0, where, entry.server)
        for where, entry in entries(host_key, host_entries, HostEntry, findings)
    ]
    nodes += [
        NodeRow(entry.name, entry.level, where)
        for where, entry in entries("switches", sheet.switches, SwitchEntry, findings)
    ]
    read = _compact_link if isinstance(sheet, CompactSheet) else link_row
    found = (read(row, f"links[{number}]", findings) for number, row in enumerate(sheet.links))
    return sheet.name, nodes, [row for row in found if row is not None]


def entries(key: str, rows: list[Any], model: type[Model], findings: Findings) -> list[tuple[str, Model]]:
    """Each row of a list of nodes, where a bare name stands for an entry with only that name."""
    found = []
    for number, row in enumerate(rows):
        where = f"{key}[{number}]"
        entry = validated(model, row if isinstance(row, dict) else {"name": row}, where, findings)
        if entry is not None:
            found.append((where, entry))
    return found


def link_row(row: object, where: str, findings: Findings) -> LinkRow | None:
    if isinstance(row, list):
        if len(row) != 3:
            findings.add(f"{where}: has {len(row)} items: write [from, to, bandwidth]")
            return None
        row = dict(zip(("from", "to", "bandwidth"), row, strict=True))
    entry = validated(LinkEntry, row, where, findings)
    if entry is None:
        return None
    bandwidth = quantity(units.bandwidth, entry.bandwidth, where, findings)
    latency = quantity(units.seconds, entry.latency, where, findings)
    return LinkRow(entry.src, entry.dst, bandwidth, latency or 0.0, entry.cables, entry.duplex, where)


def _compact_link(row: object, where: str, findings: Findings) -> LinkRow | None:
    if not isinstance(row, list) or len(row) != 3:
        findings.add(f"{where}: is not a list of three: write [from, to, GB/s]")
        return None
    entry = validated(CompactLink, dict(zip(("src", "dst", "capacity"), row, strict=True)), where, findings)
    return None if entry is None else LinkRow(entry.src, entry.dst, entry.capacity, 0.0, 1, False, where)


def quantity(read: Callable[[str], float], text: str, where: str, findings: Findings) -> float | None:
    try:
        return read(text)
    except UnitError as problem:
        findings.add(f"{where}: {problem}")
        return None
    except OverflowError:
        findings.add(f"{where}: {text[:20]}… is larger than any number: write it like 100Gbps or 1us")
        return None


def validated(model: type[Model], value: object, where: str, findings: Findings) -> Model | None:
    try:
        return model.model_validate(value)
    except ValidationError as problem:
        for error in problem.errors():
            at = ".".join([where, *map(str, error["loc"])]).strip(".")
            findings.add(f"{at}: {sentence(model, error)}")
        return None
