"""k at a fixed number of hosts: levels of a BCube, axes of a torus or a mesh, n of which make n^k hosts."""

from __future__ import annotations

from ropewalk.errors import Findings
from ropewalk.fabric import BCube, Mesh, Torus
from ropewalk.fabric.expression import has_open_size
from ropewalk.fabric.fabric import Builder
from ropewalk.fabric.families import FAMILIES
from ropewalk.fabric.parameters import MOST_LEVELS
from ropewalk.fabric.sizing import whole_roots
from ropewalk.sync.question import SyncQuestion


def axes_of(builder: Builder | None) -> int | None:
    """Levels of a BCube, axes of a torus or a mesh; None of everything else.

    >>> axes_of(BCube(4, 3)), axes_of(Torus((8, 8)))
    (3, 2)
    """
    if isinstance(builder, BCube):
        return builder.levels
    return len(builder.shape) if isinstance(builder, Torus | Mesh) else None


def has_axes(name: str) -> bool:
    """Is it a family that is sized by its hosts and its axes?"""
    return has_open_size(name) and ":" not in name and name in FAMILIES and FAMILIES[name].cubic is not None


def check_axes(question: SyncQuestion, findings: Findings) -> None:
    """Refuse axes that no fabric has."""
    if question.axes is None:
        return
    if not any(map(has_axes, question.physical)):
        families = [family.name for family in FAMILIES.values() if family.cubic is not None]
        findings.add(
            f"--axes is for families with axes: name {', '.join(families[:-1])} or {families[-1]}, or leave it out"
        )
        return
    if question.axes == "all":
        return
    for axes in question.axes:
        if axes > MOST_LEVELS:
            findings.add(f"--axes {axes} is out of range: the most is {MOST_LEVELS}")
        elif not question.nearest:
            for hosts in question.hosts:
                if axes not in (roots := whole_roots(hosts)):
                    have = ",".join(map(str, roots))
                    findings.add(
                        f"--axes {axes}: {hosts} hosts are not n^{axes} of a whole n: use --axes {have}, or --nearest"
                    )


def members(question: SyncQuestion, name: str, hosts: int) -> list[Builder]:
    """Of a family with axes, the fabrics of so many hosts, one for every k that was asked for."""
    cubic, asked = FAMILIES[name].cubic, question.axes
    if cubic is None or asked is None:
        return []
    wanted = tuple(whole_roots(hosts)) if asked == "all" else asked
    sizes = {axes: _nearest_power(hosts, axes) if question.nearest else hosts for axes in wanted if axes <= MOST_LEVELS}
    found = [cubic(size, axes) for axes, size in sizes.items()]
    return [record for record in found if record is not None]


def _nearest_power(hosts: int, axes: int) -> int:
    root = int(hosts ** (1 / axes) + 0.5)
    sizes: list[int] = [max(2, root + step) ** axes for step in (-1, 0, 1)]
    return min(sizes, key=lambda size: (abs(size - hosts), size))
