"""ForestColl's half of the comparison: a fabric read as JSON, answered as JSON.

`against_synthesisers.py` runs it; its only argument is the folder of a ForestColl checkout.

Input on stdin: {"compute": [v, …], "links": [[u, v, capacity], …], "trees_per_root": K or null, "trees": bool}.
Output: {"cpu_s", "algbw", "depth"}; capacities and bandwidth have the same unit, the depth counts hops between GPUs.
"""

from __future__ import annotations

import json
import sys
import time

import networkx as nx


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    from pipeline_allgather import OptimalBranchingsAlgo, optimal_pipeline_spanning_trees

    problem = json.load(sys.stdin)
    graph = nx.DiGraph()
    for u, v, capacity in problem["links"]:
        graph.add_edge(u, v, capacity=capacity)
    compute = set(problem["compute"])
    began = time.process_time()
    if not problem["trees"]:
        search = OptimalBranchingsAlgo(graph, capacitated=True, compute_nodes=compute)
        algbw, depth = 1 / search.convertToRuntime(*search.binary_search()), 0
    else:
        (unit, per_root), (trees, _) = optimal_pipeline_spanning_trees(
            graph, compute_nodes=compute, fixed_K=problem["trees_per_root"]
        )
        algbw, depth = len(compute) * per_root / unit, max(_depth(root, tree) for (root, _), tree in trees.items())
    print(json.dumps({"cpu_s": time.process_time() - began, "algbw": algbw, "depth": depth}))


def _depth(root: int, tree: list[list[tuple[int, int]]]) -> int:
    hops = nx.DiGraph([(path[0][0], path[-1][1]) for path in tree])
    return int(max(nx.single_source_shortest_path_length(hops, root).values()))


if __name__ == "__main__":
    main()
