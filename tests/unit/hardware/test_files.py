"""Cluster files as people write them: what they say, and one message with all that is wrong."""

import re
from pathlib import Path

import pytest

from ropewalk.errors import ClusterError
from ropewalk.fabric import LeafSpine
from ropewalk.fabric.files import write_fabric
from ropewalk.hardware import Given, Ports, read_cluster

POD = """
name: pod 7
device: h100
servers:
- {count: 2, gpus: 8, nics: 4, nic_bandwidth: 400Gbps}
- {gpus: 4, nvlink_bandwidth: 100GB/s}
network: leaf-spine
latency: 1us
failed: [leaf0-spine0]
"""


def read(tmp_path, text, given=None):
    (tmp_path / "pod.yaml").write_text(text)
    return read_cluster(tmp_path / "pod.yaml", given)


def test_what_a_file_leaves_open_is_as_in_servers_of_that_gpu(tmp_path):
    first, second = read(tmp_path, POD).servers
    assert (first.nics, first.nic_bandwidth, first.nvlink_bandwidth) == (4, 50e9, 450e9)
    assert (second.count, second.nics, second.nvlink_bandwidth, second.device) == (1, 4, 100e9, "h100")


def test_options_fill_what_a_file_leaves_open_and_may_repeat_what_it_says(tmp_path):
    text = "servers: [{count: 2, gpus: 8, nics: 4}]"
    found = read(tmp_path, text, Given(device="a100", nics=4, rails=True))
    assert (found.device, found.equal.nics, found.rails) == ("a100", 4, True)


def test_an_option_that_contradicts_a_file_is_refused_with_both_facts(tmp_path):
    given = Given(device="a100", nics=8, nic_bandwidth=25e9, network="fat-tree", latency_s=2e-6, gpus=16)
    with pytest.raises(ClusterError, match=r"cluster file .*pod\.yaml: 7 findings") as refused:
        read(tmp_path, POD, given)
    for fact in (
        "it has 20 GPUs, but --gpus is 16",
        "it has servers of h100 GPUs, but --device is a100",
        "it has servers with 4 NICs, but --nics is 8",
        "it has NICs of 400 Gbps, but --bandwidth is 200 Gbps",
        "it has the network leaf-spine, but --fabric is fat-tree",
        "it has links of 1 us latency, but --hop-latency is 2 us latency",
    ):
        assert fact in str(refused.value)


def test_a_network_file_is_found_beside_the_cluster_file(tmp_path):
    write_fabric(LeafSpine(4, 4, 4, bandwidth=7e9).build(), tmp_path / "net.yaml")
    found = read(tmp_path, "servers: [{count: 2, gpus: 8}]\nnetwork: net.yaml")
    assert (found.equal.nic_bandwidth, found.fabric().hosts) == (7e9, 16)
    with pytest.raises(ClusterError, match="leave the NIC bandwidth out, as the file has it"):
        read(tmp_path, "servers: [{count: 2, gpus: 8, nic_bandwidth: 1Gbps}]\nnetwork: net.yaml")


def test_ports_to_be_wired(tmp_path):
    found = read(tmp_path, "device: a100\nservers: [{count: 16, gpus: 4}]\nports: {degree: 4, duplex: false}")
    assert (found.network, found.equal.nics) == (Ports(4, duplex=False), 4)


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (
            "servers: [{count: 2, gpus: 8}]\nnetwork: leaf-spine\nports: {degree: 4}",
            ["two networks, network leaf-spine and ports to be wired: describe one of the two"],
        ),
        (
            "servers: [{count: 2, gpus: 8, nics: 3, nic_bandwidth: -5Gbps}]\ndevice: h1000",
            ["8 GPUs of a server do not divide evenly over 3 NICs", "is negative", "no device 'h1000'"],
        ),
        (
            "servers: [{count: 2, gpus: 8, gpu: 4}, {count: 0, gpus: many}]",
            ["servers[0].gpu: unknown key: did you mean gpus? use count", "servers[1].count", "servers[1].gpus"],
        ),
        ("server: []", ["server: unknown key: did you mean servers?"]),
        ("servers: []", ["servers: is missing: list groups of servers"]),
        ("servers: [{gpus: 8}]\nnetwork: leafspine", ["network: there is no fabric family 'leafspine': did you mean"]),
        ("servers: [{gpus: 8}]\nnetwork: torus:3x", ["network: 'torus:3x' needs whole numbers"]),
        ("servers: [{gpus: 4}]\nnetwork: dgx-h100:2", ["dgx-h100:2 holds 2 servers of 8 GPUs, but 1 of 4"]),
        ("servers: [{gpus: 8, nic_bandwidth: 400}]", ["servers[0].nic_bandwidth: bandwidth '400' has no unit"]),
        ("servers: [{gpus: 8}]\nlatency: -1us", ["time '-1us' is negative"]),
        ("- 4x8", ["is not a mapping: write the keys"]),
        ("servers: [{gpus: 8]", ["line 1, column 19"]),
        (
            "device: a100\nservers: [{gpus: 8, device: h100}]",
            ["servers[0].device: is h100, but device of the whole file is a100: leave one of the two out"],
        ),
    ],
)
def test_a_file_that_contradicts_itself_is_refused_with_everything_that_is_wrong(tmp_path, text, findings):
    with pytest.raises(ClusterError, match=r"pod\.yaml") as refused:
        read(tmp_path, text)
    for finding in findings:
        assert finding in str(refused.value)


def test_the_example_of_the_documentation_is_a_cluster():
    found = read_cluster(Path(__file__).parents[3] / "examples" / "cluster.yaml")
    assert (found.gpus, found.device, found.rails, found.fabric().hosts) == (32, "a100", True, 32)


def test_every_example_of_the_documentation_is_a_cluster(tmp_path):
    text = (Path(__file__).parents[3] / "docs" / "cluster-files.md").read_text()
    examples = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    found = [read(tmp_path, example) for example in examples]
    assert [cluster.shape for cluster in found] == ["4x8", "6x8,2x4", "16x4"]
    assert [cluster.gpus for cluster in found] == [32, 48, 64]
