"""Topologies that NCCL and RCCL dump, as fabrics: the servers that people have, and files that cannot be right."""

from pathlib import Path

import numpy as np
import pytest
from written_out import fabric_of_yaml

from ropewalk.errors import FabricError
from ropewalk.fabric.expression import fabric
from ropewalk.fabric.files import to_yaml
from ropewalk.fabric.nccl_speeds import NCCL, between_cpus
from ropewalk.fabric.nccl_topology import read_nccl_topology

TOPOLOGIES = Path(__file__).parents[2] / "data" / "topologies"
GPU = (
    '<pci busid="0000:0{bus}:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">'
    '<gpu dev="{dev}" sm="80" rank="{dev}" gdr="1">{links}</gpu></pci>'
)
NVLINK = '<nvlink target="0000:0{bus}:00.0" count="{count}" tclass="0x030200"/>'
SWITCHED = '<nvlink target="fffffff:ffff:ff" count="12" tclass="0x068000"/>'
AMD = 'arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49"'


def gpu(dev, links=""):
    return GPU.format(bus=dev + 1, dev=dev, links=links)


def write(folder, inside, cpu=AMD, version=1):
    path = folder / "server.xml"
    path.write_text(f'<system version="{version}">\n<cpu numaid="0" {cpu}>\n{inside}\n</cpu>\n</system>\n')
    return path


def speeds(found):
    """Bytes/s from node to node."""
    names = found.node_names
    ends = zip(found.link_src.tolist(), found.link_dst.tolist(), found.bandwidth.tolist(), strict=True)
    return {(names[src], names[dst]): speed for src, dst, speed in ends}


def test_a_dgx_a100_is_eight_gpus_on_one_nvswitch_of_300_gigabytes_each():
    found = fabric(str(TOPOLOGIES / "dgx-a100.xml"))
    assert found.hosts == 8
    assert found.node_names[8:] == ("nvswitch0",)
    assert found.server.tolist() == [0] * 8
    assert set(found.bandwidth.tolist()) == {300e9}
    assert set(found.cables.tolist()) == {12}


def test_a_dgx_1v_is_the_hybrid_cube_mesh():
    found = fabric(str(TOPOLOGIES / "dgx-1v.xml"))
    assert (found.hosts, found.switches, found.links) == (8, 0, 32)
    assert found.host_bandwidth().tolist() == [150e9] * 8
    assert speeds(found)["gpu0.0", "gpu0.4"] == 50e9


def test_mi300x_gpus_are_a_full_mesh_of_infinity_fabric():
    found = fabric(str(TOPOLOGIES / "mi300x.xml"))
    assert (found.switches, found.links) == (0, 56)
    assert set(found.bandwidth.tolist()) == {64e9}


def test_gpus_without_nvlink_talk_over_their_sockets():
    found = fabric(str(TOPOLOGIES / "pcie-l40s.xml"))
    assert found.node_names[4:] == ("cpu0.0", "cpu0.1")
    assert speeds(found)["gpu0.0", "cpu0.0"] == 31.5e9
    assert speeds(found)["cpu0.0", "cpu0.1"] == 22e9


def test_all_links_are_there_when_they_are_asked_for():
    found = read_nccl_topology(TOPOLOGIES / "dgx-1v.xml", inside="all")
    assert found.node_names[8:] == ("cpu0.0", "pci0.0", "pci0.1", "cpu0.1", "pci0.2", "pci0.3")
    assert found.level[8:].tolist() == [2, 1, 1, 2, 1, 1]
    assert speeds(found)["gpu0.0", "pci0.0"] == 15.75e9
    assert speeds(found)["cpu0.0", "cpu0.1"] == 6e9


def test_nccl_counts_on_less_than_the_wires_carry():
    found = read_nccl_topology(TOPOLOGIES / "dgx-a100.xml", NCCL, inside="all")
    assert speeds(found)["gpu0.0", "nvswitch0"] == 240e9
    assert speeds(found)["gpu0.0", "pci0.1"] == 24e9


def test_a_topology_survives_the_way_through_a_fabric_file():
    found = read_nccl_topology(TOPOLOGIES / "dgx-a100.xml", inside="all")
    again = fabric_of_yaml(to_yaml(found))
    assert again.node_names == found.node_names
    for column in ("link_src", "link_dst", "bandwidth", "cables", "level", "server"):
        assert np.array_equal(getattr(again, column), getattr(found, column))


def test_gpus_are_hosts_in_the_order_of_their_ranks(tmp_path):
    turned = gpu(0, NVLINK.format(bus=2, count=3)).replace('rank="0"', 'rank="7"') + gpu(
        1, NVLINK.format(bus=1, count=3)
    )
    found = fabric(str(write(tmp_path, turned)))
    assert found.node_names == ("gpu0.0", "gpu0.1")
    assert set(found.bandwidth.tolist()) == {75e9}


def test_bus_numbers_of_both_lengths_are_the_same_device(tmp_path):
    links = [NVLINK.format(bus=peer, count=4).replace("0000:", "00000000:") for peer in (2, 1)]
    assert fabric(str(write(tmp_path, gpu(0, links[0]) + gpu(1, links[1])))).links == 2


def test_links_to_gpus_outside_the_job_are_left_out(tmp_path):
    stray = NVLINK.format(bus=9, count=4)
    found = fabric(str(write(tmp_path, gpu(0, SWITCHED + stray) + gpu(1, SWITCHED))))
    assert found.links == 4


