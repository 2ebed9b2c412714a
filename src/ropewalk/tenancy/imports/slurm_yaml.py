"""Slurm's topology.yaml: several topologies in one file, of which one of type tree or block is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ropewalk.errors import FabricError
from ropewalk.tenancy.imports.draft import Draft
from ropewalk.tenancy.imports.hints import Hints
from ropewalk.tenancy.imports.leaf_map import LeafMap
from ropewalk.tenancy.imports.marked import Marked, read_marked

TRUE = frozenset({"true", "True", "TRUE", "yes", "on"})
SWITCH_KEYS = frozenset({"switch", "children", "nodes"})
BLOCK_KEYS = frozenset({"block", "nodes"})


def slurm_yaml(path: Path, hints: Hints) -> LeafMap:
    """The leafs of one topology: the one that is named, or the first that says cluster_default, or the only one."""
    documents = read_marked(path)
    if len(documents) != 1:
        raise FabricError(f"{path}: there are {len(documents)} documents: write one list of topologies")
    entry = _chosen(path, documents[0].items("the file"), hints.topology)
    draft = Draft(path)
    types = [kind for kind in TYPES if kind in entry.mapping("a topology")]
    if len(types) != 1:
        given = ", ".join(sorted(entry.mapping("a topology").keys() - {"topology", "cluster_default"})) or "nothing"
        raise entry.wrong(f"the topology is of type {given}: only {' and '.join(TYPES)} have leafs that can be read")
    TYPES[types[0]](entry.get(types[0], "a topology"), draft)
    return draft.finish()


def _chosen(path: Path, entries: list[Marked], wanted: str | None) -> Marked:
    names = [entry.get("topology", "a topology").text("the name of a topology") for entry in entries]
    for name, entry in zip(names, entries, strict=True):
        if names.count(name) > 1:
            raise entry.wrong(f"the topology {name!r} occurs twice: give each its own name")
    if wanted is not None:
        if wanted not in names:
            raise FabricError(f"{path}: there is no topology {wanted!r}: name one of {', '.join(names)}")
        return entries[names.index(wanted)]
    defaults = [entry for entry in entries if _is_default(entry)]
    if not defaults and len(entries) > 1:
        raise FabricError(f"{path}: none of {', '.join(names)} is marked cluster_default: name one")
    if not entries:
        raise FabricError(f"{path}: there is no topology: write at least one")
    return (defaults or entries)[0]


def _is_default(entry: Marked) -> bool:
    said = entry.mapping("a topology").get("cluster_default")
    return said is not None and said.value in TRUE


def _tree(tree: Marked, draft: Draft) -> None:
    for switch in tree.get("switches", "a tree").items("switches"):
        keys = switch.mapping("a switch", SWITCH_KEYS)
        name = switch.get("switch", "a switch").text("the name of a switch")
        if "children" in keys and "nodes" in keys:
            draft.add(switch.line, f"switch {name!r} lists nodes and children: list one kind")
        elif "children" in keys:
            draft.switch(name, _names(keys["children"], draft), switch.line)
        else:
            draft.leaf(name, _names(keys["nodes"], draft) if "nodes" in keys else [], switch.line)


def _block(block: Marked, draft: Draft) -> None:
    for one in block.get("blocks", "a block topology").items("blocks"):
        keys = one.mapping("a block", BLOCK_KEYS)
        name = one.get("block", "a block").text("the name of a block")
        draft.leaf(name, _names(keys["nodes"], draft) if "nodes" in keys else [], one.line)


def _names(listed: Marked, draft: Draft) -> list[str]:
    return draft.names(listed.text("a host list"), listed.line)


TYPES: dict[str, Callable[[Marked, Draft], None]] = {"tree": _tree, "block": _block}
"""Rings, tori and flat topologies have no leafs."""
