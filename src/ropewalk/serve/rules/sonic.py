"""Rules of leafs that run SONiC: a CONFIG_DB document per leaf, as `ropewalk cluster rules` writes them, with tags."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from ropewalk.errors import ClusterError
from ropewalk.export.cluster.addresses import AddressPlan
from ropewalk.export.cluster.rules import LeafRules, SourceRule
from ropewalk.export.cluster.sonic import parse_sonic, sonic_documents
from ropewalk.serve.rules.folder import RuleFormat
from ropewalk.serve.rules.rule import Keep, Rule, Send
from ropewalk.tenancy.plant import Plant

NOTHING = json.dumps({"ACL_TABLE": {}, "ACL_RULE": {}}, indent=2) + "\n"
"""The document of a leaf without rules: a file that is missing could also be one that was lost."""


@dataclass(frozen=True)
class SonicLeafs:
    """Documents of the leafs of a plant."""

    plant: Plant
    addresses: AddressPlan

    @property
    def format(self) -> RuleFormat:
        return RuleFormat(self.written, self.read, (Keep, Send))

    def written(self, device: str, rules: Sequence[Rule], _: str = "") -> str:
        if not rules:
            return NOTHING
        leaf = self.plant.leaf_names.index(device)
        sources = [self._source(rule) for rule in rules if isinstance(rule.body, Send)]
        one = LeafRules(leaf, self.addresses.subnets[leaf], tuple(sorted(sources, key=lambda rule: rule.gpu)))
        return sonic_documents([one], self.plant, self.addresses)[device]

    def read(self, device: str, text: str) -> list[Rule]:
        if text == NOTHING:
            return []
        leaf = self.plant.leaf_names.index(device)
        found = parse_sonic(text, leaf, self.plant, self.addresses, f"SONiC rules of {device}")
        kept = Rule.on(device, Keep(str(found.subnet)))
        return [kept, *(_rule(device, one) for one in found.sources)]

    def _source(self, rule: Rule) -> SourceRule:
        assert isinstance(rule.body, Send)
        source, hop = IPv4Address(rule.body.source), IPv4Address(rule.body.next_hop)
        if source not in self.addresses.gpu_at or hop not in self.addresses.cable_to:
            raise ClusterError(
                f"{rule.body} uses addresses that are not in the address plan: give the plan of this cluster"
            )
        _, spine, cable = self.addresses.cable_to[hop]
        return SourceRule(
            self.addresses.gpu_at[source], source, spine, cable, hop, rule.job, generation=rule.generation
        )


def _rule(device: str, one: SourceRule) -> Rule:
    return Rule.on(device, Send(str(one.source), str(one.next_hop)), one.job, one.generation)
