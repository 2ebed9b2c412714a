"""One door to every model."""

import re
from pathlib import Path

import pytest

from ropewalk.errors import WorkloadError
from ropewalk.workload.files import write_workload
from ropewalk.workload.source import open_workload
from ropewalk.workload.zoo import build

PROFILES = Path(__file__).parents[2] / "data" / "profiles"


def test_a_name_of_the_zoo_is_built_for_the_batch_and_the_sequence() -> None:
    assert open_workload("gpt2", batch=2, sequence=128) == build("gpt2", batch=2, sequence=128)
    assert open_workload("resnet50").batch == 1


def test_options_reach_the_zoo() -> None:
    assert open_workload("resnet50", batch=1, side=160) == build("resnet50", batch=1, side=160)


def test_a_profile_is_scaled_from_the_batch_in_its_name() -> None:
    assert open_workload(str(PROFILES / "tiny-pbs-4.txt")).batch == 4
    assert open_workload(str(PROFILES / "tiny-pbs-4.txt"), batch=16).layers[1].output_elements == 4000


def test_a_profile_without_a_batch_in_its_name_was_measured_with_the_one_given() -> None:
    assert open_workload(str(PROFILES / "conv.txt"), batch=128).batch == 128


def test_a_workload_file_keeps_its_batch(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    write_workload(build("alexnet", batch=4), path)
    assert open_workload(str(path), batch=4) == build("alexnet", batch=4)
    with pytest.raises(WorkloadError, match="is fixed at micro-batches of 4"):
        open_workload(str(path), batch=8)


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("net.py", {}, "may hold several models: name one, like net.py:Net"),
        ("net.py:", {}, "may hold several models: name one, like net.py:Net"),
        ("nowhere.txt", {}, "nowhere.txt does not exist: check the path"),
        ("nowhere.onnx", {"side": 3}, "nowhere.onnx does not take side"),
        ("nowhere.yaml", {}, "does not exist: check the path"),
        (str(PROFILES / "tiny-pbs-4.txt"), {"sequence": 7}, "fixed length: leave 7 out"),
        ("gpt2", {"batch": 0}, "a batch of 0 is invalid: give 1 or more"),
        ("no-such-model", {}, "no-such-model"),
    ],
)
def test_what_cannot_be_opened_says_why(text: str, options: dict[str, int], reason: str) -> None:
    with pytest.raises(WorkloadError, match=re.escape(reason)):
        open_workload(text, **options)  # type: ignore[arg-type]


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"")
    with pytest.raises(WorkloadError, match=r"extension '.bin'.*is unknown: give a file.py:Name, .onnx, .txt"):
        open_workload(str(path))


def test_the_files_in_the_documentation_can_be_opened(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "models.md").read_text()
    opened = []
    for name, language in (("net.yaml", "yaml"), ("net-pbs-4.txt", "text")):
        (text,) = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
        (tmp_path / name).write_text(text)
        opened.append([layer.name for layer in open_workload(str(tmp_path / name)).layers])
    assert opened == [["hidden", "head"], ["stem", "head"]]
