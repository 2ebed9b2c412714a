"""`ropewalk cost`: what it writes besides what it prints."""

from __future__ import annotations


def test_a_model_written_as_a_workload_file_costs_the_same(ropewalk, tmp_path):
    written = ropewalk("cost", "alexnet", "--batch", 4, "--workload", tmp_path / "net.yaml", "--json")
    assert written.code == 0, written.stderr
    assert ropewalk("cost", tmp_path / "net.yaml", "--batch", 4, "--json").json == written.json


def test_a_workload_file_of_an_unknown_kind_or_over_what_is_read_is_refused(ropewalk, tmp_path):
    unknown = ropewalk("cost", "alexnet", "--workload", tmp_path / "net.toml")
    assert (unknown.code, unknown.stdout) == (2, "")
    assert "use .yaml, .yml or .json" in unknown.stderr
    ropewalk("cost", "alexnet", "--workload", tmp_path / "net.json")
    over = ropewalk("cost", tmp_path / "net.json", "--workload", tmp_path / "net.json")
    assert over.code == 2
    assert "this command reads it" in over.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["net.json"]


def test_a_step_that_does_not_fit_is_refused_with_a_batch_that_does(ropewalk):
    refused = ropewalk("cost", "gpt2", "--batch", 100_000)
    assert refused.code == 2
    most = int(refused.stderr.partition("give --batch ")[2].partition(",")[0])
    fits = ropewalk("cost", "gpt2", "--batch", most, "--json").json
    assert fits["memory_bytes"] <= fits["memory_capacity_bytes"]
    assert ropewalk("cost", "gpt2", "--batch", most + 1).code == 2
    assert ropewalk("cost", "gpt2", "--batch", 100_000, "--no-memory-check").code == 0


def test_a_step_on_one_gpu_needs_the_memory_of_the_simulated_step(ropewalk):
    alone = ropewalk("cost", "gpt2", "--batch", 8, "--json").json
    simulated = ropewalk("simulate", "gpt2", "--cluster", "1x1", "--batch", 8, "--json").json
    assert alone["memory_bytes"] == simulated["memory_bytes"]


def test_a_step_carries_an_interval_that_names_what_was_never_checked(ropewalk):
    found = ropewalk("cost", "llava-1.5-7b:layers=2", "--batch", 1, "--json").json
    assert found["interval"]["low_s"] < found["step_time_s"] < found["interval"]["high_s"]
    assert "image encoders" in found["interval"]["outside"]
    assert "interval of the step: " in ropewalk("cost", "gpt2").stdout


def test_every_study_of_steps_prints_the_interval(ropewalk):
    for study in (("pipeline", "gpt2"), ("overlap", "alexnet")):
        shown = ropewalk(*study, "--cluster", "1x2", "--batch", 8)
        assert "\ninterval: " in shown.stdout, shown.stderr
        found = ropewalk(*study, "--cluster", "1x2", "--batch", 8, "--json").json
        assert found["interval"]["low_s"] < found["step_time_s"] < found["interval"]["high_s"]
    wired = ("plan", "vgg16", "--servers", 4, "--degree", 2, "--gpus-per-server", 2, "--device", "a100")
    found = ropewalk(*wired, "--bandwidth", "100Gbps", "--json").json
    assert found["interval"]["low_s"] is None
    assert "no comparable runs were checked (models of images" in found["interval"]["why"]


def test_an_optimiser_that_does_not_exist_is_refused(ropewalk):
    refused = ropewalk("cost", "gpt2", "--optimiser", "adam")
    assert (refused.code, refused.stdout) == (2, "")
    assert "there is no optimiser 'adam': use one of " in refused.stderr
