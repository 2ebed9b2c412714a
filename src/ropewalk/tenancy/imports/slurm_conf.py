"""Slurm's topology.conf: leafs are the switches (or blocks) that list nodes.

Keys and their values stand as `Key=value` on one line, keys in any case; `#` begins a comment, and a backslash at the
end of a line goes on on the next. `LinkSpeed` is read and not used, as in Slurm. The manual advises one top switch
instead of every spine; then the number of spines has to be told beside the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ropewalk.documents import read_text
from ropewalk.errors import FabricError
from ropewalk.tenancy.imports.draft import Draft
from ropewalk.tenancy.imports.hints import Hints
from ropewalk.tenancy.imports.leaf_map import LeafMap

SWITCH_KEYS = frozenset({"switchname", "nodes", "switches", "linkspeed"})
BLOCK_KEYS = frozenset({"blockname", "nodes"})
IGNORED_LINES = frozenset({"blocksizes"})


def slurm_conf(path: Path, hints: Hints) -> LeafMap:
    """The leafs of a topology.conf of the tree or the block plugin."""
    text = read_text(path, f"topology file {path}", FabricError)
    draft = Draft(path)
    for line, entry in _entries(text):
        pairs = _pairs(entry, line, draft)
        first = next(iter(pairs), "")
        if first == "switchname":
            _switch(pairs, line, draft)
        elif first == "blockname":
            _block(pairs, line, draft)
        elif first and first not in IGNORED_LINES:
            draft.add(line, f"a line begins with {first!r}: begin it with SwitchName, BlockName or BlockSizes")
    return draft.finish()


def _switch(pairs: dict[str, str], line: int, draft: Draft) -> None:
    _only(pairs, SWITCH_KEYS, line, draft)
    names = draft.names(pairs["switchname"], line)
    if "nodes" in pairs and "switches" in pairs:
        draft.add(line, f"switch {pairs['switchname']!r} lists nodes and switches: list one kind")
        return
    if len(names) > 1:
        draft.add(
            line, f"{pairs['switchname']!r} names {len(names)} switches with one list below them: write one per line"
        )
        return
    for name in names:
        if "switches" in pairs:
            draft.switch(name, draft.names(pairs["switches"], line), line)
        else:
            draft.leaf(name, draft.names(pairs["nodes"], line) if "nodes" in pairs else [], line)


def _block(pairs: dict[str, str], line: int, draft: Draft) -> None:
    _only(pairs, BLOCK_KEYS, line, draft)
    draft.leaf(pairs["blockname"], draft.names(pairs["nodes"], line) if "nodes" in pairs else [], line)


def _only(pairs: dict[str, str], known: frozenset[str], line: int, draft: Draft) -> None:
    for key in pairs.keys() - known:
        draft.add(line, f"the key {key!r} is unknown here: use {', '.join(sorted(known))}")


def _entries(text: str) -> Iterator[tuple[int, str]]:
    """(line on which it begins, text without comments) of every entry."""
    begun, whole = 0, ""
    for line, raw in enumerate([*text.splitlines(), ""], 1):
        bare = raw.partition("#")[0].rstrip()
        begun = begun or line
        if bare.endswith("\\"):
            whole += bare[:-1] + " "
            continue
        whole += bare
        if whole.strip():
            yield begun, whole.strip()
        begun, whole = 0, ""


def _pairs(entry: str, line: int, draft: Draft) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in entry.split():
        key, equals, value = word.partition("=")
        if not equals or not value:
            draft.add(line, f"{word!r} is not Key=value: write it like Nodes=gpu[000-003], without spaces")
        elif key.lower() in found:
            draft.add(line, f"{key} is given twice: remove one of the two")
        else:
            found[key.lower()] = value
    return found
