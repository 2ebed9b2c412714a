"""Names that no file system takes are refused wherever a path is given."""

import pytest

LONG = "x" * 300
PLANT = "--fabric leaf-spine:2x4x4 --gpus-per-server 2"


@pytest.mark.parametrize(
    "line",
    [
        f"serve kubernetes-files --to {LONG} {PLANT}",
        f"serve slurm-files --to {LONG} {PLANT}",
        f"serve token list --database {LONG}",
        f"serve token add --role read --name a --database {LONG}",
        f"serve backup {LONG} --database {LONG}",
        f"cluster explain {LONG} --state {LONG}",
        f"cluster explain --gpus 2 --state {LONG}",
        f"cluster rules a --to {LONG} --state {LONG}",
        f"cluster status --state {LONG}",
        f"cluster allocate --gpus 2 --save {LONG} {PLANT}",
        f"cluster submit a --gpus 2 --state {LONG} {PLANT}",
    ],
)
def test_a_name_of_300_letters_is_refused(ropewalk, line):
    refused = ropewalk(*line.split())
    assert (refused.code, refused.stdout) == (2, ""), refused.stderr
    assert refused.stderr.startswith("ropewalk: ") or "\nropewalk: " in refused.stderr
