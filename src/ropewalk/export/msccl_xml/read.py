"""Algorithms from MSCCL XML files, ours or others'."""

from __future__ import annotations

from pathlib import Path

from ropewalk.documents import read_bytes
from ropewalk.documents.from_xml import Element, parse_xml
from ropewalk.documents.numbers import whole
from ropewalk.errors import ProgramError
from ropewalk.export.msccl_xml.algo import NOBODY, RECEIVING, SENDING, STEPS, Algo, XmlGpu, XmlStep, XmlThreadBlock
from ropewalk.export.threadblocks.memory import MOST_CHUNKS

BUFFERS = ("i", "o", "s")


def read_msccl_xml(path: str | Path) -> Algo:
    """Read an algorithm file; raises `ProgramError` for what its readers would refuse."""
    subject = f"MSCCL file {path}"
    return parse_algo(read_bytes(Path(path), subject, ProgramError), subject)


def parse_algo(content: bytes | str, subject: str) -> Algo:
    """An algorithm from what is in its file."""
    root = parse_xml(content, subject, ProgramError)
    top = _Element(root, subject, "algo")
    if root.name != "algo":
        raise top.wrong(f"the outermost element is {root.name!r}: give an algo")
    gpus = tuple(_gpu(element, rank) for rank, element in enumerate(top.children("gpu")))
    if len(gpus) != top.number("ngpus"):
        raise top.wrong(f"ngpus is {top.number('ngpus')}, but there are {len(gpus)} gpus: list them all")
    inplace = top.flag("inplace")
    algo = Algo(
        top.text("name"),
        top.text("coll"),
        top.number("nchunksperloop"),
        top.number("nchannels"),
        gpus,
        inplace,
        # The oldest readers know no outofplace: what is not in place is out of place.
        top.flag("outofplace") if "outofplace" in root.attributes else not inplace,
        top.text("proto"),
        top.number("minBytes") if "minBytes" in root.attributes else 0,
        top.number("maxBytes") if "maxBytes" in root.attributes else 0,
    )
    for rank, gpu in enumerate(gpus):
        for number, block in enumerate(gpu.blocks):
            _check_block(algo, gpu, block, rank, _Element(root, subject, f"tb {number} of gpu {rank}"))
    return algo


class _Element:
    """An XML element with a name, read strictly."""

    def __init__(self, element: Element, subject: str, name: str) -> None:
        self.element, self.subject, self.name = element, subject, name

    def wrong(self, fact: str) -> ProgramError:
        return ProgramError(f"{self.subject}: {self.name}: {fact}")

    def text(self, key: str) -> str:
        if key not in self.element.attributes:
            raise self.wrong(f"has no attribute {key!r}: add it")
        return self.element.attributes[key]

    def number(self, key: str, least: int = 0) -> int:
        text = self.text(key)
        try:
            value = whole(text)
        except ValueError:
            raise self.wrong(f"{key} is {text!r}: give a whole number") from None
        if value < least:
            raise self.wrong(f"{key} is {value}: give {least} or more")
        return value

    def size(self, key: str) -> int:
        """A number of which as many things are made for the proof."""
        value = self.number(key)
        if value > MOST_CHUNKS:
            raise self.wrong(f"{key} is {value}: give {MOST_CHUNKS} or fewer")
        return value

    def flag(self, key: str) -> bool:
        value = self.number(key)
        if value > 1:
            raise self.wrong(f"{key} is {value}: give 0 or 1")
        return bool(value)

    def children(self, tag: str) -> list[_Element]:
        name = "" if self.name == "algo" else f" of {self.name}"
        return [
            _Element(child, self.subject, f"{tag} {number}{name}")
            for number, child in enumerate(self.element.inside)
            if child.name == tag
        ]


def _gpu(node: _Element, rank: int) -> XmlGpu:
    if node.number("id") != rank:
        raise node.wrong(f"id {node.number('id')} is at position {rank}: list gpus in the order of their ids")
    blocks: dict[int, XmlThreadBlock] = {}
    for entry in node.children("tb"):
        number = entry.number("id")
        if number in blocks:
            raise entry.wrong(f"id {number} is given twice: number thread blocks from 0 on")
        steps = tuple(_step(step, place) for place, step in enumerate(entry.children("step")))
        blocks[number] = XmlThreadBlock(
            entry.number("send", NOBODY), entry.number("recv", NOBODY), entry.number("chan"), steps
        )
    if sorted(blocks) != list(range(len(blocks))):
        raise node.wrong(f"thread blocks are numbered {sorted(blocks)}: number them from 0 on without gaps")
    sizes = (node.size("i_chunks"), node.size("o_chunks"), node.size("s_chunks"))
    return XmlGpu(*sizes, tuple(blocks[number] for number in range(len(blocks))))


def _step(node: _Element, place: int) -> XmlStep:
    if node.number("s") != place:
        raise node.wrong(f"step {node.number('s')} is at position {place}: number steps from 0 on")
    kind = node.text("type")
    if kind not in STEPS:
        raise node.wrong(f"type {kind!r} is not one of {', '.join(STEPS)}: use one of these")
    places = []
    for end in ("src", "dst"):
        buffer = node.text(f"{end}buf")
        if buffer not in BUFFERS:
            raise node.wrong(f"{end}buf {buffer!r} is not one of {', '.join(BUFFERS)}: use one of these")
        places.append((buffer, node.number(f"{end}off", -1)))
    block, step = node.number("depid", -1), node.number("deps", -1)
    if (block < 0) != (step < 0):
        raise node.wrong(f"depid {block} and deps {step} name half of a step: give both, or -1 for both")
    waits = None if block < 0 else (block, step)
    return XmlStep(kind, places[0], places[1], node.number("cnt"), waits, node.flag("hasdep"))


def _check_block(algo: Algo, gpu: XmlGpu, block: XmlThreadBlock, rank: int, node: _Element) -> None:
    """Peers, channels and waits exist, and waits of nops end at a step that waits itself."""
    for peer in (block.send, block.recv):
        if peer == rank or peer >= len(algo.gpus):
            raise node.wrong(f"peer {peer} is not one of the other ranks 0…{len(algo.gpus) - 1}: name one")
    if block.channel >= max(algo.channels, 1):
        raise node.wrong(f"chan {block.channel} is not below nchannels {algo.channels}: raise nchannels")
    chained = False
    for number, step in enumerate(block.steps):
        if step.kind in SENDING and block.send == NOBODY:
            raise node.wrong(f"step {number} sends, but the thread block has no peer to send to: set send")
        if step.kind in RECEIVING and block.recv == NOBODY:
            raise node.wrong(f"step {number} receives, but the thread block has no peer to receive from: set recv")
        if step.waits is not None:
            other, place = step.waits
            if other >= len(gpu.blocks) or place >= len(gpu.blocks[other].steps):
                raise node.wrong(f"step {number} waits for step {place} of tb {other}, which does not exist: name one")
        if step.kind == "nop":
            chained = chained or step.waits is not None
        else:
            if chained and step.waits is None:
                raise node.wrong(
                    f"step {number} follows a nop that waits, but waits for nothing itself: move the last wait to it"
                )
            chained = False
