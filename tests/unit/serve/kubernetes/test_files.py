"""Files for Kubernetes: read back by the importer, and with the fields that Kueue and Volcano document."""

import re

import pytest
import yaml

from ropewalk.errors import ClusterError, InputError
from ropewalk.serve.kubernetes.files import KubernetesSite, kubernetes_files, write_kubernetes_files
from ropewalk.tenancy.imports import AssumedCabling, read_plant
from ropewalk.tenancy.plant import Plant, plant

SMALL = plant("leaf-spine:4x8x16", gpus_per_server=8)
LABEL_KEY = re.compile(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
"""As the schema of Kueue's Topology has it."""


def documents(name):
    return list(yaml.safe_load_all(kubernetes_files(SMALL, KubernetesSite())[name]))


def test_hypernodes_read_back_as_the_same_plant(tmp_path):
    path = tmp_path / "hypernodes.yaml"
    path.write_text(kubernetes_files(SMALL, KubernetesSite())["volcano-hypernodes.yaml"])
    again = read_plant(path, AssumedCabling(gpus_per_server=8, spines=8))
    assert again.server_names == SMALL.server_names
    assert again.leaf_names == SMALL.leaf_names
    assert (again.server_leaf == SMALL.server_leaf).all()


def test_hypernodes_have_the_fields_of_volcano_and_no_others():
    for one in documents("volcano-hypernodes.yaml"):
        assert one["apiVersion"] == "topology.volcano.sh/v1alpha1"
        assert one.keys() == {"apiVersion", "kind", "metadata", "spec"}
        assert one["spec"].keys() == {"tier", "tierName", "members"}
        for member in one["spec"]["members"]:
            assert member.keys() == {"type", "selector"}
            assert member["type"] in ("Node", "HyperNode")
            assert member["selector"].keys() == {"exactMatch"}


def test_kueues_topology_keeps_the_rules_of_its_schema():
    topology, flavor = documents("kueue.yaml")
    assert (topology["kind"], flavor["kind"]) == ("Topology", "ResourceFlavor")
    labels = [level["nodeLabel"] for level in topology["spec"]["levels"]]
    assert 1 <= len(labels) <= 8
    assert len(set(labels)) == len(labels)
    assert all(LABEL_KEY.fullmatch(label) and len(label) <= 316 for label in labels)
    assert "kubernetes.io/hostname" not in labels[:-1]
    assert flavor["spec"]["topologyName"] == topology["metadata"]["name"]
    assert flavor["spec"]["nodeLabels"]


def test_every_node_has_the_labels_that_the_others_speak_of():
    topology, flavor = documents("kueue.yaml")
    nodes = documents("node-labels.yaml")
    assert [node["metadata"]["name"] for node in nodes] == list(SMALL.server_names)
    for node in nodes:
        labels = node["metadata"]["labels"]
        assert flavor["spec"]["nodeLabels"].items() <= labels.items()
        assert topology["spec"]["levels"][0]["nodeLabel"] in labels


def test_the_extender_has_the_fields_of_kube_schedulers_configuration():
    (config,) = documents("kube-scheduler.yaml")
    assert config["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    (extender,) = config["extenders"]
    assert extender.keys() <= {
        "urlPrefix", "filterVerb", "preemptVerb", "prioritizeVerb", "weight", "bindVerb", "enableHTTPS", "tlsConfig",
        "httpTimeout", "nodeCacheCapable", "managedResources", "ignorable",
    }  # fmt: skip
    assert "preemptVerb" not in extender
    assert extender["weight"] > 0


def test_names_that_kubernetes_does_not_take_are_refused(tmp_path):
    odd = Plant("odd", 1, [0], [[1]], server_names=("Node_1",), leaf_names=("Leaf 1",), spine_names=("s",))
    with pytest.raises(ClusterError, match="lowercase letters"):
        kubernetes_files(odd, KubernetesSite())
    with pytest.raises(ClusterError, match="http://HOST:PORT"):
        KubernetesSite(url="ftp://x")
    (tmp_path / "f").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        write_kubernetes_files(kubernetes_files(SMALL, KubernetesSite()), tmp_path / "f")
