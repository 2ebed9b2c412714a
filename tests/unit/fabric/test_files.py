"""Fabric files: what they mean, and every way in which they can be wrong."""

import json

import numpy as np
import pytest
from written_out import fabric_of_json, fabric_of_yaml

from ropewalk.errors import FabricError, InputError
from ropewalk.fabric import Dgx, FatTree, LeafSpine, Ring
from ropewalk.fabric.files import read_fabric, to_json, to_yaml, write_fabric
from ropewalk.files import write_whole

TWO_RACKS = """
name: two racks
hosts: [{name: a0, server: 0}, {name: b0, server: 1}]
switches: [tor, {name: core, level: 2}]
links:
- [a0, tor, 100Gbps]
- {from: b0, to: core, bandwidth: 50Gbps, latency: 1us, cables: 2}
- {from: tor, to: core, bandwidth: 1GB/s, duplex: false}
- {from: core, to: tor, bandwidth: 2GB/s, duplex: false}
"""


def test_file_means_what_it_says():
    fabric = fabric_of_yaml(TWO_RACKS)
    assert fabric.name == "two racks"
    assert fabric.node_names == ("a0", "b0", "tor", "core")
    assert fabric.hosts == 2
    assert fabric.level.tolist() == [0, 0, 1, 2]
    assert fabric.server is not None
    assert fabric.server.tolist() == [0, 1]
    assert [fabric.link_name(link) for link in range(fabric.links)] == [
        "a0->tor",
        "tor->a0",
        "b0->core",
        "core->b0",
        "tor->core",
        "core->tor",
    ]
    assert fabric.bandwidth.tolist() == [12.5e9, 12.5e9, 6.25e9, 6.25e9, 1e9, 2e9]
    assert fabric.latency.tolist() == [0, 0, 1e-6, 1e-6, 0, 0]
    assert fabric.cables.tolist() == [1, 1, 2, 2, 1, 1]


def test_compact_form_lists_directed_links_in_gigabytes_per_second():
    fabric = fabric_of_yaml(
        '{compute: [0, 1], switches: [s], links: [[0, s, "25/2"], [s, 1, 50], [1, 0, 0.5]]}', "gpus"
    )
    assert fabric.name == "gpus"
    assert fabric.node_names == ("0", "1", "s")
    assert [fabric.link_name(link) for link in range(3)] == ["0->s", "s->1", "1->0"]
    assert fabric.bandwidth.tolist() == [12.5e9, 50e9, 0.5e9]


def test_written_bandwidth_is_exact():
    text = to_yaml(FatTree(2, bandwidth=1e9 / 3, latency=1e-6).build())
    assert "333333333.3333333B/s" in text
    assert "1e-06s" in text
    assert "12500000000B/s" in to_json(Ring(3).build())
    assert (fabric_of_yaml(text).bandwidth == 1e9 / 3).all()


def head(links, hosts="[a, b]", switches="[s]"):
    return f"hosts: {hosts}\nswitches: {switches}\nlinks: {links}\n"


