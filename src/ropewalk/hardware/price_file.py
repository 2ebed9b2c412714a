"""Price lists that people write themselves: which keys they have, and what is wrong with them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ropewalk.errors import Findings
from ropewalk.hardware.entries import read_entry

Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RateEntry(BaseModel):
    """Prices at one line rate."""

    model_config = ConfigDict(extra="forbid")
    gbps: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    nic: Dollars
    transceiver: Dollars
    switch_port: Dollars


class PricesFile(BaseModel):
    """One price list."""

    model_config = ConfigDict(extra="forbid")
    source: str
    patch_panel_port: Dollars
    ocs_port: Dollars
    second_panel_switch: Dollars
    fibre_per_metre: Dollars
    fibre_metres: Dollars
    rates: list[Any]
    servers: dict[str, Dollars] = {}


def checked(record: dict[str, Any], findings: Findings) -> dict[str, Any]:
    """The keys of a list; everything that is wrong with them is found at once."""
    sheet = read_entry(PricesFile, record, "", findings)
    rows = [] if sheet is None else sheet.rates
    rates = [read_entry(RateEntry, row, f"rates[{number}]", findings) for number, row in enumerate(rows)]
    if sheet is not None and not rates:
        findings.add("rates: empty: give prices at one line rate or more, as [[rates]]")
    known = [rate.gbps for rate in rates if rate is not None]
    for gbps in sorted({rate for rate in known if known.count(rate) > 1}):
        findings.add(f"rates: {gbps:g} Gbps is given {known.count(gbps)} times: give it once")
    findings.raise_if_any()
    assert sheet is not None
    return sheet.model_dump() | {"rates": [rate.model_dump() for rate in rates if rate is not None]}
