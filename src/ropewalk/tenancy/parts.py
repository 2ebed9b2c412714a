"""Parts of a plant as people type them: `server:server7`, `leaf:leaf3`, `spine:2`, `link:leaf3-spine2`."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.documents.numbers import is_count
from ropewalk.errors import InputError
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.plant import Plant


def drained_of(plant: Plant, parts: Sequence[str]) -> Drained:
    """Parts as people type them, by name or number.

    >>> from ropewalk.tenancy.plant import plant
    >>> small = plant("leaf-spine:2x4x4", gpus_per_server=2)
    >>> part_names(small, drained_of(small, ["link:1-spine2", "leaf:leaf0"]))
    ('leaf:leaf0', 'link:leaf1-spine2')
    """
    names = {
        "server": plant.server_names,
        "leaf": plant.leaf_names,
        "spine": plant.spine_names,
        "core": plant.core_names,
    }
    found: dict[str, list[int]] = {kind: [] for kind in names}
    links: list[tuple[int, int]] = []
    core_links: list[tuple[int, int]] = []
    for text in parts:
        kind, _, name = text.partition(":")
        if kind == "link":
            below = _link(plant.leaf_names, plant.spine_names, name)
            above = _link(plant.spine_names, plant.core_names, name) if below is None else None
            if below is None and above is None:
                raise InputError(f"{text!r} is not a link of {plant.name}: write {_LINKS}, by names or numbers")
            links += [below] if below is not None else []
            core_links += [above] if above is not None else []
        elif names.get(kind):
            found[kind].append(_numbered(names[kind], name, text))
        else:
            core = "core:NAME, " if plant.cores else ""
            raise InputError(f"{text!r} is not a part: write leaf:NAME, spine:NAME, {core}server:NAME or {_LINKS}")
    return Drained(found["server"], found["leaf"], found["spine"], links, found["core"], core_links)


_LINKS = "link:LEAF-SPINE"


def part_names(plant: Plant, parts: Drained) -> tuple[str, ...]:
    """The names of parts, as `drained_of` reads them."""
    return (
        *(f"server:{plant.server_names[number]}" for number in sorted(parts.servers)),
        *(f"leaf:{plant.leaf_names[number]}" for number in sorted(parts.leafs)),
        *(f"spine:{plant.spine_names[number]}" for number in sorted(parts.spines)),
        *(f"link:{plant.leaf_names[leaf]}-{plant.spine_names[spine]}" for leaf, spine in sorted(parts.links)),
        *(f"core:{plant.core_names[number]}" for number in sorted(parts.cores)),
        *(f"link:{plant.spine_names[spine]}-{plant.core_names[core]}" for spine, core in sorted(parts.core_links)),
    )


def _link(lower: tuple[str, ...], upper: tuple[str, ...], text: str) -> tuple[int, int] | None:
    """A name may itself contain the sign between two switches, so every place for it is tried."""
    for at, letter in enumerate(text):
        if letter == "-":
            ends = (_find(lower, text[:at]), _find(upper, text[at + 1 :]))
            if ends[0] is not None and ends[1] is not None:
                return ends[0], ends[1]
    return None


def _numbered(names: tuple[str, ...], text: str, whole: str) -> int:
    found = _find(names, text)
    if found is None:
        raise InputError(f"{whole!r} is unknown: give a number below {len(names)} or a name such as {names[0]}")
    return found


def _find(names: tuple[str, ...], text: str) -> int | None:
    if text in names:
        return names.index(text)
    return int(text) if is_count(text) and int(text) < len(names) else None
