"""One reader of clusters: a file, the cluster of a plan, a preset, a shape, and what options add to them.

>>> read_cluster("4x8", Given(device="a100")).said
'4x8 a100, 8 NICs of 200 Gbps per server, on leaf-spine'
>>> read_cluster("dgx-h100:64").gpus
512
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ropewalk.device.held import at_full_clock
from ropewalk.documents import read_text
from ropewalk.errors import ClusterError, Findings
from ropewalk.fabric.expression import is_path
from ropewalk.fabric.server_fabric import ServerGroup, filled
from ropewalk.fabric.servers import WHOLE_SERVERS
from ropewalk.files import is_file
from ropewalk.hardware.cluster import DEFAULT_DEVICE, Cluster
from ropewalk.hardware.complete import completed, groups_of, outside_of, usual_size
from ropewalk.hardware.draft import ClusterDraft, Given, GroupDraft, merged
from ropewalk.hardware.presets import preset
from ropewalk.hardware.shape import is_shape, shape


def read_cluster(text: str | Path | None = None, given: Given | None = None) -> Cluster:
    """The cluster that a file, a preset (`dgx-h100:64`) or a shape (`4x8`) names, completed by what options say.

    Without a name, `given` says how many GPUs there are, in servers of their kind:

    >>> read_cluster(given=Given(gpus=12)).shape
    '1x8,1x4'
    """
    given = given or Given()
    if text is None:
        return _of_options(given)
    name = str(text).strip()
    if is_path(name):
        source = f"cluster file {name}"
        findings = Findings(ClusterError, source)
        draft = _of_file(Path(name), source, findings)
    else:
        findings = Findings(ClusterError, f"cluster {name}")
        draft = _of_shape(name) if is_shape(name) else preset(name)
    return completed(merged(draft, given, findings), findings)


def is_cluster_file(text: str) -> bool:
    """Is this a file that describes servers, and not a fabric or something else?"""
    from ropewalk.fabric.files import PARSERS
    from ropewalk.hardware.files import is_cluster_document

    path = Path(text)
    parse = PARSERS.get(path.suffix.lower())
    if parse is None or not is_file(path):
        return False
    try:
        document = parse(read_text(path, text, ClusterError), text, ClusterError)
    except ClusterError:
        return False  # whoever reads it as what it is meant to be says what is wrong with it
    return isinstance(document, Mapping) and "servers" in document and is_cluster_document(document)


def from_json(document: Mapping[str, Any], subject: str = "cluster", folder: Path | None = None) -> Cluster:
    """The cluster of a document that `as_json` wrote, or that a cluster file holds.

    >>> read = read_cluster("2x8,1x4")
    >>> from_json(as_json(read)) == read
    True
    """
    from ropewalk.hardware.files import draft_of_document

    findings = Findings(ClusterError, subject)
    return completed(draft_of_document(document, subject, folder or Path(), findings), findings)


def as_json(cluster: Cluster, folder: Path | None = None) -> dict[str, Any]:
    """The cluster as plain lists and mappings: what a cluster file in this folder holds, with nothing left open."""
    from ropewalk.hardware.files import document_of

    return document_of(cluster, folder or Path())


def _of_file(path: Path, source: str, findings: Findings) -> ClusterDraft:
    from ropewalk.fabric.files import PARSERS
    from ropewalk.hardware.files import draft_of_document, is_cluster_document

    parse = PARSERS.get(path.suffix.lower())
    if parse is not None:
        text = read_text(path, source, ClusterError)
        document = parse(text, source, ClusterError)
        if isinstance(document, dict) and "format" in document and "cluster" in document:
            return _of_plan(draft_of_document(document["cluster"], f"{source}: cluster", path.parent, findings))
        if is_cluster_document(document):
            return draft_of_document(document, source, path.parent, findings)
    sizes = outside_of(str(path)).sizes
    if not sizes:
        raise ClusterError(
            f"{source}: it is a fabric file that names no servers: give it as the network (--fabric {path}) of servers "
            "such as --cluster 4x8"
        )
    return ClusterDraft(source, groups_of(sizes), str(path))


def _of_plan(draft: ClusterDraft) -> ClusterDraft:
    """The cluster of a plan, at the clock that the plan is timed at: a bare name there is full clock."""
    groups = (replace(one, device=None if one.device is None else at_full_clock(one.device)) for one in draft.groups)
    return replace(draft, groups=tuple(groups))


def _of_shape(text: str) -> ClusterDraft:
    return ClusterDraft(f"cluster {text}", tuple(GroupDraft(*group) for group in shape(text)))


def _of_options(given: Given) -> Cluster:
    """A cluster of which nobody said more than options say."""
    findings = Findings(ClusterError, "cluster")
    network = given.network
    if network is not None and (is_path(network) or network.partition(":")[0] in WHOLE_SERVERS):
        sizes = outside_of(network, given.gpus).sizes
        if sizes and given.gpus not in (None, sum(sizes)):
            raise ClusterError(
                f"{network} has {sum(sizes)} GPUs, not {given.gpus}: ask for {sum(sizes)} GPUs or for a fabric of "
                f"{given.gpus}"
            )
        if sizes:
            return completed(merged(ClusterDraft("cluster", groups_of(sizes), network), given, findings), findings)
    draft = ClusterDraft("cluster", _filled(given), network, given.latency_s, given.rails)
    return completed(draft, findings)


def _filled(given: Given) -> tuple[GroupDraft, ...]:
    """As many servers as the GPUs need; the last may hold fewer."""
    if given.gpus is None or given.gpus < 1:
        wanted = "a cluster needs GPUs" if given.gpus is None else f"a cluster of {given.gpus} GPUs does not exist"
        raise ClusterError(f"{wanted}: give 1 or more, or servers such as 4x8")
    each = given.gpus_per_server
    if each is None:
        each = min(usual_size(given.device or DEFAULT_DEVICE), given.gpus)
    groups = filled(given.gpus, ServerGroup(1, each, given.nvlink_bandwidth or 1.0, given.nics))
    return tuple(
        GroupDraft(
            one.count,
            one.gpus,
            given.device,
            given.nvlink_bandwidth,
            None if given.nics is None else one.nics_each,
            given.nic_bandwidth,
        )
        for one in groups
    )
