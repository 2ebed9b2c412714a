"""The same small cluster, two leafs of four and three servers, as every file that describes one."""

import pytest

from ropewalk.errors import FabricError
from ropewalk.tenancy.imports import AssumedCabling, Hints, read_leaf_map, read_nodes, read_plant

LEAFS = {"leaf0": ("gpu000", "gpu001", "gpu002", "gpu003"), "leaf1": ("gpu004", "gpu005", "gpu007")}
CONF = """# the cluster
SwitchName=leaf0 Nodes=gpu[000-003] LinkSpeed=400
switchname=leaf1 \\
    nodes=gpu[004-005,007]
SwitchName=spine Switches=leaf[0-1]  # one top switch
"""
TREE = """- topology: other
  flat: true
- topology: fabric
  cluster_default: true
  tree:
    switches:
      - {switch: spine, children: "leaf[0-1]"}
      - {switch: leaf0, nodes: "gpu[000-003]"}
      - switch: leaf1
        nodes: gpu[004-005,007]
"""
BLOCK = """- topology: b
  block:
    block_sizes: [4]
    blocks:
      - {block: leaf0, nodes: "gpu[000-003]"}
      - {block: leaf1, nodes: "gpu[004-005,007]"}
"""
HYPERNODES = """apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf0}
spec:
  tier: 1
  members:
    - {type: Node, selector: {regexMatch: {pattern: "^gpu00[0-3]$"}}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf1}
spec:
  tier: 1
  members:
    - {type: Node, selector: {exactMatch: {name: gpu004}}}
    - {type: Node, selector: {labelMatch: {matchLabels: {rack: r1}}}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: spine}
spec:
  tier: 2
  members:
    - {type: HyperNode, selector: {regexMatch: {pattern: "^leaf"}}}
"""
NODES = """gpu000 Ready <none> 3d v1.30 rack=r0
gpu001
gpu002
gpu003
gpu004 Ready <none> 3d v1.30 rack=r1,zone=a
gpu005 rack=r1
gpu007 rack=r1
"""
CSV = "server,leaf\n" + "".join(f"{server},{leaf}\n" for leaf in LEAFS for server in LEAFS[leaf])


def _read(tmp_path, text, name, **options):
    path = tmp_path / name
    path.write_text(text)
    return read_leaf_map(path, **options)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (CONF, "topology.conf"),
        (TREE, "topology.yaml"),
        (BLOCK, "topology.yaml"),
        (HYPERNODES, "h.yaml"),
        (CSV, "l.csv"),
    ],
)
def test_every_file_says_the_same_cluster(tmp_path, text, name):
    (tmp_path / "nodes").write_text(NODES)
    found = _read(tmp_path, text, name, hints=Hints(nodes=read_nodes(tmp_path / "nodes")))
    assert dict(found.leafs) == LEAFS
    plant = found.plant(AssumedCabling(gpus_per_server=4, spines=6, cables=2, nic_bandwidth=25e9, link_bandwidth=50e9))
    assert (plant.leafs, plant.spines, plant.gpus) == (2, 6, 28)
    assert plant.gpus_per_leaf.tolist() == [16, 12]
    assert plant.cables.tolist() == [[2] * 6] * 2
    assert plant.server_names == LEAFS["leaf0"] + LEAFS["leaf1"]
    assert (plant.nic_bandwidth, plant.link_bandwidth) == (25e9, 50e9)


def test_without_a_number_of_spines_the_fullest_leaf_gets_a_cable_for_each_gpu(tmp_path):
    assert _read(tmp_path, CONF, "t.conf").plant(AssumedCabling(gpus_per_server=4)).spines == 16
    assert _read(tmp_path, CONF, "t.conf").plant(AssumedCabling(gpus_per_server=4, cables=3)).spines == 6


def test_spines_that_are_listed_one_by_one_are_the_spines(tmp_path):
    text = CONF + "SwitchName=spine2 Switches=leaf[0-1]\n"
    plant = _read(tmp_path, text, "t.conf").plant()
    assert plant.spine_names == ("spine", "spine2")
    with pytest.raises(FabricError, match="2 spines are listed, but 5"):
        _read(tmp_path, text, "t.conf").plant(AssumedCabling(spines=5))


def test_leafs_with_unequal_uplinks_are_told_with_their_line(tmp_path):
    text = CONF + "SwitchName=spine2 Switches=leaf0\n"
    with pytest.raises(FabricError, match=r"t\.conf: line 3: leaf 'leaf1' has 1 uplinks, but 'leaf0' \(line 2\) has 2"):
        _read(tmp_path, text, "t.conf").plant()


