"""What may have happened to a file: bits flip, lines go missing, numbers become absurd, values change their kind."""

import copy
import gzip
import json
import re

BYTES = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\n",
    b"\r\n",
    b"[" * 2000,
    b"{" * 300,
    b"\xef\xbb\xbf",
    b"\x1f\x8b",
    b"<!--",
    b"&a *a",
)
NUMBERS = (
    "0", "-1", "1", "2", "3", "7", "1_000", "١٢", "１２", "1e308", "1e400", "-0.0", "nan", "NaN", "inf", "Infinity",
    "2147483648", "4294967296", "9223372036854775808", "99999999", "9" * 30, "9" * 5000, "0x10", "010", "1.5", "",
    "00000000000", "1e-400", "10**9", "+5", " 7 ", "1/0",
)  # fmt: skip
TEXTS = (
    "", "x", "x" * 300, "a\0b", "a/../../b", "..", "-", ":", ",", ";", "\u202e", "é" * 200, "[0-9]", "h[0-99999999]",
    "%s", "{}", "nan", "None", "true", "100Gbps", "-5Gbps", "1e30Gbps", "0B", "10us", "\ud800", "\x1b[2J", "h0", "0",
)  # fmt: skip
VALUES = (
    None, True, False, 0, -1, 1, 2, 2**31, 2**63, 2**64, 10**25, 0.5, -0.5, 1e308, 1e-308, "", "x", "x" * 300, [], {},
    [[]], [0], [None], {"x": 1}, [1, 2, 3], "inf", "nan", "100Gbps", "\u202e", [[[[[[[0]]]]]]],
)  # fmt: skip
_NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)?")


def flipped(data, random):
    """A bit is wrong, or several."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 4, 32))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def cut(data, random):
    """The end is missing."""
    return data[: random.randrange(len(data) + 1)]


def lost(data, random):
    """A stretch is missing, or there twice, or somewhere else."""
    start, end = sorted(random.randrange(len(data) + 1) for _ in range(2))
    end = min(end, start + random.choice((1, 8, 200)))
    rest = data[:start] + data[end:]
    at = random.randrange(len(rest) + 1)
    return random.choice((rest, data[:end] + data[start:], rest[:at] + data[start:end] + rest[at:]))


def spliced(data, random):
    """Something stands in it that does not belong there."""
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(BYTES) + data[at + random.choice((0, 0, 1, 5)) :]


def renumbered(data, random):
    """A number is another one, or none."""
    found = list(_NUMBER.finditer(data))
    if not found:
        return flipped(data, random)
    one = random.choice(found)
    return data[: one.start()] + random.choice(NUMBERS).encode() + data[one.end() :]


def rearranged(data, random):
    """Lines are missing, there twice, or in another order."""
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return lost(data, random)
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = random.choice(
        ((lines[other], lines[one]), (lines[one], lines[one]), (b"", lines[other]))
    )
    return b"".join(lines)


def rewritten(data, random):
    """Words are other words."""
    words = re.split(rb"([\w.-]+)", data)
    if len(words) < 3:
        return spliced(data, random)
    at = random.randrange(1, len(words), 2)
    other = words[random.randrange(1, len(words), 2)]
    words[at] = random.choice((other, random.choice(TEXTS).encode("utf-8", "surrogatepass")))
    return b"".join(words)


def packed(data, random):
    """The file was packed, and perhaps damaged since."""
    made = gzip.compress(data, mtime=0)
    return random.choice(
        (lambda: made, lambda: flipped(made, random), lambda: cut(made, random), lambda: made + b"x")
    )()


OF_BYTES = (flipped, cut, lost, spliced, renumbered, renumbered, rearranged, rewritten, rewritten, packed)


def mutated(data, random):
    """The bytes after one or two accidents."""
    for _ in range(random.choice((1, 1, 2))):
        data = random.choice(OF_BYTES)(data, random)
    return data


def changed_document(document, random):
    """The document after a value somewhere inside has become another, gone missing, or come twice."""
    changed = copy.deepcopy(document)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = [(None, None), *_places(changed)]
        owner, key = random.choice(places)
        if owner is None:
            if random.random() < 0.05:
                return copy.deepcopy(random.choice(VALUES))
            continue
        _change(owner, key, random, places)
    return changed


def _change(owner, key, random, places):
    act = random.randrange(6)
    if act == 0:
        del owner[key]
    elif act == 1 and isinstance(owner, list):
        owner.insert(key, copy.deepcopy(owner[key]))
    elif act == 1:
        owner[random.choice(("x", "name", f"{key} ", ""))] = owner.pop(key)
    elif act == 2:
        other, at = random.choice(places[1:])
        owner[key] = copy.deepcopy(other[at])
    elif act == 3 and isinstance(owner[key], int | float):
        owner[key] = owner[key] + random.choice((-1, 1, 0.5, 10**6, -(10**6)))
    else:
        owner[key] = copy.deepcopy(random.choice(VALUES))


def _places(document):
    """(container, key) of every value inside."""
    found, rest = [], [document]
    while rest:
        node = rest.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            found.append((node, key))
            rest.append(node[key])
    return found


def changed_json(data, random):
    """JSON text of a document that was changed inside."""
    return json.dumps(changed_document(json.loads(data), random)).encode()
