"""In which order gradients go onto the network: launches of pieces of tensors, the same on every rank.

A library such as NCCL or Gloo works strictly in order, and ranks that hand over different operations never meet. So the
order is fixed before the training begins and is data: launches in a row, made of operations on pieces (tensor, from
element, to element). Nothing is decided while a step runs. An order can be written to a file and read by all ranks.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

from ropewalk.documents import parse_json, read_text
from ropewalk.errors import Findings, StrategyError
from ropewalk.files import write_whole
from ropewalk.records import record
from ropewalk.words import listed

FORMAT = "ropewalk communication order 1"


@dataclass(frozen=True)
class Piece:
    """Elements `start` to `stop` of the flattened gradient of one tensor."""

    tensor: str
    start: int
    stop: int

    @property
    def elements(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class OperationLaunch:
    """Operations that are handed over one right behind the other, when the last of their gradients exists.

    An operation sums its pieces in one buffer, so that they arrive together. A launch of several operations streams:
    what the first one brings is there while the last one is still on its way.
    """

    operations: tuple[tuple[Piece, ...], ...]

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple(piece for operation in self.operations for piece in operation)

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(piece.tensor for piece in self.pieces))

    @property
    def elements(self) -> int:
        return sum(piece.elements for piece in self.pieces)


def fused(*pieces: Piece) -> OperationLaunch:
    """A launch of one operation."""
    return OperationLaunch((pieces,))


@dataclass(frozen=True)
class Stream:
    """How operations run as chunks of one fused all-reduce; each of its overlaps can be switched off.

    The third overlap, with computing, is the lack of a barrier: a tensor is released when its own chunks are there.
    """

    mix: bool = True
    """Chunks are added while others are sent; otherwise a rank does one of the two at a time."""
    broadcast: bool = True
    """Chunks are broadcast while others are reduced; otherwise when all of them are reduced."""
    window: int | None = None
    """Launches that may be under way, which then begin strictly in order; otherwise each as its gradients exist."""
    reduce_key: tuple[int, ...] = ()
    """By chunk, in the order of launches: of those that could be sent the smallest key goes first. Unless given, chunks
    go in the order of launches, reduced or broadcast."""
    gather_key: tuple[int, ...] = ()
    """The same for chunks that are broadcast; both kinds share the port, so their keys are compared."""

    sequence: tuple[int, ...] = ()
    """The chunk of every message that a rank sends, in order, for libraries that match messages by it (NCCL)."""

    def findings(self, chunks: int) -> list[str]:
        """What is wrong with it for so many chunks."""
        found = []
        if self.window is not None and self.window < 1:
            found.append(f"a window of {self.window} launches is too small: give 1 or more, or none")
        given = {"reduce_key": len(self.reduce_key), "gather_key": len(self.gather_key)}
        found += [
            f"{label} of the stream has {count} entries: give one for each of {chunks} operations"
            for label, count in given.items()
            if count not in (0, chunks)
        ]
        if any(not 0 <= chunk < chunks for chunk in self.sequence):
            found.append(f"the sequence of the stream has a chunk that is not one of {chunks}: number them from 0")
        return found


@dataclass(frozen=True)
class CommunicationOrder:
    """Launches of one step, in order; every element of every tensor is in exactly one piece.

    >>> order = CommunicationOrder((fused(Piece("fc", 0, 6)), fused(Piece("conv", 0, 4), Piece("fc", 6, 8))))
    >>> order.elements
    {'fc': 8, 'conv': 4}
    """

    launches: tuple[OperationLaunch, ...]
    credit_bytes: float = 0.0
    """Bytes that may be handed over and not yet be done; the last one may overdraw it. 0: one operation at a time."""
    barrier: bool = False
    """The next step begins when all tensors are there, instead of each module when its own are."""
    stream: Stream | None = None
    """Operations are chunks of one fused all-reduce instead of all-reduces of a library; credit is for those."""

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "communication order")
        if not self.credit_bytes >= 0:
            findings.add(f"a credit of {self.credit_bytes:g} bytes is negative: give 0 (one piece) or more")
        if not self.launches:
            findings.add("nothing is launched: give at least one launch")
        spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, launch in enumerate(self.launches):
            if not launch.operations or not all(launch.operations):
                findings.add(f"launch {number} has an operation without pieces: leave it out")
            for piece in launch.pieces:
                spans[piece.tensor].append((piece.start, piece.stop))
        for tensor, parts in spans.items():
            parts.sort()
            if parts[0][0] != 0 or any(begin >= end for begin, end in parts):
                findings.add(f"pieces of {tensor} are empty or do not begin at element 0: cover every element once")
            elif any(end != begin for (_, end), (begin, _) in pairwise(parts)):
                findings.add(f"pieces of {tensor} overlap or leave a gap: cover every element exactly once")
        if self.stream is not None:
            for text in self.stream.findings(sum(len(launch.operations) for launch in self.launches)):
                findings.add(text)
        findings.raise_if_any()

    @cached_property
    def elements(self) -> dict[str, int]:
        """By tensor, in the order in which tensors first appear."""
        total: dict[str, int] = {}
        for launch in self.launches:
            for piece in launch.pieces:
                total[piece.tensor] = total.get(piece.tensor, 0) + piece.elements
        return total

    @cached_property
    def pieces_of(self) -> dict[str, int]:
        """How many pieces every tensor has."""
        count: dict[str, int] = {}
        for launch in self.launches:
            for piece in launch.pieces:
                count[piece.tensor] = count.get(piece.tensor, 0) + 1
        return count

    def check_against(self, elements: Mapping[str, int]) -> None:
        """Refuse an order that was made for other tensors than these, given by name with their elements."""
        findings = Findings(StrategyError, "communication order")
        for text, names in (
            ("are not in the order: add a piece for every parameter that is trained", elements.keys() - self.elements),
            ("are in the order but not in the module: make the order for this module", self.elements.keys() - elements),
        ):
            if names:
                findings.add(f"{listed(sorted(names))} {text}")
        for tensor in sorted(self.elements.keys() & elements.keys()):
            if self.elements[tensor] != elements[tensor]:
                findings.add(
                    f"{tensor} has {elements[tensor]} elements, but the order covers {self.elements[tensor]}: "
                    "make the order for this module"
                )
        findings.raise_if_any()

    def document(self) -> dict[str, Any]:
        """As plain lists and numbers."""
        return {
            "format": FORMAT,
            "credit_bytes": None if self.credit_bytes == float("inf") else self.credit_bytes,
            "barrier": self.barrier,
            "stream": None if self.stream is None else asdict(self.stream),
            "launches": [
                [[[piece.tensor, piece.start, piece.stop] for piece in operation] for operation in launch.operations]
                for launch in self.launches
            ],
        }

    def write(self, path: str | Path) -> None:
        write_whole(path, json.dumps(self.document(), indent=1) + "\n")


def read_order(path: str | Path) -> CommunicationOrder:
    """The order that was written to a file."""
    subject = f"communication order {path}"
    text = read_text(Path(path), subject, StrategyError)
    return order_of_document(parse_json(text, subject, StrategyError), subject)


def order_of_document(document: Any, subject: str = "communication order") -> CommunicationOrder:
    """The order that `document` describes."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise StrategyError(f"{subject} is not in the format {FORMAT!r}: give a file written by ropewalk")
    unknown = document.keys() - {"format", *_WRITTEN}
    if unknown:
        known = ", ".join(_WRITTEN)
        raise StrategyError(f"{subject} has the entry {min(unknown)[:60]!r}, which no order has: use {known}")
    try:
        launches = tuple(
            OperationLaunch(tuple(tuple(_piece(*piece) for piece in operation) for operation in launch))
            for launch in document["launches"]
        )
    except (KeyError, TypeError, ValueError) as problem:
        raise StrategyError(
            f"{subject} has a launch that cannot be read ({problem}): write a launch as operations, an operation as "
            "pieces, a piece as [name, from, to]"
        ) from None
    credit, barrier = document.get("credit_bytes", 0.0), document.get("barrier", False)
    if credit is not None and (isinstance(credit, bool) or not isinstance(credit, int | float)):
        raise StrategyError(f"{subject}: credit_bytes is {credit!r}: give a number of bytes, or null for no limit")
    if not isinstance(barrier, bool):
        raise StrategyError(f"{subject}: barrier is {barrier!r}: give true or false")
    given = document.get("stream")
    stream = None if given is None else record(Stream, given, f"{subject}: stream", StrategyError)
    return CommunicationOrder(launches, float("inf") if credit is None else float(credit), barrier, stream)


_WRITTEN = ("launches", "credit_bytes", "barrier", "stream")


def _piece(name: object, start: object, stop: object) -> Piece:
    if not isinstance(name, str) or not _is_whole(start) or not _is_whole(stop):
        raise ValueError(f"{[name, start, stop]!r} is not a piece")
    return Piece(name, start, stop)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