def test_pods_are_chosen_or_joined_but_never_by_chance(tmp_path):
    text = "SwitchName=a Nodes=g[0-1]\nSwitchName=b Nodes=g[2-3]\nSwitchName=c Nodes=g4\n"
    text += "SwitchName=p Switches=a,b\nSwitchName=q Switches=c\nSwitchName=top Switches=p,q\n"
    found = _read(tmp_path, text, "t.conf")
    assert found.pods() == ("p", "q")
    with pytest.raises(FabricError, match=r"below 2 switches \(p, q\)"):
        found.plant()
    assert found.plant(AssumedCabling(under="p")).servers == 4
    assert found.plant(AssumedCabling(under="top", join_pods=True)).servers == 5
    with pytest.raises(FabricError, match="no leaf is below a switch 'z'"):
        found.plant(AssumedCabling(under="z"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CONF.replace("004-005", "003-005"), "line 3: host 'gpu003' of leaf 'leaf1' is also on line 2, leaf 'leaf0'"),
        (CONF.replace("leaf[0-1]", "leaf[0-2]"), "line 5: switch 'spine' is above 'leaf2', which is not defined"),
        (CONF.replace("LinkSpeed", "Speed"), "line 2: the key 'speed' is unknown"),
        (CONF.replace("gpu[000-003]", "gpu[000-003"), "line 2: the brackets"),
        (CONF + "SwitchName=leaf0 Nodes=x\n", "line 6: switch 'leaf0' is also defined on line 2"),
        (CONF + "SwitchName=x\n", "line 6: leaf 'x' has no host"),
        (CONF + "Nodes=x\n", "line 6: a line begins with 'nodes'"),
        (CONF + "SwitchName=x Nodes=a Switches=leaf0\n", "lists nodes and switches"),
        (CONF + "SwitchName = x\n", "line 6: 'SwitchName' is not Key=value"),
        (CONF + "SwitchName=u Switches=v\nSwitchName=v Switches=u\n", "is above itself"),
        ("# nothing\n", "there is no leaf with hosts"),
    ],
)
def test_mistakes_in_topology_conf_are_told_with_their_line(tmp_path, text, message):
    with pytest.raises(FabricError, match=r"t\.conf: ") as problem:
        _read(tmp_path, text, "t.conf")
    assert message in str(problem.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TREE.replace("[004-005", "[003-005"), "line 9: host 'gpu003' of leaf 'leaf1' is also on line 8"),
        (TREE.replace("nodes: gpu[0", "node: gpu[0"), "line 10: a switch has the unknown key 'node'"),
        (TREE.replace("cluster_default: true", "cluster_default: false"), "is marked cluster_default: name one"),
        (TREE.replace("tree", "ring"), "is of type ring: only tree and block"),
        (TREE.replace("- {switch: leaf0,", "- {switch: leaf0, switch: x,"), "line 8: the key 'switch' is given twice"),
        (TREE.replace("children", "[children"), "fix the YAML"),
        ("- topology: a\n", "is of type nothing"),
        ("a: b\n", "line 1: the file is not a list"),
        ("", "0 documents"),
    ],
)
def test_mistakes_in_topology_yaml_are_told_with_their_line(tmp_path, text, message):
    with pytest.raises(FabricError, match=r"t\.yaml: ") as problem:
        _read(tmp_path, text, "t.yaml")
    assert message in str(problem.value)


def test_a_topology_is_chosen_by_name(tmp_path):
    both = TREE + BLOCK.replace("leaf1", "block1")
    assert "block1" in _read(tmp_path, both, "t.yaml", hints=Hints(topology="b")).leafs
    with pytest.raises(FabricError, match="no topology 'z': name one of other, fabric, b"):
        _read(tmp_path, both, "t.yaml", hints=Hints(topology="z"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HYPERNODES.replace("gpu004", "gpu001"), "host 'gpu001' of leaf 'leaf1' is also on line 1"),
        (HYPERNODES.replace("gpu004", "gpu009"), "line 15: 'gpu009' is not a known name"),
        (HYPERNODES.replace("^gpu00[0-3]$", "^x"), "line 7: the pattern '^x' matches no known name"),
        (HYPERNODES.replace("^gpu00[0-3]$", "("), "line 7: the pattern '(' cannot be read"),
        (HYPERNODES.replace("tier: 2", "tier: high"), "line 22: the tier is 'high'"),
        (HYPERNODES.replace("kind: HyperNode", "kind: Pod", 1), "line 1: this is a Pod"),
        (HYPERNODES.replace("type: HyperNode", "type: Switch"), "of type 'Switch'"),
        (HYPERNODES.replace("{exactMatch: {name: gpu004}}", "{}"), "line 15: a selector has"),
    ],
)
def test_mistakes_in_hypernodes_are_told_with_their_line(tmp_path, text, message):
    (tmp_path / "nodes").write_text(NODES)
    with pytest.raises(FabricError, match=r"h\.yaml: ") as problem:
        _read(tmp_path, text, "h.yaml", hints=Hints(nodes=read_nodes(tmp_path / "nodes")))
    assert message in str(problem.value)