GOOD = "[[a, s, 1Gbps], [b, s, 1Gbps]]"
BAD = [
    (head(GOOD, hosts="[a, b, a]"), r"hosts\[2\]: node 'a' is already listed at hosts\[0\]: remove or rename"),
    (head(GOOD, switches="[s, a]"), r"switches\[1\]: node 'a' is already listed at hosts\[0\]"),
    (head("[[a, s, 1Gbps], [b, s, 1Gbps], [a, x, 1Gbps]]"), r"links\[2\]: node 'x' is not listed: add it"),
    (head("[[a, s, 1Gbps], [b, s, 1Gbps], [s, s, 1Gbps]]"), r"links\[2\]: connects 's' to itself: remove it"),
    (head("[[a, s, -1Gbps], [b, s, 1Gbps]]"), r"links\[0\]: bandwidth '-1Gbps' is negative"),
    (head("[[a, s, 0Gbps], [b, s, 1Gbps]]"), r"links\[0\]: bandwidth '0Gbps' is zero"),
    (head("[[a, s, 1Gbps], [b, s, 1 parsec]]"), r"links\[1\]: bandwidth '1 parsec' has the unknown unit 'parsec'"),
    (head("[[a, s, 1Gbps], [b, s, 100]]"), r"links\[1\]: bandwidth '100' has no unit: write it like 100Gbps"),
    (head("[[a, s, 1Gbps], [b, s, fast]]"), r"links\[1\]: bandwidth 'fast' is not a number with a unit"),
    (head("[[a, s, 1Gbps], [b, s, [1]]]"), r"links\[1\].bandwidth: is \[1\]: write it in quotes"),
    (head("[[a, s, 1Gbps], [b, s]]"), r"links\[1\]: has 2 items: write \[from, to, bandwidth\]"),
    (head("[[a, s, 1Gbps], {from: b, to: s}]"), r"links\[1\].bandwidth: is missing"),
    (
        head("[[a, s, 1Gbps], {from: b, to: s, bandwith: 1Gbps}]"),
        r"links\[1\].bandwith: unknown key: did you mean bandwidth\? use",
    ),
    (head("[[a, s, 1Gbps], {from: b, to: s, bandwidth: 1Gbps, latency: 5}]"), r"links\[1\]: time '5' has no unit"),
    (
        head("[[a, s, 1Gbps], {from: b, to: s, bandwidth: 1Gbps, cables: 0}]"),
        r"links\[1\].cables: is 0: give 1 or more",
    ),
    (
        head("[[a, s, 1Gbps], {from: b, to: s, bandwidth: 1Gbps, duplex: 1}]"),
        r"links\[1\].duplex: is 1: write true or false",
    ),
    (head("[[a, s, 1Gbps], 7]"), r"links\[1\]: is not a mapping: write the keys from, to"),
    (head(GOOD) + "speed: fast\n", "speed: unknown key: use name, description, hosts, switches, links"),
    (head(GOOD) + "hosts: [c]\n", "line 4: the key 'hosts' is given twice"),
    (head(GOOD, hosts="[]"), "there are no hosts"),
    (head(GOOD, hosts="[a, b, on]"), r"hosts\[2\].name: True is not a name: write it in quotes"),
    (head(GOOD, hosts="[{name: a, server: 0}, b]"), "host 'b' has no server while others have one"),
    (head(GOOD, hosts="[{name: a, server: -1}, {name: b, server: 0}]"), r"hosts\[0\].server: "),
    (head(GOOD, switches="[{name: s, level: 0}]"), r"switches\[0\].level: "),
    (head(GOOD, hosts="{a: 1}"), "hosts: .*list"),
    ("links: []\n", "hosts: is missing"),
    ("hosts: [a, b]\n", "links: is missing"),
    ("", "is not a mapping: begin with the keys hosts"),
    ("just words", "is not a mapping"),
    (head("[[a, s, 1Gbps]]"), "hosts a and hosts b cannot reach each other: add links"),
    (
        head("[[a, s, 1Gbps], {from: b, to: s, bandwidth: 1Gbps, duplex: false}]"),
        "host a cannot reach b, although they reach it",
    ),
    (
        head("[[a, s, 1Gbps], {from: s, to: b, bandwidth: 1Gbps, duplex: false}]"),
        "b cannot reach host a, although it reaches them",
    ),
    ("hosts: [a, b\nlinks: []\n", "line 2.*fix the YAML"),
    ("hosts: [a]\n\tlinks: []\n", "line 2"),
    ("hosts: *unknown\n", "line 1.*undefined alias"),
    (
        "{compute: [0, 1], links: [[0, 1, fast], [1, 0, 1]]}",
        r"links\[0\].capacity: capacity 'fast' is not a number of GB/s",
    ),
    ("{compute: [0, 1], links: [[0, 1, 1/0], [1, 0, 1]]}", r"links\[0\].capacity: capacity '1/0'"),
    ("{compute: [0, 1], links: [[0, 1, -5], [1, 0, 1]]}", r"links\[0\]: bandwidth -5e\+09 is not positive"),
    ("{compute: [0, 1], links: [[0, 1, 0], [1, 0, 1]]}", r"links\[0\]: bandwidth 0 is not positive"),
    ("{compute: [0, 1], links: [[0, 1, .nan], [1, 0, 1]]}", "line 1: .nan is not a plain number"),
    ("{compute: [0, 1], links: [[0, 1], [1, 0, 1]]}", r"links\[0\]: is not a list of three"),
    ("{compute: [0, 1], links: [[0, 1, 1]]}", "1 cannot reach host 0"),
    ("{compute: [0, 1], hosts: [2], links: []}", "hosts: unknown key"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_mistake_in_a_file_is_named_with_its_place_and_remedy(text, message):
    with pytest.raises(FabricError, match=message):
        fabric_of_yaml(text, "rack")


def test_all_findings_are_reported_at_once():
    text = head(
        "[[a, s, -1Gbps], [a, nowhere, 1Gbps], [s, s, 5], {from: a, to: s, bandwidth: 1Gbps, speed: 2}]",
        hosts="[a, a, b]",
    )
    with pytest.raises(FabricError) as refused:
        fabric_of_yaml(text, "rack.yaml")
    message = str(refused.value)
    assert message.startswith("rack.yaml: 7 findings")
    for part in ("hosts[1]", "links[0]", "links[1]", "links[2]: connects", "links[2]: bandwidth", "links[3].speed"):
        assert part in message
    assert "hosts a and hosts b cannot reach each other" in message


def test_hosts_that_are_cut_off_are_named_and_long_lists_are_cut_short():
    links = [["h0", f"h{i}", "1Gbps"] for i in range(1, 10)] + [["g0", "g1", "1Gbps"]]
    document = {"hosts": [*(f"h{i}" for i in range(10)), "g0", "g1"], "links": links}
    with pytest.raises(FabricError, match="hosts h0, h1, h2, h3, h4 and 5 more and hosts g0, g1 cannot reach"):
        fabric_of_json(json.dumps(document))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"hosts": [', "line 1, column"),
        ('{"hosts": ["a"],\n "links" []}', "line 2, column"),
        ('{"hosts": ["a"], "hosts": ["b"], "links": []}', "key 'hosts' is given twice"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_malformed_json_is_refused_with_its_line(text, message):
    with pytest.raises(FabricError, match=message):
        fabric_of_json(text)


def test_huge_numbers_do_not_end_in_a_traceback():
    with pytest.raises(FabricError, match=r"links\[0\]"):
        fabric_of_yaml("{compute: [0, 1], links: [[0, 1, 1e999], [1, 0, 1]]}")
    with pytest.raises(FabricError, match=r"links\[0\]"):
        fabric_of_yaml(head(f"[[a, s, {'9' * 400}Gbps], [b, s, 1Gbps]]"))


@pytest.mark.parametrize("suffix", ["yaml", "yml", "json", "graphml"])
def test_file_is_written_and_read_back(tmp_path, suffix):
    path = tmp_path / f"dgx.{suffix}"
    write_fabric(Dgx(2, spines=2).build(), path)
    fabric = read_fabric(path)
    assert (fabric.hosts, fabric.links) == (16, 96)
    assert fabric.server is not None
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_file_without_a_name_is_called_after_its_path(tmp_path):
    path = tmp_path / "rack7.yaml"
    path.write_text(head(GOOD))
    assert read_fabric(path).name == "rack7"


@pytest.mark.parametrize("name", ["rack.toml", "rack"])
def test_unknown_ending_is_refused(tmp_path, name):
    with pytest.raises(FabricError, match=r"use \.yaml, \.yml, \.json, \.graphml or \.xml"):
        read_fabric(tmp_path / name)
    with pytest.raises(FabricError, match=r"use \.yaml, \.yml, \.json or \.graphml"):
        write_fabric(Ring(3).build(), tmp_path / name)


def test_folder_and_binary_file_are_refused(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FabricError, match="cannot be read"):
        read_fabric(tmp_path / "folder.yaml")
    with pytest.raises(FabricError, match="not UTF-8"):
        read_fabric(tmp_path / "binary.yaml")


def test_large_fabric_round_trips_through_json():
    fabric = LeafSpine(32, 16, 32).build()
    again = fabric_of_json(to_json(fabric))
    assert np.array_equal(again.link_src, fabric.link_src)
    assert again.node_names == fabric.node_names


def test_whole_file_replaces_the_old_one_and_a_failure_leaves_it(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    write_whole(path, "old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(InputError, match=r"cannot write .*No space left on device: choose another path"):
        write_whole(path, "half")
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_writing_makes_the_folder_it_needs(tmp_path):
    write_whole(tmp_path / "new" / "page.html", "text")
    assert (tmp_path / "new" / "page.html").read_text() == "text"


def test_writing_where_a_file_is_in_the_way_says_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="choose another path"):
        write_whole(tmp_path / "file" / "page.html", "text")


def test_the_examples_of_the_documentation_are_valid(request, tmp_path):
    page = (request.config.rootpath / "docs" / "fabric-files.md").read_text()
    blocks = [part.split("```")[0] for part in page.split("```yaml")[1:]]
    *plain, cluster = blocks
    assert [fabric_of_yaml(block).hosts for block in plain] == [4, 2]
    topology = request.config.rootpath / "tests" / "data" / "topologies" / "dgx-a100.xml"
    (tmp_path / "dgx-a100.xml").write_bytes(topology.read_bytes())
    (tmp_path / "cluster.yaml").write_text(cluster)
    assert read_fabric(tmp_path / "cluster.yaml").hosts == 32
