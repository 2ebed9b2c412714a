"""Who is which rank: node lists and rank files of one job, in the order in which its allocation gives GPUs."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from ropewalk.documents import read_text
from ropewalk.documents.from_csv import table_records
from ropewalk.documents.numbers import whole
from ropewalk.errors import ClusterError
from ropewalk.export.cluster.names import Names
from ropewalk.tenancy.allocation import OWN_LEAF, Allocation
from ropewalk.tenancy.imports.hostlist import compress
from ropewalk.tenancy.plant import Plant

RANK_COLUMNS = ("rank", "server", "gpu", "leaf", "spine")
_RANK_LINE = re.compile(r"rank ([0-9]{1,9})=(\S+) slot=([0-9]{1,9})(?:-([0-9]{1,9}))?")


def node_names(plant: Plant, allocation: Allocation) -> list[str]:
    """The servers of a job in the order of its ranks, each once."""
    return [
        plant.server_names[server] for server in dict.fromkeys(gpu // plant.gpus_per_server for gpu in allocation.gpus)
    ]


def node_list(plant: Plant, allocation: Allocation) -> str:
    """One server a line, in the order of ranks."""
    return "".join(f"{name}\n" for name in node_names(plant, allocation))


def slurm_host_list(plant: Plant, allocation: Allocation) -> str:
    """The servers as Slurm folds them, `gpu[000-003]`. Slurm sorts what it gets; the host file keeps the order."""
    return compress(node_names(plant, allocation)) + "\n"


def slurm_host_file(plant: Plant, allocation: Allocation) -> str:
    """What SLURM_HOSTFILE names, for `srun --distribution=arbitrary`: the server of every rank, one a line."""
    return "".join(f"{plant.server_names[gpu // plant.gpus_per_server]}\n" for gpu in allocation.gpus)


def rank_file(plant: Plant, allocation: Allocation, cores_per_gpu: int = 1) -> str:
    """OpenMPI's rankfile: rank r on its server, bound to the cores that its GPU's number stands for.

    >>> from ropewalk.tenancy.plant import plant
    >>> job = Allocation("a", (2, 3), "server", (0,), (), (), (-1, -1), (0, 0))
    >>> print(rank_file(plant("leaf-spine:2x4x4", gpus_per_server=2), job, cores_per_gpu=4), end="")
    rank 0=server1 slot=0-3
    rank 1=server1 slot=4-7
    """
    if cores_per_gpu < 1:
        raise ClusterError(f"{cores_per_gpu} cores for a GPU are too few: give 1 or more")
    lines = []
    for rank, gpu in enumerate(allocation.gpus):
        server, place = divmod(gpu, plant.gpus_per_server)
        first, last = place * cores_per_gpu, (place + 1) * cores_per_gpu - 1
        slot = str(first) if first == last else f"{first}-{last}"
        lines.append(f"rank {rank}={plant.server_names[server]} slot={slot}\n")
    return "".join(lines)


def rank_table(plant: Plant, allocation: Allocation) -> str:
    """Everything about every rank as CSV: its server, the GPU inside it, its leaf and the spine of its traffic."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(RANK_COLUMNS)
    places = zip(allocation.gpus, allocation.leaf_of_gpu, allocation.spine_of_gpu, strict=True)
    for rank, (gpu, leaf, spine) in enumerate(places):
        server, place = divmod(gpu, plant.gpus_per_server)
        above = "" if spine == OWN_LEAF else plant.spine_names[spine]
        writer.writerow((rank, plant.server_names[server], place, plant.leaf_names[leaf], above))
    return text.getvalue()


def read_rank_file(path: str | Path, plant: Plant) -> tuple[int, ...]:
    """The GPUs of an OpenMPI rankfile as `rank_file` writes it, by rank."""
    subject = f"rank file {path}"
    found: dict[int, tuple[str, int]] = {}
    cores = 1
    for line, text in enumerate(_text(path, subject).splitlines(), 1):
        told = _RANK_LINE.fullmatch(text.strip())
        if told is None:
            raise ClusterError(f"{subject}: line {line}: {text!r} is not like 'rank 0=gpu000 slot=0': fix the line")
        first, last = int(told[3]), int(told[4] or told[3])
        cores = last - first + 1
        if int(told[1]) in found:
            raise ClusterError(f"{subject}: line {line}: rank {told[1]} occurs twice: remove one of the two")
        found[int(told[1])] = (told[2], first // cores)
    if sorted(found) != list(range(len(found))):
        raise ClusterError(f"{subject}: the ranks are not 0 to {len(found) - 1}: number them without a gap")
    return _gpus(plant, [found[rank] for rank in range(len(found))], subject)


def read_rank_table(path: str | Path, plant: Plant) -> tuple[int, ...]:
    """The GPUs of a rank table, by rank."""
    subject = f"rank table {path}"
    text = _text(path, subject).splitlines(keepends=True)
    rows = [row for _, row in table_records(text, RANK_COLUMNS, subject, ClusterError)]
    if (
        not rows
        or tuple(rows[0]) != RANK_COLUMNS
        or [row["rank"] for row in rows] != [str(n) for n in range(len(rows))]
    ):
        raise ClusterError(f"{subject}: it is not a table of {','.join(RANK_COLUMNS)} with ranks from 0: fix it")
    try:
        return _gpus(plant, [(row["server"], whole(row["gpu"])) for row in rows], subject)
    except ValueError as problem:
        raise ClusterError(f"{subject}: {problem}: number GPUs inside their server from 0") from None


def _gpus(plant: Plant, places: list[tuple[str, int]], subject: str) -> tuple[int, ...]:
    names = Names(plant)
    try:
        return tuple(names.gpu(server, place) for server, place in places)
    except KeyError as problem:
        raise ClusterError(f"{subject}: {plant.name} does not have {problem}: give a file of this plant") from None


def _text(path: str | Path, subject: str) -> str:
    return read_text(Path(path), subject, ClusterError)
