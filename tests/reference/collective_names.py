"""Names of collectives that tests go through."""

from ropewalk.collectives.act import Act
from ropewalk.collectives.group import Group
from ropewalk.collectives.table import COLLECTIVES

PUBLISHED = (
    "ring", "ring-one-way", "double-ring", "mesh", "ps", "ps-dedicated", "ps-sharded", "halving-doubling",
    "double-tree", "hips",
)  # fmt: skip
"""All-reduces that have closed forms on some fabric."""

PROGRAMS = tuple(name for name, one in COLLECTIVES.items() if not one.own_paths)
FOR_ALL_ACTS = ("ring", "hierarchical", "halving-doubling", "mesh")


def fitting(act: Act, group: Group) -> tuple[str, ...]:
    """Names of the programs that apply."""
    return tuple(name for name in COLLECTIVES.names_for(act, group) if name in PROGRAMS)
