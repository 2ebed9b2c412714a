"""Volcano's HyperNodes: the leafs are those that have nodes as members; others stand above them.

Members are picked by exact name, by a pattern that is searched for in names, or, for nodes, by labels. Patterns and
labels need the list of nodes beside the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ropewalk.documents.numbers import is_count
from ropewalk.errors import FabricError
from ropewalk.tenancy.imports.draft import Draft
from ropewalk.tenancy.imports.hints import Hints
from ropewalk.tenancy.imports.leaf_map import LeafMap
from ropewalk.tenancy.imports.marked import Marked, read_marked

API = "topology.volcano.sh/"
LISTS = frozenset({"List", "HyperNodeList"})
SPEC_KEYS = frozenset({"tier", "tierName", "members"})
MEMBER_KEYS = frozenset({"type", "selector"})
SELECTORS = frozenset({"exactMatch", "regexMatch", "labelMatch"})
Labels = Mapping[str, str]


def volcano(path: Path, hints: Hints) -> LeafMap:
    """The leafs of a file of HyperNodes, one a document or as a list."""
    hypernodes = [one for document in read_marked(path) for one in _listed(document)]
    if not hypernodes:
        raise FabricError(f"{path}: there is no HyperNode: write at least one")
    named = {_name(one): one for one in hypernodes}
    draft = Draft(path)
    for one in hypernodes:
        members = _members(one)
        kinds = {kind for kind, _ in members}
        if len(kinds) > 1:
            draft.add(one.line, f"HyperNode {_name(one)!r} has nodes and HyperNodes as members: give it one kind")
        elif kinds == {"HyperNode"}:
            draft.switch(_name(one), _picked(members, {name: {} for name in named}, hints, one), one.line)
        else:
            draft.leaf(_name(one), _picked(members, hints.nodes, hints, one), one.line)
    return draft.finish()


def _listed(document: Marked) -> Iterable[Marked]:
    kind = document.get("kind", "a document").text("kind")
    if kind in LISTS:
        return [one for item in document.get("items", "a list").items("items") for one in _listed(item)]
    version = document.get("apiVersion", "a document").text("apiVersion")
    if kind != "HyperNode" or not version.startswith(API):
        raise document.wrong(f"this is a {kind} of {version}, not a HyperNode of {API}v1alpha1: remove it")
    return [document]


def _name(hypernode: Marked) -> str:
    return hypernode.get("metadata", "a HyperNode").get("name", "metadata").text("the name of a HyperNode")


def _members(hypernode: Marked) -> list[tuple[str, Marked]]:
    """(type, selector) of every member."""
    spec = hypernode.get("spec", f"HyperNode {_name(hypernode)!r}")
    keys = spec.mapping("spec", SPEC_KEYS)
    tier = spec.get("tier", "spec")
    if not is_count(str(tier.value)):
        raise tier.wrong(f"the tier is {tier.value!r}: give 0 or more")
    found = []
    for member in keys["members"].items("members") if "members" in keys else []:
        member.mapping("a member", MEMBER_KEYS)
        kind = member.get("type", "a member").text("type")
        if kind not in ("Node", "HyperNode"):
            raise member.wrong(f"a member is of type {kind!r}: write Node or HyperNode")
        selector = member.get("selector", "a member")
        if len(selector.mapping("a selector", SELECTORS)) != 1:
            raise selector.wrong(f"a selector has several matches: give exactly one of {', '.join(sorted(SELECTORS))}")
        found.append((kind, selector))
    return found


def _picked(
    members: list[tuple[str, Marked]], among: Mapping[str, Labels] | None, hints: Hints, of: Marked
) -> list[str]:
    """Names of all members, each once: two selectors of one HyperNode may pick the same."""
    names: list[str] = []
    for kind, selector in members:
        if kind == "Node" and among is None and "exactMatch" not in selector.mapping("a selector"):
            raise selector.wrong(
                f"HyperNode {_name(of)!r} selects nodes by pattern or label, but the nodes are unknown: "
                "give the list of nodes (--nodes)"
            )
        if kind == "HyperNode" and "labelMatch" in selector.mapping("a selector"):
            raise selector.wrong("HyperNodes cannot be selected by label: use exactMatch or regexMatch")
        for name, match in selector.mapping("a selector").items():
            names += MATCHES[name](match, among)
    return list(dict.fromkeys(names))


def _exact(match: Marked, among: Mapping[str, Labels] | None) -> list[str]:
    name = match.get("name", "exactMatch").text("name")
    if among is not None and name not in among:
        raise match.wrong(f"{name!r} is not a known name: fix it, or add it to the list")
    return [name]


def _regex(match: Marked, among: Mapping[str, Labels] | None) -> list[str]:
    pattern = match.get("pattern", "regexMatch").text("pattern")
    try:
        search = re.compile(pattern).search
    except (re.error, RecursionError, OverflowError) as problem:
        raise match.wrong(f"the pattern {pattern!r} cannot be read ({problem}): fix it") from None
    return _some([name for name in among or {} if search(name)], match, f"the pattern {pattern!r}")


def _label(match: Marked, among: Mapping[str, Labels] | None) -> list[str]:
    asked = match.mapping("labelMatch", frozenset({"matchLabels", "matchExpressions"}))
    wanted = asked["matchLabels"].mapping("matchLabels") if "matchLabels" in asked else {}
    tests = [_has(key, (value.text("a label"),)) for key, value in wanted.items()]
    if "matchExpressions" in asked:
        tests += [_expression(one) for one in asked["matchExpressions"].items("matchExpressions")]
    if not tests:
        raise match.wrong("labelMatch asks for nothing: give matchLabels or matchExpressions")
    return _some([name for name, labels in (among or {}).items() if all(t(labels) for t in tests)], match, "labelMatch")


def _expression(one: Marked) -> Callable[[Labels], bool]:
    keys = one.mapping("an expression", frozenset({"key", "operator", "values"}))
    key, operator = one.get("key", "an expression").text("key"), one.get("operator", "an expression").text("operator")
    values = tuple(v.text("a value") for v in keys["values"].items("values")) if "values" in keys else ()
    if operator not in OPERATORS:
        raise one.wrong(f"the operator {operator!r} is unknown: use one of {', '.join(OPERATORS)}")
    return OPERATORS[operator](key, values)


def _has(key: str, values: tuple[str, ...]) -> Callable[[Labels], bool]:
    return lambda labels: labels.get(key) in values


def _lacks(key: str, values: tuple[str, ...]) -> Callable[[Labels], bool]:
    return lambda labels: labels.get(key) not in values


def _exists(key: str, values: tuple[str, ...]) -> Callable[[Labels], bool]:
    return lambda labels: key in labels


def _absent(key: str, values: tuple[str, ...]) -> Callable[[Labels], bool]:
    return lambda labels: key not in labels


def _some(names: list[str], match: Marked, what: str) -> list[str]:
    if not names:
        raise match.wrong(f"{what} matches no known name: fix it, or complete the list")
    return names


MATCHES: dict[str, Callable[[Marked, Mapping[str, Labels] | None], list[str]]] = {
    "exactMatch": _exact,
    "regexMatch": _regex,
    "labelMatch": _label,
}
OPERATORS: dict[str, Callable[[str, tuple[str, ...]], Callable[[Labels], bool]]] = {
    "In": _has,
    "NotIn": _lacks,
    "Exists": _exists,
    "DoesNotExist": _absent,
}