def test_a_speed_that_the_kernel_hides_counts_as_pcie_3_x16(tmp_path):
    hidden = gpu(0).replace("16.0 GT/s PCIe", "Unknown").replace('link_width="16"', 'link_width="0"')
    assert speeds(fabric(str(write(tmp_path, hidden + gpu(1)))))["gpu0.0", "cpu0.0"] == 15.75e9


def test_a_chip_to_chip_link_joins_a_gpu_to_its_socket(tmp_path):
    c2c = '<c2c bw="44712" count="10"/>'
    found = fabric(str(write(tmp_path, gpu(0, c2c) + gpu(1, c2c), cpu='arch="arm64"')))
    assert sorted(found.bandwidth.tolist())[-1] == pytest.approx(447.12e9)


def test_hosts_that_share_nvlink_in_one_file_are_several_servers(tmp_path):
    cpu = '<cpu numaid="0" host_hash="{hash}" arch="arm64">{inside}</cpu>'
    text = "".join(
        cpu.format(hash=hex(5 - n), inside=gpu(0, SWITCHED).replace('rank="0"', f'rank="{n}"')) for n in range(2)
    )
    (tmp_path / "rack.xml").write_text(f'<system version="1">{text}</system>')
    found = fabric(str(tmp_path / "rack.xml"))
    assert found.node_names == ("gpu0.0", "gpu1.0", "nvswitch0")
    assert found.server.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        (gpu(0), "there is one host"),
        ("", "there is no GPU"),
        ("<fan/>", r"line 3: <fan> inside <cpu> is unknown"),
        (gpu(0) + gpu(0), r"several GPUs have rank 0"),
        (gpu(0, NVLINK.format(bus=2, count=2)) + gpu(1), r"gpu0\.0 has 2 links to gpu0\.1, which has 0 back"),
        (gpu(0, NVLINK.format(bus=2, count=0)), "count is 0"),
        (gpu(0, NVLINK.format(bus=2, count=1 << 40)), "count is 1099511627776: write the number of links"),
        (gpu(0, f'<c2c bw="44712" count="{1 << 40}"/>'), "count is 1099511627776: write the number of links"),
        (gpu(0, "<nvlink/>"), "<nvlink> has no count"),
        (gpu(0).replace('sm="80"', 'sm="new"').replace("</gpu>", SWITCHED + "</gpu>"), "sm is 'new'"),
        (gpu(0).replace("16.0 GT/s PCIe", "fast"), "link_speed is 'fast'"),
        (gpu(0).replace('link_width="16"', 'link_width="99"'), "link_width is 99"),
        (gpu(0).replace("0000:01:00.0", "here"), "busid is 'here'"),
        ('<pci busid="0000:01:00.0" class="0x030200"/>', "has no <gpu> element, so its NVLinks are not known"),
        ('<nic><net name="eth0" dev="0" speed="-1"/></nic>', "port eth0 has speed -1"),
        ('<nic><net name="eth0" dev="0" speed="1" latency="soon"/></nic>', "latency is 'soon'"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path, inside, told):
    with pytest.raises(FabricError, match=told):
        fabric(str(write(tmp_path, inside)))


def test_an_intel_processor_of_a_model_that_nobody_knows_counts_as_an_old_one():
    assert between_cpus("x86_64", "GenuineIntel", 6, -1) == between_cpus("x86_64", "GenuineIntel", 6, 0x3F) == 6e9
    assert between_cpus("x86_64", "GenuineIntel", 6, 0x55) == 10e9


def test_all_mistakes_of_a_file_come_in_one_message(tmp_path):
    both = gpu(0).replace("16.0 GT/s PCIe", "fast") + "\n" + gpu(1).replace('link_width="16"', 'link_width="x"')
    with pytest.raises(FabricError, match="2 findings") as told:
        fabric(str(write(tmp_path, both)))
    assert "line 3: link_speed" in str(told.value)
    assert "line 4: link_width" in str(told.value)


def test_files_that_are_no_topology_are_refused(tmp_path):
    with pytest.raises(FabricError, match="version '9' is unknown"):
        fabric(str(write(tmp_path, gpu(0) + gpu(1), version=9)))
    for text, told in (
        ("<graphs/>", "begins with <graphs>"),
        ("<a>text</a>", "text 'text'"),
        ("<a>", "no element found"),
    ):
        (tmp_path / "other.xml").write_text(text)
        with pytest.raises(FabricError, match=told):
            fabric(str(tmp_path / "other.xml"))
    with pytest.raises(FabricError, match="does not exist"):
        fabric(str(tmp_path / "nowhere.xml"))
    (tmp_path / "deep.xml").write_text("<a>" * 300 + "</a>" * 300)
    with pytest.raises(FabricError, match="elements are nested over 64 deep"):
        fabric(str(tmp_path / "deep.xml"))


def test_unknown_processors_matter_only_between_sockets(tmp_path):
    assert fabric(str(write(tmp_path, gpu(0) + gpu(1), cpu='arch="riscv"'))).hosts == 2
    two = f'{gpu(0)}</cpu><cpu numaid="1">{gpu(1)}'
    with pytest.raises(FabricError, match="the interconnect between sockets of this processor is not known"):
        fabric(str(write(tmp_path, two, cpu='arch="riscv"')))


def test_words_that_name_no_choice_are_refused():
    with pytest.raises(FabricError, match="choose planned, nvlink, all"):
        read_nccl_topology(TOPOLOGIES / "dgx-1v.xml", inside="some")
    with pytest.raises(FabricError, match="NVLink does not connect all GPUs"):
        read_nccl_topology(TOPOLOGIES / "pcie-l40s.xml", inside="nvlink")
