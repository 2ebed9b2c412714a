"""Files for operators: who is which rank, which links are reserved, which rules make leafs use them."""

from ropewalk.export.cluster.address_files import addresses_csv, read_addresses
from ropewalk.export.cluster.addresses import AddressPlan
from ropewalk.export.cluster.circuits import SpineRule, circuits_csv, circuits_json, spine_rules
from ropewalk.export.cluster.files import job_files, sonic_files, write_files
from ropewalk.export.cluster.links import links_csv, links_json, read_links, reserved_links
from ropewalk.export.cluster.prometheus import metrics
from ropewalk.export.cluster.ranks import (
    node_list,
    node_names,
    rank_file,
    rank_table,
    read_rank_file,
    read_rank_table,
    slurm_host_file,
    slurm_host_list,
)
from ropewalk.export.cluster.read_back import check_written
from ropewalk.export.cluster.rule_files import read_rules, rules_json
from ropewalk.export.cluster.rules import LeafRules, SourceRule, check_rules, leaf_rules
from ropewalk.export.cluster.sonic import parse_sonic, read_sonic, sonic_documents

__all__ = [
    "AddressPlan",
    "LeafRules",
    "SourceRule",
    "SpineRule",
    "addresses_csv",
    "check_rules",
    "check_written",
    "circuits_csv",
    "circuits_json",
    "job_files",
    "leaf_rules",
    "links_csv",
    "links_json",
    "metrics",
    "node_list",
    "node_names",
    "parse_sonic",
    "rank_file",
    "rank_table",
    "read_addresses",
    "read_links",
    "read_rank_file",
    "read_rank_table",
    "read_rules",
    "read_sonic",
    "reserved_links",
    "rules_json",
    "slurm_host_file",
    "slurm_host_list",
    "sonic_documents",
    "sonic_files",
    "spine_rules",
    "write_files",
]
