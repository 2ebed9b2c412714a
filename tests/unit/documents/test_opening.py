"""Files from outside are read within bounds or refused."""

import gzip
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.documents import opening
from ropewalk.documents.inflating import inflated
from ropewalk.documents.limits import MOST_INFLATION
from ropewalk.errors import InputError

LOG = b"".join(b"%d,%d\n" % (number, number * 7919 % 1000) for number in range(2000))


def test_a_file_over_the_limit_is_refused_without_reading_all_of_it(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * 1001)
    assert opening.read_bytes(tmp_path / "large", "it", InputError, 1001) == b"x" * 1001
    with pytest.raises(InputError, match="is larger than 1 kB, the limit"):
        opening.read_bytes(tmp_path / "large", "it", InputError, 1000)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere", "does not exist"),
        ("n" * 300, "File name too long"),
        (".", "Is a directory"),
        ("a\0b", "contains a NUL"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(tmp_path, name, said):
    with pytest.raises(InputError, match=said):
        opening.read_bytes(tmp_path / name, "it", InputError)


@pytest.mark.parametrize("content", [b"\xff", b"a\0b"])
def test_bytes_that_are_no_text_are_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InputError, match="save it as UTF-8"):
        opening.read_text(tmp_path / "file", "it", InputError)
    with pytest.raises(InputError, match="save it as UTF-8"):
        list(opening.read_lines(tmp_path / "file", "it", InputError, 100))


@given(st.binary(max_size=2000), st.integers(1, 4), st.integers(0, 9), st.integers(1, 50))
def test_packed_bytes_come_back_however_they_are_cut(content, members, zeros, piece):
    packed = b"".join(gzip.compress(content) for _ in range(members)) + bytes(zeros)
    pieces = (packed[a:b] for a, b in pairwise([*range(0, len(packed), piece), len(packed)]))
    assert b"".join(inflated(pieces, "it", InputError, 10**6)) == content * members


@given(st.integers(2, len(gzip.compress(LOG)) - 1))
def test_a_cut_archive_is_refused(length):
    with pytest.raises(InputError, match="copy the file again"):
        opening.unpacked(gzip.compress(LOG)[:length], "it", InputError)


@given(st.integers(10 * 8, 8 * len(gzip.compress(LOG)) - 1))
def test_an_archive_with_a_flipped_bit_is_refused(bit):
    packed = bytearray(gzip.compress(LOG))
    packed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(InputError, match="copy the file again"):
        opening.unpacked(bytes(packed), "it", InputError)


def test_a_bomb_is_refused_after_a_small_part_of_it():
    made = []

    def counted():
        for piece in inflated(iter([gzip.compress(bytes(64 << 20))]), "it", InputError, 1 << 40):
            made.append(len(piece))
            yield piece

    with pytest.raises(InputError, match=f"over {MOST_INFLATION} times its size"):
        list(counted())
    assert sum(made) <= 32 << 20


@given(st.text(alphabet="ab\n", max_size=60), st.booleans())
def test_lines_are_those_of_the_text(tmp_path_factory, text, packed):
    path = tmp_path_factory.mktemp("lines") / "file"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert list(opening.read_lines(path, "it", InputError, 1000)) == text.splitlines(keepends=True)


def test_a_line_without_end_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"a\n" + b"b" * 3_000_000)
    with pytest.raises(InputError, match="line 2 is longer than 1 MB"):
        list(opening.read_lines(tmp_path / "file", "it", InputError, 10**9))
