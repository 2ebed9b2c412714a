"""Files of others, read strictly: opened in one place, within bounds, with the position of every mistake.

`opening` reads bytes, text and lines; `from_json`, `from_yaml`, `from_toml`, `from_csv`, `from_xml` and `from_npz`
parse them; `numbers` reads digits; `sealed` keeps states that only ropewalk writes. `limits` has the bounds of all.
"""

from __future__ import annotations

from collections.abc import Callable

from ropewalk.documents.from_json import json_text, parse_foreign_documents, parse_foreign_json, parse_json, read_json
from ropewalk.documents.from_yaml import parse_yaml
from ropewalk.documents.opening import (
    Problem,
    beginning,
    decode,
    packaged_text,
    read_bytes,
    read_lines,
    read_text,
    unpacked,
)

Parser = Callable[[str, str, Problem], object]
"""(text, what it is the text of, error to raise) -> the document as lists, mappings and scalars."""

__all__ = [
    "Parser",
    "Problem",
    "beginning",
    "decode",
    "json_text",
    "packaged_text",
    "parse_foreign_documents",
    "parse_foreign_json",
    "parse_json",
    "parse_yaml",
    "read_bytes",
    "read_json",
    "read_lines",
    "read_text",
    "unpacked",
]
