from __future__ import annotations

import os
import shutil

import pytest

from ropewalk.ui.asked import Asked
from ropewalk.ui.shelf import Shelf


def kept(shelf, tmp_path, number=0):
    asked = Asked(("plan",), (f"gpt{number}",))
    folder = tmp_path / f"run{number}"
    folder.mkdir()
    (folder / "page.html").write_text("<p>page</p>")
    shelf.keep(asked, '{"step_time_s": 1.5}', folder, 0.25)
    return asked.key


def test_an_answer_is_found_again_with_its_page_and_question(tmp_path):
    shelf = Shelf(tmp_path / "shelf")
    key = kept(shelf, tmp_path)
    again = Shelf(tmp_path / "shelf")
    assert again.has(key)
    assert again.answer(key) == {"step_time_s": 1.5}
    assert again.page(key).read_text() == "<p>page</p>"
    assert again.plan(key) is None
    assert again.recent()[0]["command_line"] == "ropewalk plan gpt0"


@pytest.mark.parametrize("key", ["", "..", "../../etc", "0" * 31, "g" * 32, "0" * 32])
def test_keys_that_are_none_find_nothing(tmp_path, key):
    shelf = Shelf(tmp_path)
    assert not shelf.has(key)
    with pytest.raises(KeyError):
        shelf.answer(key)


@pytest.mark.parametrize("name", ["question.json", "answer.json", "page.html"])
@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff\xfe", b'{"step_time_s": 1.4}', None])
def test_an_answer_that_is_damaged_was_never_kept_and_can_be_kept_again(tmp_path, name, content):
    shelf = Shelf(tmp_path / "shelf")
    key, whole = kept(shelf, tmp_path), kept(shelf, tmp_path, 1)
    damaged = tmp_path / "shelf" / key / name
    damaged.unlink() if content is None else damaged.write_bytes(content)
    again = Shelf(tmp_path / "shelf")
    assert not again.has(key)
    assert [one["id"] for one in again.recent()] == [whole]
    shutil.rmtree(tmp_path / "run0")
    assert kept(again, tmp_path) == key
    assert again.answer(key) == {"step_time_s": 1.5}
    assert again.page(key).read_text() == "<p>page</p>"


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 64])
def test_a_damaged_secret_is_made_anew(tmp_path, content):
    (tmp_path / ".secret").write_bytes(content)
    shelf = Shelf(tmp_path)
    assert len((tmp_path / ".secret").read_text()) == 64
    assert Shelf(tmp_path).is_signed("k", shelf.sign("k"))
    assert os.stat(tmp_path / ".secret").st_mode & 0o077 == 0


def test_links_are_signed_by_a_secret_that_stays(tmp_path):
    shelf = Shelf(tmp_path)
    assert Shelf(tmp_path).is_signed("k", shelf.sign("k"))
    assert not shelf.is_signed("k", shelf.sign("other"))
    assert not shelf.is_signed("k", "ü")
    assert os.stat(tmp_path / ".secret").st_mode & 0o077 == 0


def test_the_least_recently_used_answers_make_room(tmp_path):
    shelf = Shelf(tmp_path / "shelf", most=2)
    keys = []
    for number in range(3):
        keys.append(kept(shelf, tmp_path, number))
        os.utime(tmp_path / "shelf" / keys[-1], (number, number))
    assert [shelf.has(key) for key in keys] == [False, True, True]
