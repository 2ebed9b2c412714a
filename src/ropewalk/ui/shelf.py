"""Answers that are kept: a folder for each, by the key of its question, the least recently used ones removed.

What is damaged on the disk is as if it had never been kept: the question is answered again.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import shutil
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from ropewalk.documents import parse_json, read_bytes, read_text
from ropewalk.documents.sealed import read_sealed, sealed
from ropewalk.errors import InputError
from ropewalk.files import write_whole
from ropewalk.ui.asked import Asked

KEY = re.compile(r"[0-9a-f]{32}")
QUESTION, ANSWER, PAGE, PLAN, EXPORT = "question.json", "answer.json", "page.html", "plan.json", "export.zip"
MOST_ANSWERS = 500
SECRET, KEPT = ".secret", "kept"
SECRET_TEXT = re.compile(r"[0-9a-f]{64}")
LONGEST_SECRET, MOST_KEPT = 1000, 10**9


class Shelf:
    """Answers in a folder."""

    def __init__(self, folder: Path, most: int = MOST_ANSWERS) -> None:
        self._folder, self._most = folder, most
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._secret = _secret_in(folder / SECRET)

    def keep(self, asked: Asked, answer: str, folder: Path, seconds: float) -> None:
        """Keep what a command printed and wrote; it is there whole or not at all."""
        place = self._folder / asked.key
        making = self._folder / f".{asked.key}.{secrets.token_hex(4)}"
        making.mkdir()
        write_whole(making / ANSWER, answer)
        for name in (PAGE, PLAN, EXPORT):
            if (folder / name).is_file():
                shutil.copyfile(folder / name, making / name)
        for name, content in asked.files.items():
            (making / f"file-{name}").write_bytes(content)
        kept = {name: _digest(making / name) for name in (ANSWER, PAGE, PLAN, EXPORT) if (making / name).is_file()}
        question = asked.as_document() | {"asked_at": time.time(), "seconds": seconds, KEPT: kept}
        write_whole(making / QUESTION, json.dumps(sealed(question)))
        shutil.rmtree(place, ignore_errors=True)
        making.rename(place)
        self._make_room()

    def has(self, key: str) -> bool:
        return bool(KEY.fullmatch(key)) and _question_in(self._folder / key) is not None

    def question(self, key: str) -> dict[str, Any]:
        """What was asked, when, and how long it took."""
        place = self._path(key, QUESTION).parent
        os.utime(place)
        found = _question_in(place)
        if found is None:
            raise KeyError(key)
        return found

    def answer(self, key: str) -> Any:
        """What the command printed, as JSON."""
        subject = f"answer {key}"
        return parse_json(read_text(self._path(key, ANSWER), subject, InputError), subject, InputError)

    def page(self, key: str) -> Path | None:
        path = self._path(key, PAGE)
        return path if path.is_file() else None

    def plan(self, key: str) -> Path | None:
        path = self._path(key, PLAN)
        return path if path.is_file() else None

    def export(self, key: str) -> Path | None:
        path = self._path(key, EXPORT)
        return path if path.is_file() else None

    def recent(self, most: int = 20) -> list[dict[str, Any]]:
        """The latest questions, newest first."""
        found = []
        for place in reversed(self._by_use()):
            question = None if (place / EXPORT).exists() else _question_in(place)
            if question is not None:
                found.append({"id": place.name, **question})
            if len(found) == most:
                break
        return found

    def sign(self, key: str) -> str:
        """What a link to a page carries, so that frames and people without a token can open this one page."""
        return hmac.new(self._secret, key.encode(), "sha256").hexdigest()[:32]

    def is_signed(self, key: str, signature: str) -> bool:
        return hmac.compare_digest(self.sign(key).encode(), signature.encode())

    def _path(self, key: str, name: str) -> Path:
        if not self.has(key):
            raise KeyError(key)
        return self._folder / key / name

    def _by_use(self) -> list[Path]:
        """The folders of all answers, the least recently used first."""
        places = [one for one in self._folder.iterdir() if KEY.fullmatch(one.name) and one.is_dir()]
        return sorted(places, key=lambda place: place.stat().st_mtime)

    def _make_room(self) -> None:
        places = self._by_use()
        for place in places[: max(0, len(places) - self._most)]:
            shutil.rmtree(place, ignore_errors=True)


def _secret_in(path: Path) -> bytes:
    """What links are signed with; a new one where there is none, or where it is damaged."""
    try:
        text = read_text(path, "the secret", InputError, LONGEST_SECRET).strip()
    except InputError:
        text = ""
    if not SECRET_TEXT.fullmatch(text):
        text = secrets.token_hex(32)
        write_whole(path, text)
        os.chmod(path, 0o600)
    return text.encode()


def _question_in(place: Path) -> dict[str, Any] | None:
    """What was asked, if everything that was kept with it is there as it was written."""
    try:
        found = read_sealed(place / QUESTION, "a kept answer", InputError, "ask again")
        kept = found.pop(KEPT)
        intact = kept and all(_digest(place / name) == digest for name, digest in kept.items())
    except (InputError, KeyError, AttributeError):
        return None
    return found if intact else None


def _digest(path: Path) -> str:
    return sha256(read_bytes(path, "a kept answer", InputError, MOST_KEPT)).hexdigest()
