"""Arrays of an `.npz` archive, each no larger than the archive says and all together within bounds."""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ropewalk.documents.limits import MOST_OF_COLUMNS
from ropewalk.documents.opening import Problem
from ropewalk.units import show_size

_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, KeyError, NotImplementedError, RuntimeError,
           tokenize.TokenError, SyntaxError, OverflowError, TypeError)  # fmt: skip
"""What zipfile and NumPy raise for damaged archives."""


def parse_npz(content: bytes, subject: str, error: Problem, remedy: str) -> dict[str, NDArray[Any]]:
    """The arrays by their names."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > MOST_OF_COLUMNS:
                raise error(f"{subject} unpacks to {show_size(size)}, more than {show_size(MOST_OF_COLUMNS)}: {remedy}")
            return {member.filename.removesuffix(".npy"): _array(archive, member) for member in archive.infolist()}
    except _BROKEN as problem:
        what = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise error(f"{subject} is incomplete ({what}): {remedy}") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """NumPy takes memory for what the header says before it reads, so the header is compared with the size first."""
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(stream)
        if dtype.hasobject or math.prod(shape) * dtype.itemsize != member.file_size - stream.tell():
            raise ValueError(f"{member.filename} does not have the size given in its header")
        values = np.frombuffer(stream.read(), dtype)
    return values.reshape(shape).copy()
