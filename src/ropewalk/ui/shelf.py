"""Answers that are kept: a folder for each, by the key of its question, the least recently used ones removed."""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import shutil
import time
from pathlib import Path
from typing import Any

from ropewalk.documents import parse_json
from ropewalk.errors import InputError
from ropewalk.files import write_whole
from ropewalk.ui.asked import Asked

KEY = re.compile(r"[0-9a-f]{32}")
QUESTION, ANSWER, PAGE, PLAN, EXPORT = "question.json", "answer.json", "page.html", "plan.json", "export.zip"
MOST_ANSWERS = 500
SECRET = ".secret"


class Shelf:
    """Answers in a folder."""

    def __init__(self, folder: Path, most: int = MOST_ANSWERS) -> None:
        self._folder, self._most = folder, most
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        secret = folder / SECRET
        if not secret.exists():
            write_whole(secret, secrets.token_hex(32))
            os.chmod(secret, 0o600)
        self._secret = secret.read_text().strip().encode()

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
        write_whole(making / QUESTION, json.dumps(asked.as_document() | {"asked_at": time.time(), "seconds": seconds}))
        shutil.rmtree(place, ignore_errors=True)
        making.rename(place)
        self._make_room()

    def has(self, key: str) -> bool:
        return bool(KEY.fullmatch(key)) and (self._folder / key / QUESTION).is_file()

    def question(self, key: str) -> dict[str, Any]:
        """What was asked, when, and how long it took."""
        self._touch(key)
        return self.question_of(self._path(key, QUESTION).parent)

    def answer(self, key: str) -> Any:
        """What the command printed, as JSON."""
        return parse_json(self._path(key, ANSWER).read_text(), f"answer {key}", InputError)

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
        places = [place for place in self._places() if not (place / EXPORT).exists()]
        places = sorted(places, key=lambda place: place.stat().st_mtime, reverse=True)[:most]
        return [{"id": place.name, **self.question_of(place)} for place in places]

    @staticmethod
    def question_of(place: Path) -> dict[str, Any]:
        found = parse_json((place / QUESTION).read_text(), "a kept answer", InputError)
        if not isinstance(found, dict):
            raise InputError(f"{place / QUESTION} is no question: remove its folder")
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

    def _touch(self, key: str) -> None:
        os.utime(self._path(key, QUESTION).parent)

    def _places(self) -> list[Path]:
        return [one for one in self._folder.iterdir() if KEY.fullmatch(one.name) and (one / QUESTION).is_file()]

    def _make_room(self) -> None:
        places = sorted(self._places(), key=lambda place: place.stat().st_mtime)
        for place in places[: max(0, len(places) - self._most)]:
            shutil.rmtree(place, ignore_errors=True)
