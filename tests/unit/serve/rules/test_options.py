"""`ropewalk serve --driver` refuses what cannot work, before anything is written."""

import pytest

pytest.importorskip("litestar", reason="the service needs the extra `serve`")
FABRIC = ("--fabric", "leaf-spine:2x4x4", "--gpus-per-server", "1", "--no-auth")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--driver", "linux"], "give --driver-option lab=NAME or reach="),
        (["--driver", "lunix"], "did you mean linux"),
        (["--driver", "files", "--driver-option", "folder"], "is not KEY=VALUE"),
        (["--driver", "files", "--driver-option", "folder=x"], "rules need addresses"),
        (["--driver", "linux", "--driver-option", "lab=nowhere"], "there is no lab 'nowhere'"),
        (["--driver", "files", "--driver-option", "folder=/proc/nowhere", "--addresses", "numbered"], "cannot write"),
        (["--driver-option", "folder=x"], "give --driver"),
        (["--reconcile-every", "0s"], "give a time above 0s"),
        (["--driver", "optical", "--driver-option", "folder=x", "--addresses", "numbered"], "has no optical switches"),
    ],
)
def test_drivers_that_cannot_work_are_refused(ropewalk, tmp_path, monkeypatch, given, said):
    monkeypatch.setenv("ROPEWALK_LABS", str(tmp_path / "labs"))
    answer = ropewalk("serve", *FABRIC, "--port", "0", "--database", tmp_path / "serve.db", *given)
    assert answer.code == 2
    assert said in answer.stderr
    assert not (tmp_path / "x").exists()


def test_drivers_are_listed(ropewalk):
    listed = ropewalk("list", "drivers", "--json").json["drivers"]
    assert [one["name"] for one in listed] == ["linux", "frr", "sonic", "optical", "files"]
    assert "lab" in listed[0]["options"]
