"""Every reader of files, with a sound file of its own to damage."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzz.mutations import changed_json, mutated
from fuzz.sound_files import SOUND


@dataclass(frozen=True)
class Reader:
    """Files that belong together, and how they are read."""

    name: str
    files: dict[str, bytes]
    read: Callable[[Path], object]
    """Called with the folder that the files are in."""
    sealed: Callable[[bytes], bytes] | None = None
    """Makes the checksum of a changed document right again, so that what is behind it is tested too."""

    def damage(self, case: int, folder: Path) -> None:
        """Write the files, one of them after an accident that follows from the number of the case."""
        random = Random(f"{self.name} {case}")
        hit = random.choice(list(self.files))
        for name, data in self.files.items():
            changed = self._damaged(name, data, random) if name == hit else data
            (folder / name).write_bytes(changed)

    def _damaged(self, name: str, data: bytes, random: Random) -> bytes:
        document = name.endswith((".json", ".yaml")) and data[:1] in b"{["
        if document and random.random() < 0.6:
            changed = changed_json(data, random)
            return self.sealed(changed) if self.sealed and random.random() < 0.8 else changed
        return mutated(data, random)


def readers(folder: Path, only: str = "") -> list[Reader]:
    """All of them, or those whose names contain something; sound files are made by what writes them."""
    found = []
    for name, make in SOUND.items():
        if only not in name:
            continue
        place = folder / name
        place.mkdir()
        read = make(place)
        sealed = None
        if isinstance(read, tuple):
            read, sealed = read
        files = {path.name: path.read_bytes() for path in sorted(place.iterdir()) if path.is_file()}
        read(place)  # a sound file is read
        found.append(Reader(name, files, read, sealed))
    return found


def as_json(document: object) -> bytes:
    return json.dumps(document).encode()
