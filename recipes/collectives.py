"""Studies of collectives, one function a study: its name says collective, fabrics and scale.

python recipes/collectives.py                      lists them
python recipes/collectives.py NAME [--page FILE]   runs one
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from ropewalk import synthesis
from ropewalk.fabric import Dgx, Fabric, FabricDraft, LeafSpine, Mesh
from ropewalk.synthesis import CollectiveAnswer, CollectiveQuestion

GB = 1e9
DGX_1V = {
    (0, 1): 2, (0, 2): 1, (0, 3): 1, (0, 4): 2, (1, 2): 1, (1, 3): 2, (1, 5): 1, (2, 3): 2, (2, 6): 2, (3, 7): 1,
    (4, 5): 2, (4, 6): 1, (4, 7): 1, (5, 6): 1, (5, 7): 2, (6, 7): 2,
}  # fmt: skip
"""NVLinks between the GPUs of a DGX-1V, 25 GB/s each."""


def two_dgx_a100_with_one_slow_nic() -> Fabric:
    """Two servers of 8 GPUs on rails; the NIC of the first GPU runs at a quarter of its speed."""
    whole = Dgx(2).build()
    rail = whole.node_names.index("rail0")
    slow = (np.minimum(whole.link_src, whole.link_dst) == 0) & (np.maximum(whole.link_src, whole.link_dst) == rail)
    speeds = np.where(slow, whole.bandwidth / 4, whole.bandwidth)
    # Without its builder: a fabric with a slow NIC is no longer what the builder describes.
    return replace(whole, name="two DGX A100, one slow NIC", bandwidth=speeds, builder=None)


def dgx_1v(dead: Sequence[tuple[int, int]] = ()) -> Fabric:
    """Eight GPUs joined by NVLink, without those that are dead."""
    draft = FabricDraft("DGX-1V" if not dead else "DGX-1V, one dead link", [f"gpu{gpu}" for gpu in range(8)])
    alive = {ends: count for ends, count in DGX_1V.items() if ends not in dead}
    draft.add_links([u for u, _ in alive], [v for _, v in alive], [25 * GB * count for count in alive.values()])
    return draft.freeze()


def dgx_a100_beside_dgx_h100() -> Fabric:
    """Two generations: NVLink of 300 and 450 GB/s, NICs of 25 and 50 GB/s, one switch between the servers."""
    draft = FabricDraft("DGX A100 and DGX H100", [f"gpu{server}.{gpu}" for server in range(2) for gpu in range(8)])
    draft.add_switches(["nvswitch0", "nvswitch1", "core"], 1)
    gpus = np.arange(16)
    draft.add_links(gpus, 16 + gpus // 8, np.repeat([300 * GB, 450 * GB], 8))
    draft.add_links(gpus, 18, np.repeat([25 * GB, 50 * GB], 8))
    return draft.freeze(server=(gpus // 8).astype(np.int32))


def star_of_unequal_nics() -> Fabric:
    """Six hosts at one switch, two of them with half the speed."""
    draft = FabricDraft("star, two hosts at half speed", [f"h{host}" for host in range(6)])
    draft.add_switches(["switch"], 1)
    draft.add_links(np.arange(6), 6, [12.5 * GB] * 4 + [6.25 * GB] * 2)
    return draft.freeze()


def hosts_with_random_bandwidth(hosts: int = 8, seed: int = 0) -> Fabric:
    """What is left to a job on a shared cluster: between 1 and 10 Gbps for every pair of hosts."""
    draft = FabricDraft(f"{hosts} hosts, random bandwidth", [f"h{host}" for host in range(hosts)])
    pairs = list(combinations(range(hosts), 2))
    speeds = np.random.default_rng(seed).integers(1, 11, len(pairs)) * GB / 8
    draft.add_links([u for u, _ in pairs], [v for _, v in pairs], speeds)
    return draft.freeze()


def allreduce_on_degraded_and_heterogeneous_fabrics_6_to_16_ranks() -> dict[str, Fabric]:
    """What one slow NIC, one dead link, mixed generations, oversubscription and borders cost whom."""
    return {
        "two DGX A100": Dgx(2).build(),
        "… one NIC at a quarter": two_dgx_a100_with_one_slow_nic(),
        "DGX-1V": dgx_1v(),
        "… link 0–1 dead": dgx_1v(dead=[(0, 1)]),
        "DGX A100 + DGX H100": dgx_a100_beside_dgx_h100(),
        "leaf-spine, 2:1 oversubscribed": LeafSpine(leafs=4, spines=2, hosts_per_leaf=4).build(),
        "mesh 4×4": Mesh((4, 4)).build(),
        "star, 2 of 6 hosts at half speed": star_of_unequal_nics(),
        "8 hosts, random bandwidth": hosts_with_random_bandwidth(),
    }


def allreduce_on_random_bandwidth_4_to_12_hosts() -> dict[str, Fabric]:
    """Heterogeneous bandwidth between all pairs, as on a shared cluster, five draws and three sizes."""
    return {
        f"{hosts} hosts, draw {seed}": hosts_with_random_bandwidth(hosts, seed) for hosts in (4, 8, 12)
        for seed in range(5)
    }  # fmt: skip


RECIPES = (
    allreduce_on_degraded_and_heterogeneous_fabrics_6_to_16_ranks,
    allreduce_on_random_bandwidth_4_to_12_hosts,
)
TITLES = {
    RECIPES[0].__name__: "What a schedule that was made for the fabric is worth: all-reduce where links are not alike",
    RECIPES[1].__name__: "All-reduce over hosts with random bandwidth between them",
}
SHOWN = ("best-ring", "ring", "hips", "double-tree", "halving-doubling")
"""What is compared with the optimum; other alternatives are left out of these studies."""


def answers_on(fabric: Fabric) -> list[CollectiveAnswer]:
    """The exact forest beside its alternatives, and what multiplicative weights find."""
    asked = CollectiveQuestion("allreduce", fabric)
    exact = synthesis.answer(asked)
    kept = tuple(other for other in exact.alternatives if other.name in SHOWN)
    return [replace(exact, alternatives=kept), synthesis.answer(replace(asked, method="topoadopt", compare=False))]


def main(arguments: list[str]) -> None:
    known = {recipe.__name__: recipe for recipe in RECIPES}
    if not arguments or arguments[0] not in known:
        for name, recipe in known.items():
            print(f"{name}\n    {(recipe.__doc__ or '').splitlines()[0]}")
        sys.exit(0 if not arguments else 2)
    from ropewalk.report.collective_study import collective_study_page, reached

    cases = {label: answers_on(fabric) for label, fabric in known[arguments[0]]().items()}
    for label, answers in cases.items():
        best = float(answers[0].optimum.algbw)
        parts = ", ".join(f"{name} {value / best:.1%}" for name, value in reached(answers).items())
        print(f"{label:34} {best / GB:8.4g} GB/s  {parts}")
    if arguments[1:2] == ["--page"]:
        from ropewalk.files import write_whole

        write_whole(Path(arguments[2]), collective_study_page(TITLES[arguments[0]], cases))


if __name__ == "__main__":
    main(sys.argv[1:])
