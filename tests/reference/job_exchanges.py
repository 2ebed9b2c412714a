"""Everything that a job may exchange, by name."""

from ropewalk.collectives.group import Group
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.tenancy.collectives import PATTERNS, USUAL, collective_named

PROGRAMS = tuple(name for name, one in COLLECTIVES.items() if not one.own_paths and name != "ps-dedicated")
EXCHANGES = (*PROGRAMS, *USUAL, *PATTERNS)


def applies(name: str, group: Group) -> bool:
    named = collective_named(name)
    return named is None or COLLECTIVES.refusal(named[1], named[0], group) is None
