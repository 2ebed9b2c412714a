"""Paths at which no Unix socket can be made are refused before the service starts."""

from pathlib import Path

import pytest

from ropewalk.errors import InputError
from ropewalk.serve.http.server import Listening, bound


@pytest.mark.parametrize(
    ("name", "said"),
    [("x" * 200, "more than 107 bytes"), ("file/s.sock", "cannot be used"), ("file", "is not a socket")],
)
def test_a_socket_that_cannot_be_is_refused(tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=said):
        bound(Listening(host=None, socket=Path(name)))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
