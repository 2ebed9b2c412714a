"""The same data-parallel question through every command: the same cluster, the same batch, the same time.

What commands decide differently has a name and an option (docs/validation.md, "One question, one answer").
"""

import json

import pytest

VGG16 = ("vgg16", "--cluster", "4x8", "--device", "a100", "--bandwidth", "25Gbps", "--batch", 1024)
"""32 samples on each of 32 GPUs, a NIC of 25 Gbps each."""
ONE_MICRO_BATCH = ("--micro-batch", 1024, "--schedule", "1f1b", "--recompute", "never")


@pytest.fixture
def ask(ropewalk):
    def asked(command, *arguments):
        answer = ropewalk(command, *arguments, "--json")
        assert answer.code == 0, answer.stderr
        return json.loads(answer.stdout)

    return asked


def way(found, name):
    return next(row["step_time_s"] for row in found["alternatives"] if row["name"] == name)


def test_vgg16_on_32_gpus_takes_as_long_through_simulate_overlap_and_pipeline(ask):
    simulated = ask("simulate", *VGG16)
    ordered = ask("overlap", *VGG16)
    cut = ask("pipeline", *VGG16, *ONE_MICRO_BATCH)
    assert simulated["cluster"] == ordered["cluster"] == cut["cluster"]
    assert simulated["global_batch"] == cut["global_batch"] == ordered["global_batch"] == 1024
    assert simulated["cluster"]["servers"][0]["nics"] == 8
    assert way(ordered, "buckets") == pytest.approx(simulated["step_time_s"], rel=1e-9)
    assert way(cut, "data-parallel") == pytest.approx(simulated["step_time_s"], rel=1e-9)
    # Every tensor on its own is an order that simulate knows, too.
    fifo = ask("simulate", *VGG16, "--order", "fifo")
    assert way(ordered, "fifo") == pytest.approx(fifo["step_time_s"], rel=1e-9)
    # What is chosen is never slower than plain data parallelism.
    assert ordered["step_time_s"] <= simulated["step_time_s"] * (1 + 1e-9)
    assert cut["step_time_s"] <= simulated["step_time_s"] * (1 + 1e-9)


@pytest.mark.parametrize(
    "changes",
    [
        ("--nics", "1"),
        ("--optimiser", "none"),
        ("--hop-latency", "5us"),
        ("--rails",),
        ("--fabric", "fat-tree"),
        ("--launch", "0us", "--round-latency", "0us", "--efficiency", "1"),
    ],
    ids=" ".join,
)
def test_an_option_means_the_same_in_simulate_and_overlap(ask, changes):
    question = ("resnet18", "--cluster", "2x4", "--device", "a100", "--bandwidth", "10Gbps", "--batch", 64, *changes)
    simulated, ordered = ask("simulate", *question), ask("overlap", *question)
    assert simulated["cluster"] == ordered["cluster"]
    assert way(ordered, "buckets") == pytest.approx(simulated["step_time_s"], rel=1e-9)


def test_a_file_a_preset_and_options_that_say_the_same_give_the_same_time(ask, tmp_path):
    (tmp_path / "pod.yaml").write_text("device: h100\nservers: [{count: 2, gpus: 8}]\nrails: true\n")
    spellings = (
        ("--cluster", tmp_path / "pod.yaml"),
        ("--cluster", "dgx-h100:2"),
        ("--cluster", "2x8", "--device", "h100", "--rails"),
        ("--gpus", 16, "--device", "h100", "--rails", "--nics", 8, "--bandwidth", "400Gbps"),
    )
    found = [ask("simulate", "resnet18", "--batch", 64, *spelling) for spelling in spellings]
    assert len({json.dumps(one["cluster"], sort_keys=True) for one in found}) == 1
    assert len({one["step_time_s"] for one in found}) == 1
