"""The page of a fabric: what it is made of, and what it looks like."""

from __future__ import annotations

from ropewalk.fabric import Fabric
from ropewalk.fabric.checks import FabricFacts
from ropewalk.report import quantity
from ropewalk.report.drawing import draw
from ropewalk.report.page import render


def fabric_page(fabric: Fabric, facts: FabricFacts) -> str:
    """One self-contained HTML page for a fabric.

    >>> from ropewalk.fabric import Torus
    >>> from ropewalk.fabric.checks import facts
    >>> torus = Torus((4, 4)).build()
    >>> "16 hosts" in fabric_page(torus, facts(torus))
    True
    """
    return render(
        "fabric.html",
        title=f"Fabric {fabric.name}",
        headline=headline(fabric, facts),
        facts=_table(fabric, facts),
        fabric=fabric,
        drawing=draw(fabric),
    )


def headline(fabric: Fabric, facts: FabricFacts) -> str:
    """The fabric in one sentence."""
    joined = f"connects {quantity.count(facts.hosts)} hosts"
    if facts.switches == 0:
        joined += " without switches"
    else:
        joined += f" with {quantity.count(facts.switches)} switch{'' if facts.switches == 1 else 'es'}"
    if not facts.connected:
        return f"{fabric.name} {joined}, some of which cannot reach each other"
    parts = []
    if facts.diameter is not None:
        parts.append(f"any two hosts are at most {quantity.count(facts.diameter)} links apart")
    if facts.bisection is not None:
        word = "at most " if facts.bisection_is_bound else ""
        parts.append(f"the bisection bandwidth is {word}{quantity.bandwidth(facts.bisection)}")
    return f"{fabric.name} {joined}" + (f": {', and '.join(parts)}" if parts else "")


def _table(fabric: Fabric, facts: FabricFacts) -> list[tuple[str, str, str]]:
    """(what, how much, what that means) line by line."""
    unknown = "not measured"
    speeds = float(fabric.bandwidth.min(initial=float("inf"))), float(fabric.bandwidth.max(initial=0.0))
    delays = float(fabric.latency.min(initial=0.0)), float(fabric.latency.max(initial=0.0))
    rows = [
        ("Hosts", quantity.count(facts.hosts), ""),
        ("Switches", quantity.count(facts.switches), ""),
        ("Cables", quantity.count(facts.cables), "a duplex link is one cable"),
        ("Directed links", quantity.count(facts.links), ""),
        ("Cables per host", quantity.span(facts.host_ports, _whole), ""),
    ]
    if facts.switch_ports is not None:
        rows.append(("Cables per switch", quantity.span(facts.switch_ports, _whole), ""))
    if fabric.links:
        rows.append(("Link bandwidth", quantity.span(speeds, quantity.bandwidth), "each direction"))
    rows += [
        ("Link latency", quantity.span(delays, quantity.seconds) if max(delays) else "none", ""),
        ("Host bandwidth", quantity.span(facts.host_bandwidth, quantity.bandwidth), "all its links together"),
        ("Every host reaches every other", "yes" if facts.connected else "no", ""),
        (
            "Diameter",
            unknown if facts.diameter is None else _links(facts.diameter),
            "longest shortest path between hosts",
        ),
        (
            "Mean distance",
            unknown if facts.mean_distance is None else f"{facts.mean_distance:.3g}\u00a0links",
            "over pairs of different hosts",
        ),
    ]
    if facts.bisection is not None:
        sign, words = (
            ("≤\u00a0", "narrowest cut found by search, per direction")
            if facts.bisection_is_bound
            else ("", "narrowest cut that halves the hosts, per direction")
        )
        rows.append(("Bisection", sign + quantity.bandwidth(facts.bisection), words))
    return rows


def _whole(value: float) -> str:
    return quantity.count(int(value))


def _links(number: int) -> str:
    return f"{quantity.count(number)}\u00a0link{'' if number == 1 else 's'}"
