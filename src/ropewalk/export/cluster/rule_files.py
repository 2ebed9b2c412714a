"""Leaf rules as neutral JSON, for whoever writes a switch's own configuration from them, and read back.

One object a leaf, with `match` and `action` of every rule by the names of the plant; the rule with the higher priority
is looked at first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from ropewalk.documents import parse_json, read_text
from ropewalk.errors import ClusterError
from ropewalk.export.cluster.names import Names
from ropewalk.export.cluster.rules import LeafRules, SourceRule
from ropewalk.tenancy.plant import Plant

FORMAT = "ropewalk-leaf-rules"
VERSION = 1


def rules_json(rules: Sequence[LeafRules], plant: Plant) -> str:
    document = {
        "format": FORMAT,
        "version": VERSION,
        "plant": plant.name,
        "leafs": [{"leaf": plant.leaf_names[one.leaf], "rules": _leaf(one, plant)} for one in rules],
    }
    return json.dumps(document, indent=2) + "\n"


def read_rules(path: str | Path, plant: Plant) -> tuple[LeafRules, ...]:
    """The rules of a file that `rules_json` wrote, by the numbers of the plant."""
    subject = f"leaf rules {path}"
    text = read_text(Path(path), subject, ClusterError)
    document: Any = parse_json(text, subject, ClusterError)
    if not isinstance(document, dict) or (document.get("format"), document.get("version")) != (FORMAT, VERSION):
        raise ClusterError(f"{subject}: it is not a {FORMAT} file of version {VERSION}: give one written by ropewalk")
    try:
        names = Names(plant)
        return tuple(_read_leaf(one, names) for one in document["leafs"])
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise ClusterError(f"{subject}: it does not fit {plant.name} ({problem!r}): give rules of this plant") from None


def _leaf(one: LeafRules, plant: Plant) -> list[dict[str, object]]:
    local: dict[str, object] = {
        "priority": one.local_priority,
        "match": {"destination": str(one.subnet)},
        "action": {"forward": "normal"},
    }
    return [local, *(_source(rule, plant) for rule in one.sources)]


def _source(rule: SourceRule, plant: Plant) -> dict[str, object]:
    server, place = divmod(rule.gpu, plant.gpus_per_server)
    return {
        "priority": rule.priority,
        "match": {"source": f"{rule.source}/32"},
        "action": {"next_hop": str(rule.next_hop), "spine": plant.spine_names[rule.spine], "cable": rule.cable},
        "job": rule.job,
        "server": plant.server_names[server],
        "gpu": place,
    }


def _read_leaf(one: dict[str, Any], names: Names) -> LeafRules:
    local, *sources = one["rules"]
    if local["action"] != {"forward": "normal"}:
        raise ValueError("the first rule of a leaf does not keep its subnet local")
    return LeafRules(
        names.leaf[one["leaf"]],
        IPv4Network(local["match"]["destination"]),
        tuple(_read_source(rule, names) for rule in sources),
        int(local["priority"]),
    )


def _read_source(rule: dict[str, Any], names: Names) -> SourceRule:
    action = rule["action"]
    return SourceRule(
        names.gpu(rule["server"], int(rule["gpu"])),
        IPv4Address(rule["match"]["source"].removesuffix("/32")),
        names.spine[action["spine"]],
        int(action["cable"]),
        IPv4Address(action["next_hop"]),
        rule["job"],
        int(rule["priority"]),
    )
