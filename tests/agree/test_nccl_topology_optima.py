"""Servers read from NCCL's files have the optima that are known for them."""

from fractions import Fraction
from pathlib import Path

import pytest
from optimum_worlds import known_fabrics

from ropewalk.collectives.optimum import all_gather, all_reduce, network_of
from ropewalk.fabric.expression import fabric

TOPOLOGIES = Path(__file__).parents[1] / "data" / "topologies"
KNOWN = {known["name"]: known["expected"] for known in known_fabrics()}


@pytest.mark.parametrize(("file", "name"), [("dgx-1v", "dgx1v"), ("dgx-a100", "dgx_a100_1box")])
def test_one_server_has_the_optimum_of_its_kind(file, name):
    network = network_of(fabric(str(TOPOLOGIES / f"{file}.xml")))
    assert all_gather(network).algbw == Fraction(KNOWN[name]["allgather"]) * 10**9
    assert all_reduce(network).algbw == Fraction(KNOWN[name]["allreduce"]) * 10**9


@pytest.mark.parametrize("servers", [2, 4])
def test_servers_on_one_switch_have_the_optimum_of_so_many_boxes(tmp_path, servers):
    (tmp_path / "cluster.yaml").write_text(
        f"servers: [{{topology: {TOPOLOGIES / 'dgx-a100.xml'}, count: {servers}}}]\nnetwork: switch\n"
    )
    found = all_gather(network_of(fabric(str(tmp_path / "cluster.yaml"))))
    assert found.algbw == Fraction(KNOWN[f"dgx_a100_{servers}box"]["allgather"]) * 10**9
