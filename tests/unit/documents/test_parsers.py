"""What parsers refuse: bombs, depth, numbers that are none, characters that are no text."""

import io
import json
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.documents import parse_foreign_documents, parse_foreign_json, parse_json, parse_yaml
from ropewalk.documents.bounds import flaw_of_name
from ropewalk.documents.from_csv import table_records, table_rows
from ropewalk.documents.from_npz import parse_npz
from ropewalk.documents.from_toml import parse_toml
from ropewalk.documents.from_xml import parse_xml
from ropewalk.documents.json_array import json_objects
from ropewalk.documents.numbers import finite, is_count, ratio, whole
from ropewalk.errors import InputError

BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
MERGED = "a: &a {k: 1}\n" + "".join(
    f"{new}: &{new}\n  <<: [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
NUMBER = {"1" * 5000: "5000 digits", "1" * 400: "400 digits", "18446744073709551616": "has 20 digits"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "entries with its aliases written out"),
        (MERGED, "entries with its aliases written out"),
        ("&a [*a]", r"\*a refers to itself"),
        ("[" * 100_000, "nested too deeply"),
        ("- " * 100_000, "nested too deeply"),
        ("? " * 100_000, "nested too deeply"),
        ("{a: " * 100_000, "nested too deeply"),
        ("a: 1_000", "1_000 is not a plain number"),
        ("a: 010", "010 is not a plain number"),
        ("a: 1:30", "1:30 is not a plain number"),
        ("a: 0x10", "0x10 is not a plain number"),
        ("a: .nan", ".nan is not a plain number"),
        ("a: -.inf", "-.inf is not a plain number"),
        ("a: 1.0e+999", r"1.0e\+999 is not a plain number"),
        ("a: 1_0.5", "1_0.5 is not a plain number"),
        ('a: "\\0"', r"U\+0000"),
        ("a: *b", "found undefined alias"),
        ("a: b: c", "fix the YAML there"),
        ("\x01", "fix the YAML"),
        *((f"a: {text}", said) for text, said in NUMBER.items()),
    ],
)
def test_yaml_that_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        parse_yaml(text, "it", InputError)


def test_a_date_in_yaml_is_text():
    assert parse_yaml("a: 2020-01-01\nb: 2020-99-99", "it", InputError) == {"a": "2020-01-01", "b": "2020-99-99"}


def test_yaml_that_is_read():
    assert parse_yaml("a: &a [1, -2]\nb: *a\nc: {<<: {d: 1e3}}\ne: 2.5\n", "it", InputError) == {
        "a": [1, -2], "b": [1, -2], "c": {"d": "1e3"}, "e": 2.5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[" * 65 + "0" + "]" * 65, "nested too deeply, more than 64 levels"),
        ("[NaN]", "NaN is not a number"),
        ("[-Infinity]", "-Infinity is not a number"),
        ("[1e999]", "is too large"),
        ('["\\u0000"]', r"U\+0000"),
        ('{"\\ud800": 1}', r"U\+D800"),
        ('["\\u001b[2J"]', r"U\+001B"),
        *((f"[{text}]", said) for text, said in NUMBER.items()),
    ],
)
def test_json_that_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        parse_json(text, "it", InputError)


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("C",))),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text("abc"), inside, max_size=3),
)  # fmt: skip


@given(NESTED)
def test_every_sound_document_is_read(document):
    text = json.dumps(document)
    assert parse_json(text, "it", InputError) == document
    assert parse_foreign_json(text, "it", InputError) == document


@given(
    st.lists(st.dictionaries(st.text("ab"), st.integers(), max_size=2), max_size=4), st.sampled_from(["\n", " ", ",\n"])
)
def test_objects_one_after_the_other_are_read(objects, between):
    text = between.join(map(json.dumps, objects))
    assert [found for _, found in json_objects(text, "it", InputError)] == objects


