"""Servers from topology files, joined by networks of every sort."""

from pathlib import Path

import pytest

from ropewalk.errors import FabricError
from ropewalk.fabric.expression import fabric
from ropewalk.hardware import Given, read_cluster

TOPOLOGIES = Path(__file__).parents[2] / "data" / "topologies"
A100, V100, L40S = (TOPOLOGIES / f"{name}.xml" for name in ("dgx-a100", "dgx-1v", "pcie-l40s"))


def read(folder, text):
    path = folder / "cluster.yaml"
    path.write_text(text)
    return fabric(str(path))


def neighbours(found, name):
    node = found.node_names.index(name)
    return {found.node_names[dst] for src, dst in zip(found.link_src, found.link_dst, strict=True) if src == node}


def test_rails_join_port_i_of_every_server(tmp_path):
    found = read(tmp_path, f"servers: [{{topology: {A100}, count: 4}}]\nnetwork: rails\n")
    assert found.hosts == 32
    assert found.server.tolist() == [server for server in range(4) for _ in range(8)]
    assert neighbours(found, "rail3") == {f"net{server}.3" for server in range(4)}
    assert neighbours(found, "gpu2.5") == {"nvswitch2", "nic2.5"}


def test_ports_are_the_hosts_of_an_expression_server_by_server_or_by_rail(tmp_path):
    text = f"servers: [{{topology: {V100}, count: 2}}]\nnetwork: leaf-spine:4x2x2\n"
    assert neighbours(read(tmp_path, text), "leaf0") > {"net0.0", "net0.1"}
    assert neighbours(read(tmp_path, text + "wiring: rails\n"), "leaf0") > {"net0.0", "net1.0"}


def test_a_family_is_sized_to_the_ports_and_takes_their_speed(tmp_path):
    found = read(tmp_path, f"servers: [{V100}, {V100}]\nnetwork: switch\n")
    outside = found.node_names.index("switch0") if "switch0" in found.node_names else found.nodes - 1
    assert {float(speed) for speed in found.bandwidth[found.link_src == outside]} == {12.5e9}
    slower = read(tmp_path, f"servers: [{V100}, {V100}]\nnetwork: switch:8\nbandwidth: 10Gbps\nlatency: 2us\n")
    assert {float(speed) for speed in slower.bandwidth[slower.link_src == slower.nodes - 1]} == {1.25e9}
    assert slower.latency.max() == 2e-6


def test_listed_switches_and_links_name_ports_by_server_and_number(tmp_path):
    found = read(
        tmp_path,
        f"""
name: back to back
servers: [{L40S}, {L40S}]
switches: [{{name: core, level: 2}}]
links:
- [net0.0, net1.0, 100Gbps]
- [net0.1, core, 100Gbps]
- [net1.1, core, 100Gbps]
""",
    )
    assert found.name == "back to back"
    assert neighbours(found, "net0.0") == {"nic0.0", "net1.0"}
    assert found.level[found.node_names.index("core")] > found.level[found.node_names.index("cpu0.0")]


def test_different_servers_stand_in_one_cluster_and_paths_begin_at_the_file(tmp_path):
    (tmp_path / "a.xml").write_bytes(A100.read_bytes())
    found = read(tmp_path, f"speeds: nccl\nservers: [a.xml, {{topology: {V100}, inside: all}}]\nnetwork: switch:12\n")
    assert (found.hosts, found.server.tolist()[8]) == (16, 1)
    assert "cpu1.0" in found.node_names
    assert "cpu0.0" not in found.node_names


def test_gpus_that_share_cards_share_them_out(tmp_path):
    found = read(tmp_path, f"servers: [{{topology: {V100}, count: 2}}]\nnetwork: rails\n")
    assert neighbours(found, "nic0.1") == {"gpu0.2", "gpu0.3", "net0.1"}


def test_ports_that_a_network_has_to_spare_are_named_so(tmp_path):
    found = read(tmp_path, f"servers: [{{topology: {V100}, count: 2}}]\nnetwork: switch:9\n")
    assert "spare0" in found.node_names


def test_a_server_alone_needs_no_network_and_has_no_ports(tmp_path):
    found = read(tmp_path, f"servers: [{V100}]\n")
    assert (found.hosts, found.switches) == (8, 0)


def test_a_cluster_file_is_taken_as_it_is_by_training_studies(tmp_path):
    (tmp_path / "c.yaml").write_text(f"servers: [{{topology: {A100}, count: 2}}]\nnetwork: rails\n")
    read = read_cluster(tmp_path / "c.yaml", Given(device="a100"))
    assert (read.shape, read.fabric().hosts) == ("2x8", 16)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("servers: []", "servers: is empty"),
        ("servers: [nowhere.xml]", "nowhere.xml does not exist"),
        (f"servers: [{{topology: {V100}, count: 0}}]", r"servers\[0\]\.count"),
        (f"servers: [{{topology: {V100}, size: 2}}]", r"servers\[0\]\.size: unknown key"),
        (f"servers: [{{topology: {V100}, inside: some}}]", "inside is 'some': write planned, nvlink, all"),
        (f"servers: [{{topology: {L40S}, inside: nvlink}}]", "NVLink does not connect all GPUs"),
        (f"servers: [{V100}]\nspeeds: warp", "speeds: 'warp' is unknown"),
        (f"servers: [{V100}]\nnetwork: switch:2", "has 2 ports, but the servers have 4"),
        (f"servers: [{V100}]\nnetwork: web:2", "network: there is no fabric family 'web'"),
        (f"servers: [{V100}]\nnetwork: rails\nlinks: [[a, b, 1Gbps]]", "in one way only"),
        (f"servers: [{V100}]\nbandwidth: 1Gbps", "apply to a network, which is missing"),
        (f"servers: [{V100}]\nnetwork: rails\nwiring: loose", "wiring: 'loose' is unknown"),
        (f"servers: [{V100}]\nnetwork: rails\nbandwidth: 5", "has no unit"),
        (f"servers: [{V100}, {V100}]", "cannot reach|reach"),
        (f"servers: [{V100}, {V100}]\nlinks: [[net0.0, net9.0, 1Gbps]]", r"links\[0\]: node 'net9.0' is not listed"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_with_its_place(tmp_path, text, told):
    with pytest.raises(FabricError, match=told):
        read(tmp_path, text + "\n")


def test_mistakes_in_a_topology_are_told_once_with_its_file_and_line(tmp_path):
    broken = V100.read_text().replace('sm="70"', 'sm="old"', 1)
    (tmp_path / "broken.xml").write_text(broken)
    line = 1 + broken[: broken.index('sm="old"')].count("\n")
    with pytest.raises(FabricError) as told:
        read(tmp_path, "servers: [{topology: broken.xml, count: 3}]\nnetwork: rails\n")
    assert str(told.value).count(f"broken.xml: line {line}: sm is 'old'") >= 1
    assert "(2 of 3)" not in str(told.value)