def test_patterns_need_the_nodes_they_pick_from(tmp_path):
    with pytest.raises(FabricError, match=r"line 7: .*give the list of nodes"):
        _read(tmp_path, HYPERNODES, "h.yaml")


@pytest.mark.parametrize(
    ("expression", "leaf1"),
    [
        ("{key: rack, operator: In, values: [r1, r2]}", ("gpu004", "gpu005", "gpu007")),
        ("{key: rack, operator: NotIn, values: [r1]}", ("gpu000", "gpu001", "gpu002", "gpu003")),
        ("{key: zone, operator: Exists}", ("gpu004",)),
        ("{key: rack, operator: DoesNotExist}", ("gpu001", "gpu002", "gpu003")),
    ],
)
def test_labels_pick_as_kubernetes_does(tmp_path, expression, leaf1):
    (tmp_path / "nodes").write_text(NODES)
    text = HYPERNODES.split("---\n")[1].replace("    - {type: Node, selector: {exactMatch: {name: gpu004}}}\n", "")
    text = text.replace("{matchLabels: {rack: r1}}", f"{{matchExpressions: [{expression}]}}")
    found = _read(tmp_path, text, "h.yaml", hints=Hints(nodes=read_nodes(tmp_path / "nodes")))
    assert dict(found.leafs) == {"leaf1": leaf1}


def test_a_list_of_hypernodes_as_kubectl_prints_it_is_read(tmp_path):
    items = "".join("- " + one.replace("\n", "\n  ").rstrip() + "\n" for one in HYPERNODES.split("---\n"))
    (tmp_path / "nodes").write_text(NODES)
    found = _read(tmp_path, "kind: List\nitems:\n" + items, "h.yaml", hints=Hints(nodes=read_nodes(tmp_path / "nodes")))
    assert dict(found.leafs) == LEAFS


def test_lingjun_switches_of_one_name_in_two_pods_are_two_leafs(tmp_path):
    text = "ip,DSW,PSW,ASW\nh0,G,P0,S0\nh1,G,P1,S0\nh2,G,P0,S1\nh3,G,P0,S0\n"
    found = _read(tmp_path, text, "l.csv")
    assert dict(found.leafs) == {"G/P0/S0": ("h0", "h3"), "G/P1/S0": ("h1",), "G/P0/S1": ("h2",)}
    assert found.pods() == ("G/P0", "G/P1")
    by_switch = _read(tmp_path, text, "l.csv", hints=Hints(levels=("ASW",)))
    assert dict(by_switch.leafs) == {"S0": ("h0", "h1", "h3"), "S1": ("h2",)}


def test_kueue_labels_are_levels_from_the_outside_in(tmp_path):
    text = "cloud/block,cloud/rack,kubernetes.io/hostname\nb0,r0,n0\nb1,r0,n1\nb0,r0,n2\n"
    assert dict(_read(tmp_path, text, "k.csv").leafs) == {"b0/r0": ("n0", "n2"), "b1/r0": ("n1",)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("server,leaf\na,x\nb,y\na,y\n", "line 4: host 'a' of leaf 'y' is also on line 2, leaf 'x'"),
        ("server,leaf,colour\na,x,red\n", "line 1: the columns colour are unknown"),
        ("server,leaf\na\n", "line 2: there are 1 fields too few"),
        ("server,leaf\na,\n", "line 2: the column 'leaf' is empty"),
        ("server,leaf,leaf\na,x,x\n", "'leaf' occurs twice"),
        ("server,leaf\n", "there is no leaf with hosts"),
        ("", "is empty"),
    ],
)
def test_mistakes_in_leaf_tables_are_told_with_their_line(tmp_path, text, message):
    with pytest.raises(FabricError, match=r"l\.csv") as problem:
        _read(tmp_path, text, "l.csv")
    assert message in str(problem.value)


def test_files_of_unknown_kind_are_refused(tmp_path):
    with pytest.raises(FabricError, match=r"extension '\.txt'"):
        _read(tmp_path, CSV, "l.txt")
    assert dict(_read(tmp_path, CSV, "l.txt", format_name="leaf-csv").leafs) == LEAFS
    with pytest.raises(FabricError, match="does not exist"):
        read_plant(tmp_path / "none.conf")


def test_cabling_that_cannot_be_is_refused():
    with pytest.raises(FabricError, match="spines is 0"):
        AssumedCabling(spines=0)
