"""What SONiC takes as ACL_TABLE and ACL_RULE of CONFIG_DB: names, fields and values, as its YANG models have them.

Every document is checked before it is written and after it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from ropewalk.documents.numbers import is_count
from ropewalk.errors import ClusterError, Findings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}", re.ASCII)
_PORT = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,63}", re.ASCII)
MOST_PRIORITY = 999_999
_ACTIONS = ("FORWARD", "DROP", "ACCEPT", "DO_NOT_NAT")
_REDIRECT = "REDIRECT:"
Check = Callable[[Any], bool]


def check_config(document: Any, subject: str) -> None:
    """Refuse what a switch would refuse, or take for something else; all findings together."""
    findings = Findings(ClusterError, subject)
    if not isinstance(document, Mapping) or set(document) - {"ACL_TABLE", "ACL_RULE"}:
        raise ClusterError(f"{subject}: it has more than ACL_TABLE and ACL_RULE, or is not an object: give those two")
    tables, rules = (_object(document.get(name, {}), name, findings) for name in ("ACL_TABLE", "ACL_RULE"))
    for name, table in tables.items():
        if not _NAME.fullmatch(name):
            findings.add(f"ACL_TABLE {name!r}: use letters, digits, - and _ in a name")
        _fields(_object(table, name, findings), _TABLE, f"ACL_TABLE {name}", findings)
    for key, rule in rules.items():
        table, _, name = key.partition("|")
        if table not in tables or not _NAME.fullmatch(name):
            findings.add(f"ACL_RULE {key!r}: write it as TABLE|NAME with a table of the document")
        _fields(_object(rule, key, findings), _RULE, f"ACL_RULE {key}", findings)
    findings.raise_if_any()


def _object(value: Any, name: str, findings: Findings) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    findings.add(f"{name} is {value!r}: give an object")
    return {}


def _fields(given: Mapping[str, Any], known: Mapping[str, tuple[Check, str]], where: str, findings: Findings) -> None:
    for name, value in given.items():
        if name not in known:
            findings.add(f"{where}: unknown field {name!r}: use one of {', '.join(known)}")
        elif not known[name][0](value):
            findings.add(f"{where}: {name} is {value!r}: {known[name][1]}")


def _action(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    return value in _ACTIONS or (value.startswith(_REDIRECT) and _is(IPv4Address)(value.removeprefix(_REDIRECT)))


def _is(kind: Callable[[str], object]) -> Check:
    def check(value: Any) -> bool:
        try:
            return isinstance(value, str) and bool(kind(value))
        except ValueError:
            return False

    return check


def _priority(value: Any) -> bool:
    return isinstance(value, str) and is_count(value) and int(value) <= MOST_PRIORITY


def _ports(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(port, str) and _PORT.fullmatch(port) for port in value)


_TABLE: dict[str, tuple[Check, str]] = {
    "type": (lambda value: value in ("L3", "L3V6", "MIRROR", "CTRLPLANE"), "use L3"),
    "stage": (lambda value: value in ("ingress", "egress"), "use ingress or egress"),
    "policy_desc": (lambda value: isinstance(value, str) and 0 < len(value) <= 255, "give 1 to 255 characters"),
    "ports": (_ports, "give a list of ports such as Ethernet8"),
}
_RULE: dict[str, tuple[Check, str]] = {
    "PRIORITY": (_priority, f"give 0 to {MOST_PRIORITY} as text"),
    "SRC_IP": (_is(IPv4Network), "give a prefix such as 10.0.0.1/32"),
    "DST_IP": (_is(IPv4Network), "give a prefix such as 10.0.0.0/26"),
    "PACKET_ACTION": (_action, "use FORWARD, DROP or REDIRECT:ADDRESS"),
}
