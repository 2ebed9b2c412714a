"""The bit-mask search of vClos against the published integer program, on thousands of random and adversarial states.

    python benchmarks/cluster_agreement.py [--quick] [--states 12000]

Both must say the same of every state: whether l leafs with s free spines in common exist, and what the cheapest cost.
The tests ask a few hundred of these states; this asks them all.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from measure import machine, options, summary, table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "reference"))

from leaf_spine_program import solve_leafs
from leaf_spine_states import KINDS, state_of

from ropewalk.tenancy.vclos.search import Found, common_spines, search_leafs


def answer(seed: int) -> tuple[str, bool]:
    """What the search says of a state, and whether the program agrees."""
    state, leafs, spines = state_of(seed)
    quick, slow = search_leafs(state, leafs, spines), solve_leafs(state, leafs, spines)
    if not (isinstance(quick, Found) and isinstance(slow, Found)):
        return type(quick).__name__, type(quick) is type(slow)
    ports = state.ports_of_leaf
    cheapest = int(ports[list(quick.leafs)].sum()) == int(ports[list(slow.leafs)].sum())
    return "Found", cheapest and len(common_spines(state, quick.leafs, spines)) == spines


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--states", type=int, default=12_000)
    given = parser.parse_args()
    states = 300 if given.quick else given.states
    said: Counter[tuple[str, str]] = Counter()
    differing = 0
    for seed in range(states):
        what, agrees = answer(seed)
        said[KINDS[seed % len(KINDS)].__name__, what] += 1
        differing += not agrees
    rows = [[kind.__name__, *(str(said[kind.__name__, what]) for what in ("Found", "Nothing"))] for kind in KINDS]
    table(f"states and what the search says of them ({machine()})", ("kind", "found", "nothing"), rows)
    summary(f"{differing} of {states} answers of the search differ from the integer program's")


if __name__ == "__main__":
    main()