def test_foreign_documents_are_bounded_too():
    assert parse_foreign_json('{"a": NaN, "a": 1}', "it", InputError) == {"a": 1}
    for text in ("[" * 100_000, "[" * 70 + "]" * 70, f"[{'1' * 5000}]"):
        with pytest.raises(InputError):
            parse_foreign_json(text, "it", InputError)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<a>" * 300, "nested over 64 deep"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "declares a document type"),
        ("<a>&b;</a>", "undefined entity"),
        ('<?xml version="1.0" encoding="klingon"?><a/>', "save it as UTF-8"),
        ('<?xml version="1.0" encoding="utf-7"?><a/>', "save it as UTF-8"),
        ("", "no element found"),
    ],
)
def test_xml_that_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        parse_xml(text.encode(), "it", InputError)


@pytest.mark.parametrize("text", ["a = " + "[" * 9999, f"a = {'1' * 5000}", "a = ", 'a = "\\u0000"'])
def test_toml_that_is_refused(text):
    with pytest.raises(InputError):
        parse_toml(text, "it", InputError)


def test_tables_are_read_strictly():
    assert list(table_records(["a,b\n", "1,2\n"], ("a", "b"), "it", InputError)) == [(2, {"a": "1", "b": "2"})]
    for lines, said in (
        (["a,c\n"], "write a,b"), (["a,b\n", "1\n"], "has 1 fields for 2 columns"), (['"a\n'], "fix the CSV there"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            list(table_records(lines, ("a", "b"), "it", InputError))
    with pytest.raises(InputError, match="lines in a row are empty"):
        list(table_rows(("\n" for _ in range(2_000_000)), "it", InputError))


def archive(**arrays):
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def test_arrays_come_back():
    made = {"a": np.arange(6).reshape(2, 3), "b": np.array([0.5]), "c": np.zeros((0, 4), np.int8)}
    found = parse_npz(archive(**made), "it", InputError, "save it again")
    assert all((found[name] == made[name]).all() and found[name].dtype == made[name].dtype for name in made)


def test_an_archive_whose_header_lies_takes_no_memory():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
        packed.writestr("a.npy", header.getvalue() + b"12345678")
    with pytest.raises(InputError, match="does not have the size given in its header"):
        parse_npz(content.getvalue(), "it", InputError, "save it again")


@given(st.integers(0, len(archive(a=np.arange(50))) * 8 - 1))
def test_a_damaged_archive_is_refused_or_read(bit):
    content = bytearray(archive(a=np.arange(50)))
    content[bit // 8] ^= 1 << bit % 8
    with suppress(InputError):
        parse_npz(bytes(content), "it", InputError, "save it again")


@pytest.mark.parametrize("text", ["١", "１", "1_0", " 1", "1 ", "", "+", "²", "9" * 20, "0x1", "1.0"])
def test_what_is_no_whole_number(text):
    assert not is_count(text)
    with pytest.raises(ValueError, match="is not a whole number"):
        whole(text)


@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "1_0", "١", "", ".", "1e", "infinity", "1e99999", "9" * 500])
def test_what_is_no_number(text):
    with pytest.raises(ValueError, match="is not a number"):
        finite(text)


@pytest.mark.parametrize("text", ["1/0", "1/", "a", "1_0/2", "9" * 50, "1e3"])
def test_what_is_no_ratio(text):
    with pytest.raises(ValueError, match="is not a number or a fraction"):
        ratio(text)


@given(st.integers(-(10**17), 10**17), st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_as_python_writes_them(count, value):
    assert whole(str(count)) == count
    assert finite(repr(value)) == value


def test_names_have_bounds():
    assert flaw_of_name("ä" * 127) is None
    assert "longer than 255 bytes" in flaw_of_name("ä" * 128)
    assert "U+0000" in flaw_of_name("a\0b")
    assert "U+000A" in flaw_of_name("a\nb")


@pytest.mark.parametrize("text", ["[1] nothing", "[1] [", "[" * 5000 + "]" * 5000, "[1] " + "[" * 90 + "]" * 90])
def test_documents_one_behind_the_other_are_all_within_bounds(text):
    with pytest.raises(InputError):
        parse_foreign_documents(text, "text", InputError)
