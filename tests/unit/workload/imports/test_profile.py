"""Profiles of DAPPLE and PipeDream: times in milliseconds, sizes in bytes, edges as they are."""

from pathlib import Path

import pytest

from ropewalk.errors import WorkloadError
from ropewalk.workload.imports import from_profile
from ropewalk.workload.imports.profile import workload_of
from ropewalk.workload.opaque import Measured

PROFILES = Path(__file__).parents[3] / "data" / "profiles"
LAYER = "forward_compute_time=1.0, backward_compute_time=2.0, activation_size=40, parameter_size=8"


def test_a_dapple_profile_keeps_its_branches_times_and_sizes() -> None:
    workload = from_profile(PROFILES / "tiny-pbs-4.txt")
    assert [layer.name for layer in workload.layers] == ["stem", "left", "right", "head"]
    assert [layer.inputs for layer in workload.layers] == [(), (0,), (0,), (1, 2)]
    assert [layer.output_elements for layer in workload.layers] == [3000, 1000, 1000, 40]
    assert workload.layers[0].operators == (Measured(0.0015, 0.003, 300, 12000.0),)
    assert workload.batch == 4
    assert workload.parameters() == (1200 + 40000 + 400400) // 4


def test_a_pipedream_profile_in_any_order_comes_out_in_the_order_it_runs() -> None:
    workload = from_profile(PROFILES / "conv.txt", batch=128)
    names = [layer.name.partition("(")[0] for layer in workload.layers]
    assert names == ["Conv2d", "ReLU", "Linear"]
    assert workload.is_chain
    assert workload.layers[2].operators == (Measured(0.0025, 0.0045, 4100, 51200.0),)


def test_inputs_that_are_read_from_another_layer_stay() -> None:
    text = f"a1 -- first -- {LAYER}\na2 -- InputProjection -- {LAYER}\n a1 -- a2\n"
    assert len(workload_of(text, "profile p", "p", 1).layers) == 2


def test_twice_the_batch_takes_twice_the_time_but_no_more_parameters() -> None:
    small = from_profile(PROFILES / "tiny-pbs-4.txt")
    large = small.at_batch(8)
    first = large.layers[0].operators[0]
    assert isinstance(first, Measured)
    assert (first.forward_s, first.saved) == (0.003, 24000.0)
    assert large.parameters() == small.parameters()
    assert large.layers[0].output_elements == 6000
    assert large.at_batch(4) == small


def test_a_name_without_the_batch_asks_for_it() -> None:
    with pytest.raises(WorkloadError, match=r"does not contain its batch size: give batch"):
        from_profile(PROFILES / "conv.txt")


def test_a_batch_that_contradicts_the_name_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"4 samples according to its name, not 8.*at_batch\(8\)"):
        from_profile(PROFILES / "tiny-pbs-4.txt", batch=8)


def test_every_mistake_is_found_with_its_line() -> None:
    text = f"node1 -- a -- {LAYER}\nnode1 -- b -- {LAYER}\nnode2 -- c -- forward_compute_time=x\nwhat is this\n"
    with pytest.raises(WorkloadError) as caught:
        workload_of(text, "profile p", "p", 1)
    message = str(caught.value)
    assert "line 2: node1 is listed twice" in message
    assert "line 3: forward_compute_time is missing or not positive" in message
    assert "line 3: parameter_size is missing" in message
    assert "line 4: neither a layer nor an edge" in message


def test_an_edge_to_a_layer_without_a_line_is_refused() -> None:
    with pytest.raises(WorkloadError, match="line 2: edge to or from node7, which has no line"):
        workload_of(f"node1 -- a -- {LAYER}\n\tnode1 -- node7\n", "profile p", "p", 1)


def test_layers_that_wait_for_each_other_are_refused() -> None:
    text = f"node1 -- a -- {LAYER}\nnode2 -- b -- {LAYER}\n\tnode1 -- node2\n\tnode2 -- node1\n"
    with pytest.raises(WorkloadError, match="line 4: with the edge node2 -- node1 2 layers form a dependency cycle"):
        workload_of(text, "profile p", "p", 1)


def test_the_edge_that_leads_furthest_back_is_named_and_layers_outside_the_circle_are_not() -> None:
    """Layers 5 and 6 wait for the circle of 2, 3 and 4, but are not part of it."""
    layers = "".join(f"node{number} -- a -- {LAYER}\n" for number in range(1, 7))
    edges = (
        "\tnode1 -- node2\n\tnode4 -- node2\n\tnode2 -- node3\n\tnode3 -- node4\n\tnode4 -- node5\n\tnode5 -- node6\n"
    )
    with pytest.raises(WorkloadError, match="line 8: with the edge node4 -- node2 3 layers form a dependency cycle"):
        workload_of(layers + edges, "profile p", "p", 1)


def test_a_layer_that_reads_itself_is_named() -> None:
    text = f"node1 -- a -- {LAYER}\nnode2 -- b -- {LAYER}\n\tnode1 -- node2\n\tnode2 -- node2\n"
    with pytest.raises(WorkloadError, match="line 4: with the edge node2 -- node2 a layer waits for itself"):
        workload_of(text, "profile p", "p", 1)


def test_a_profile_of_no_samples_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none-pbs-0.txt"
    path.write_text(f"node1 -- a -- {LAYER}\n")
    with pytest.raises(WorkloadError, match="was measured with 0 samples"):
        from_profile(path)


def test_an_empty_file_has_no_layers() -> None:
    with pytest.raises(WorkloadError, match="it has no layers"):
        workload_of("\n", "profile p", "p", 1)
