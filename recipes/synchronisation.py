"""Synchronisation studies, one function a study: its name says model, fabric and scale, its value is the whole input.

python recipes/synchronisation.py                      lists them
python recipes/synchronisation.py NAME [--page FILE]   runs one
"""

from __future__ import annotations

import sys
from pathlib import Path

from ropewalk import sync
from ropewalk.sync import SyncQuestion
from ropewalk.units import show_seconds

VGG19_BYTES = 575_000_000
"""143.67 million parameters of four bytes, as the published study rounds it."""


def vgg19_on_every_fabric_64_hosts() -> SyncQuestion:
    """The default of `ropewalk sync`: five logical topologies on five physical ones."""
    return SyncQuestion()


def vgg19_by_hips_ring_and_mesh_on_bcube_and_torus_256_hosts() -> SyncQuestion:
    """The combinations of the published study at the largest size that BCube and torus share with it."""
    return SyncQuestion(
        logical=("ps", "mesh", "ring", "hips"), physical=("bcube:16,2", "torus:16x16", "fat-tree:10"),
        sizes=(VGG19_BYTES,), bandwidths=(5e9,), start_up_s=10e-6,
    )  # fmt: skip


def mesh_and_hips_on_fat_tree_by_ecmp_128_hosts() -> SyncQuestion:
    """What hashing costs: the same programs with planned, hashed and polarised paths."""
    return SyncQuestion(
        logical=("mesh", "ring", "hips"), physical=("fat-tree:8",), sizes=(VGG19_BYTES,), bandwidths=(5e9,),
        routing=("dmodk", "ecmp", "ecmp-polarised", "murmur"), start_up_s=10e-6,
    )  # fmt: skip


def hips_on_bcube_16_to_1024_hosts(start_up_s: float = 10e-6) -> SyncQuestion:
    """Scalability: 64 MB from 16 to 1,024 servers, published as a loss of 6.5 %."""
    return _on_bcube("hips", start_up_s)


def ring_on_bcube_16_to_1024_hosts(start_up_s: float = 2.28e-6) -> SyncQuestion:
    """Scalability: published as a loss of 44.6 %, which needs start-ups of 2.28 us (derived, not quoted)."""
    return _on_bcube("ring", start_up_s)


def _on_bcube(logical: str, start_up_s: float) -> SyncQuestion:
    return SyncQuestion(
        logical=(logical,), physical=("bcube",), hosts=(16, 64, 256, 1024), sizes=(64_000_000,), bandwidths=(5e9,),
        start_up_s=start_up_s,
    )  # fmt: skip


RECIPES = (
    vgg19_on_every_fabric_64_hosts,
    vgg19_by_hips_ring_and_mesh_on_bcube_and_torus_256_hosts,
    mesh_and_hips_on_fat_tree_by_ecmp_128_hosts,
    hips_on_bcube_16_to_1024_hosts,
    ring_on_bcube_16_to_1024_hosts,
)


def main(arguments: list[str]) -> None:
    known = {recipe.__name__: recipe for recipe in RECIPES}
    if not arguments or arguments[0] not in known:
        for name, recipe in known.items():
            print(f"{name}\n    {(recipe.__doc__ or '').splitlines()[0]}")
        sys.exit(0 if not arguments else 2)
    answer = sync.answer(known[arguments[0]]())
    for row in answer.rows:
        form = f"closed form {show_seconds(row.closed_form_s)}" if row.closed_form_s is not None else "no closed form"
        print(
            f"{row.fabric:12} {row.hosts:5} {row.logical:16} {row.routing:18} {row.level:6} "
            f"{show_seconds(row.sync_time_s):>10}  {form}"
        )
    if arguments[1:2] == ["--page"]:
        from ropewalk.files import write_whole
        from ropewalk.report import sync_page

        write_whole(Path(arguments[2]), sync_page(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
