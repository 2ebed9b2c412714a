import os

import pytest

from ropewalk.export.run_folder import _take_place


def test_a_folder_is_there_until_the_new_one_is(tmp_path, monkeypatch):
    target, made = tmp_path / "job", tmp_path / ".job.x"
    for folder, text in ((target, "old"), (made, "new")):
        folder.mkdir()
        (folder / "run.sh").write_text(text)
    replace = os.replace

    def interrupted(source, to):
        if source == made:
            raise KeyboardInterrupt
        replace(source, to)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _take_place(made, target)
    assert (target / "run.sh").read_text() == "old"
    monkeypatch.undo()
    _take_place(made, target)
    assert (target / "run.sh").read_text() == "new"
    assert os.listdir(tmp_path) == ["job"]
