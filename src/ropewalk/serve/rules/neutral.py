"""Rules of any device as plain JSON, for whoever writes a device's own configuration from them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ropewalk.documents import parse_json
from ropewalk.errors import ClusterError
from ropewalk.serve.rules.folder import RuleFormat
from ropewalk.serve.rules.rule import Foreign, Join, Keep, Relay, Rule, Send

FORMAT = "ropewalk-device-rules"
VERSION = 1


def written(device: str, rules: Sequence[Rule], _: str = "") -> str:
    """The document of a device.

    >>> rule = Rule.on("leaf0", Send("10.0.0.1", "172.16.0.1"), "j1", 1)
    >>> read("leaf0", written("leaf0", [rule])) == [rule]
    True
    """
    listed = [{key: value for key, value in rule.as_document().items() if key != "device"} for rule in rules]
    return json.dumps({"format": FORMAT, "version": VERSION, "device": device, "rules": listed}, indent=2) + "\n"


def read(device: str, text: str) -> list[Rule]:
    """The rules of a document, strictly checked."""
    subject = f"rules of {device}"
    document = parse_json(text, subject, ClusterError)
    if not isinstance(document, dict) or not isinstance(document.get("rules"), list):
        raise ClusterError(f"{subject}: there is no list of rules: give a document written by ropewalk")
    head = (document.get("format"), document.get("version"), document.get("device"))
    if head != (FORMAT, VERSION, device):
        raise ClusterError(f"{subject}: it begins with {head}: give the {FORMAT} document of this device")
    return [_rule(one, device, f"{subject}: rule {at}") for at, one in enumerate(document["rules"])]


def _rule(one: object, device: str, subject: str) -> Rule:
    if not isinstance(one, dict):
        raise ClusterError(f"{subject}: it is not an object: give one")
    rule = Rule.from_document({**one, "device": device}, subject)
    if isinstance(rule.body, Foreign) or rule.key != rule.body.key:
        raise ClusterError(
            f"{subject}: its key is {rule.key!r}, but that of its body {rule.body.key!r}: make them equal"
        )
    return rule


NEUTRAL = RuleFormat(written, read, (Keep, Send, Join, Relay))
