"""Leaf rules for SONiC: ACL_TABLE and ACL_RULE of CONFIG_DB, one document a leaf, and read back.

A rule redirects to the next hop of a cable; SONiC looks at the higher PRIORITY first. If the next hop goes away, the
redirect does, and traffic falls back to ordinary routing: whoever wants a job to stop instead must watch the link.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from ropewalk.documents import parse_json, read_text
from ropewalk.documents.numbers import is_count
from ropewalk.errors import ClusterError
from ropewalk.export.cluster.addresses import AddressPlan
from ropewalk.export.cluster.rules import LeafRules, SourceRule
from ropewalk.export.cluster.sonic_schema import check_config
from ropewalk.tenancy.plant import Plant

TABLE = "ROPEWALK_SOURCE"
LOCAL = "LOCAL"
_REDIRECT = "REDIRECT:"
_NAME = re.compile(rf"{TABLE}\|GPU(?P<gpu>[0-9]+)(?:_(?P<job>[A-Za-z0-9-]+)_g(?P<generation>[0-9]+))?")
"""With job and generation where a controller counts allocations."""
MOST_RULES = 1000
"""What SONiC's design aims at for a table of this type."""


def sonic_documents(rules: Sequence[LeafRules], plant: Plant, addresses: AddressPlan) -> dict[str, str]:
    """Leaf name -> CONFIG_DB fragment, for `config load` on that leaf. All rules of a leaf are in one document."""
    return {plant.leaf_names[one.leaf]: _document(one, plant, addresses) for one in rules}


def read_sonic(path: str | Path, leaf: int, plant: Plant, addresses: AddressPlan) -> LeafRules:
    """The rules of one leaf from its document; whose job they are is not in it."""
    subject = f"SONiC rules {path}"
    text = read_text(Path(path), subject, ClusterError)
    return parse_sonic(text, leaf, plant, addresses, subject)


def parse_sonic(text: str, leaf: int, plant: Plant, addresses: AddressPlan, subject: str = "SONiC rules") -> LeafRules:
    document: Any = parse_json(text, subject, ClusterError)
    check_config(document, subject)
    try:
        rules = document["ACL_RULE"]
        local = rules.pop(f"{TABLE}|{LOCAL}")
        if local["PACKET_ACTION"] != "FORWARD" or TABLE not in document["ACL_TABLE"]:
            raise ValueError(f"the table {TABLE} does not forward what is local")
        sources = [_read(name, rule, leaf, addresses) for name, rule in rules.items()]
        return LeafRules(
            leaf,
            IPv4Network(local["DST_IP"]),
            tuple(sorted(sources, key=lambda rule: rule.gpu)),
            int(local["PRIORITY"]),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        name = plant.leaf_names[leaf]
        raise ClusterError(
            f"{subject}: it is not what ropewalk writes for {name} ({problem!r}): give the document of this leaf"
        ) from None


def _document(one: LeafRules, plant: Plant, addresses: AddressPlan) -> str:
    if len(one.sources) + 1 > MOST_RULES:
        raise ClusterError(
            f"{plant.leaf_names[one.leaf]} needs {len(one.sources) + 1} rules, more than the {MOST_RULES} of a SONiC "
            "table: put fewer GPUs on a leaf"
        )
    ports = [addresses.ports[rule.gpu] for rule in one.sources if rule.gpu in addresses.ports]
    table = {
        "type": "L3",
        "stage": "ingress",
        "policy_desc": "source routes of jobs",
        "ports": sorted(dict.fromkeys(ports), key=_numbers_by_value),
    }
    rules: dict[str, dict[str, str]] = {
        f"{TABLE}|{LOCAL}": {
            "PRIORITY": str(one.local_priority),
            "DST_IP": str(one.subnet),
            "PACKET_ACTION": "FORWARD",
        }
    }
    for rule in one.sources:
        tag = f"_{rule.job}_g{rule.generation}" if rule.generation else ""
        rules[f"{TABLE}|GPU{rule.gpu}{tag}"] = {
            "PRIORITY": str(rule.priority),
            "SRC_IP": f"{rule.source}/32",
            "PACKET_ACTION": f"{_REDIRECT}{rule.next_hop}",
        }
    document = {"ACL_TABLE": {TABLE: table}, "ACL_RULE": rules}
    check_config(document, f"SONiC rules of {plant.leaf_names[one.leaf]}")
    return json.dumps(document, indent=2) + "\n"


def _read(name: str, rule: dict[str, str], leaf: int, addresses: AddressPlan) -> SourceRule:
    named = _NAME.fullmatch(name)
    if named is None or not rule["PACKET_ACTION"].startswith(_REDIRECT):
        raise ValueError(f"the rule {name} does not redirect")
    source = IPv4Address(rule["SRC_IP"].removesuffix("/32"))
    hop = IPv4Address(rule["PACKET_ACTION"].removeprefix(_REDIRECT))
    below, spine, cable = addresses.cable_to[hop]
    if below != leaf:
        raise ValueError(f"the rule {name} leads to a cable of another leaf")
    gpu, job, generation = addresses.gpu_at[source], named["job"] or "", int(named["generation"] or 0)
    if gpu != int(named["gpu"]):
        raise ValueError(f"the rule {name} is that of GPU {gpu}")
    return SourceRule(gpu, source, spine, cable, hop, job, int(rule["PRIORITY"]), generation)


def _numbers_by_value(port: str) -> list[tuple[int, str]]:
    """Ethernet8 before Ethernet12."""
    return [(int(part), "") if is_count(part) else (-1, part) for part in re.split("([0-9]{1,18})", port)]
