"""Everything a job's launcher and the network's controller need, as files in one folder."""

from __future__ import annotations

import re
from pathlib import Path

from ropewalk.export.cluster.addresses import AddressPlan
from ropewalk.export.cluster.circuits import circuit_files
from ropewalk.export.cluster.links import links_csv, links_json
from ropewalk.export.cluster.patches import patch_files
from ropewalk.export.cluster.ranks import node_list, rank_file, rank_table, slurm_host_file, slurm_host_list
from ropewalk.export.cluster.rule_files import rules_json
from ropewalk.export.cluster.rules import leaf_rules
from ropewalk.export.cluster.sonic import sonic_documents
from ropewalk.files import write_whole
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.shards.allocate import SHARD


def job_files(plant: Plant, allocation: Allocation, addresses: AddressPlan | None = None) -> dict[str, str]:
    """File name -> content. Without addresses there are no rules: they would speak of nothing; so behind panels.

    The SONiC documents here are those of this job alone; a leaf that other jobs use too needs the rules of all of them.
    """
    files = {
        "nodes.txt": node_list(plant, allocation),
        "nodes.slurm": slurm_host_list(plant, allocation),
        "hostfile.slurm": slurm_host_file(plant, allocation),
        "rankfile.openmpi": rank_file(plant, allocation),
        "ranks.csv": rank_table(plant, allocation),
        "links.csv": links_csv(plant, allocation),
        "links.json": links_json(plant, allocation),
        **circuit_files(plant, allocation, addresses),
        **patch_files(plant, allocation),
    }
    if addresses is None or allocation.stage == SHARD:
        return files
    rules = leaf_rules(plant, [allocation], addresses)
    files["rules.json"] = rules_json(rules, plant)
    return files | sonic_files(sonic_documents(rules, plant, addresses), plant)


def sonic_files(documents: dict[str, str], plant: Plant) -> dict[str, str]:
    """File name -> document of a leaf; names keep the leaf's number, because letters may have to be replaced."""
    return {sonic_file(plant, plant.leaf_names.index(name)): document for name, document in documents.items()}


def sonic_file(plant: Plant, leaf: int) -> str:
    """Where the document of a leaf is."""
    plain = re.sub(r"[^A-Za-z0-9.-]", "_", plant.leaf_names[leaf])
    return f"sonic/{leaf}-{plain}.json"


def write_files(files: dict[str, str], folder: str | Path) -> tuple[Path, ...]:
    """Write all of them, each whole; they are complete before the first is written."""
    paths = tuple(Path(folder) / name for name in files)
    for path, content in zip(paths, files.values(), strict=True):
        write_whole(path, content)
    return paths
