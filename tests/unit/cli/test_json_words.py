"""A key of `--json` means the same in every command: docs/json.schema.json has the words and their types."""

import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
WORDS = json.loads((DOCS / "json.schema.json").read_text())["$defs"]["words"]["properties"]
TYPES = {"number": (int, float), "integer": (int,), "string": (str,), "array": (list,), "object": (dict,),
         "boolean": (bool,), "null": (type(None),)}  # fmt: skip
OTHER_WORDS = {
    "dtype": "precision", "seq": "sequence", "batch": "global_batch", "step_s": "step_time_s", "remarks": "notes",
    "estimate_s": "estimated_step_time_s", "way": "method", "speed_up": "speedup", "bandwidth": "bandwidth_bytes_per_s",
    "allreduce_bytes": "all_reduce_bytes", "sum_bytes": "all_reduce_bytes", "capacity": "capacity_bytes_per_s",
    "util": "utilisation", "utilization": "utilisation",
}  # fmt: skip
"""Words that were used for the same thing, and the one that is right."""

SMALL = ("--cluster", "2x2", "--batch", "16")
WIRING = ("--servers", "4", "--degree", "2", "--gpus-per-server", "2", "--device", "a100", "--bandwidth", "100Gbps")
COMMANDS = {
    "sync": ("sync", "--hosts", "16", "--logical", "ring,hips", "--physical", "torus", "--size", "64MB"),
    "sync by packets": ("sync", "--level", "packet", "--hosts", "4", "--logical", "ring", "--physical", "torus",
                        "--size", "64kB"),
    "collective": ("collective", "allreduce", "ring:4"),
    "pipeline": ("pipeline", "gpt2", *SMALL),
    "overlap": ("overlap", "vgg16", "--cluster", "2x2"),
    "fabric": ("fabric", "torus:4x4"),
    "simulate": ("simulate", "gpt2", *SMALL),
    "cost": ("cost", "gpt2", "--batch", "1"),
    "expect": ("expect", "--cluster", "2x8", "--device", "h100"),
    "plan": ("plan", "gpt2", *SMALL),
    "plan on networks": ("plan", "gpt2", *SMALL, "--network", "rails,leaf-spine:4to1"),
    "plan of a wiring": ("plan", "dlrm", *WIRING, "--compare", "ideal-switch"),
    "size": ("cluster", "size"),
}  # fmt: skip
QUESTION = "question"
"""What was asked is written down in the words of the options."""


def keys_of(document):
    if isinstance(document, dict):
        for key, value in document.items():
            yield key, value
            if key != QUESTION:
                yield from keys_of(value)
    elif isinstance(document, list):
        for value in document:
            yield from keys_of(value)


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_use_one_vocabulary(ropewalk, name):
    answer = ropewalk(*COMMANDS[name], "--json")
    assert answer.code == 0, answer.stderr
    pairs = list(keys_of(json.loads(answer.stdout)))
    assert {key for key, _ in pairs} & set(WORDS), "no word of the vocabulary"
    for key, value in pairs:
        assert key not in OTHER_WORDS, f"{key}: the word is {OTHER_WORDS[key]}"
        if key in WORDS:
            allowed = tuple(kind for name in WORDS[key]["type"] for kind in TYPES[name])
            assert isinstance(value, allowed), (key, value)
            assert not isinstance(value, bool) or bool in allowed, (key, value)


def test_the_page_about_json_has_the_words_of_the_schema():
    rows = re.findall(r"^\| `(\w+)` \| ([a-z ]+) \| (.+) \|$", (DOCS / "json.md").read_text(), re.MULTILINE)
    kinds = {word: "|".join(kind for kind in entry["type"] if kind != "null") for word, entry in WORDS.items()}
    assert {word: (kind.replace(" or ", "|"), about) for word, kind, about in rows} == {
        word: (kinds[word], entry["description"]) for word, entry in WORDS.items()
    }
