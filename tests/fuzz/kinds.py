"""All kinds of cases: a name, and what a case of this kind does, by its number."""

from fuzz import commands
from fuzz.readers import readers


def kinds_of_cases(place, what="all", only=""):
    """(name, attempt) of every reader and every command, ready to be run."""
    found = []
    if what in ("all", "readers"):
        (place / "sound").mkdir()
        (place / "damaged").mkdir()
        found += [(one.name, _reading(one, place / "damaged")) for one in readers(place / "sound", only)]
    if what in ("all", "commands"):
        (place / "asked").mkdir()
        for one in commands.commands(place / "asked"):
            name = f"ropewalk {' '.join(one.words)}"
            if only in name:
                commands.warmed(one)
                found.append((name, _calling(one)))
    return found


def _reading(reader, place):
    folder = place / reader.name
    folder.mkdir()

    def attempt(case):
        reader.damage(case, folder)
        reader.read(folder)

    return attempt


def _calling(command):
    def attempt(case):
        command.prepare()
        commands.run(command.call(case))

    return attempt
