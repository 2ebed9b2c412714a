"""A program as a plan: thread blocks that put into each other's memory, signal and wait.

Every pair of thread blocks that exchange data has a channel of its own. Its receiver first signals that it has been
launched, so that nobody writes into memory still in use; then every move is a put and a signal at one end and a wait at
the other. What is to be added arrives in a slot of scratch of its own and is reduced from there; what replaces is put
straight where it belongs, unless something there may still be in use, in which case it takes a slot as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ropewalk.errors import ProgramError
from ropewalk.export.mscclpp.emit import Emitter
from ropewalk.export.mscclpp.joint import leaders
from ropewalk.export.mscclpp.plan import (
    CHANNEL_TYPES,
    MOST_CHANNELS,
    MOST_OPERATIONS,
    ChunkSpan,
    Gpu,
    RemoteBuffer,
    ThreadBlock,
)
from ropewalk.export.threadblocks.blocks import Dealt, Seat, deal
from ropewalk.export.threadblocks.contract import aliases
from ropewalk.export.threadblocks.moves import INPUT, OUTPUT, SCRATCH, Event, Moves, Place, ProgramSend

ChannelChoice = Callable[[int, int], str]
"""(source rank, destination rank) -> "memory" or "port"."""

Link = tuple[int, int, int, int]
"""(source rank, its thread block, destination rank, its thread block): they share a channel."""


def gpus_of(moves: Moves, choose: ChannelChoice, inplace: bool, most_blocks: int) -> tuple[Gpu, ...]:
    """Deal the moves out as finely as the executor's limits allow, and write the operations of every rank."""
    problem = ""
    led = leaders(moves)
    for peers, lanes in _foldings(moves):
        for room in (MOST_OPERATIONS, 52, 40, 28, 16):
            stream = _stream(moves, led, peers, lanes)
            dealt = deal(moves, stream, lambda event: _least_cost(moves, led, event), room, led)
            problem = _too_many_blocks([len(own) for own in dealt.blocks], most_blocks) or ""
            if problem:
                break  # less room makes more of them
            gpus = _Builder(moves, dealt, led, choose, inplace).gpus()
            problem = _too_much(gpus, most_blocks) or ""
            if not problem:
                return gpus
    raise ProgramError(
        f"{problem}: use fewer segments, or a forest with a fixed, small number of trees, or fewer peers"
    )


def _foldings(moves: Moves) -> list[tuple[int, int]]:
    """Ways to share thread blocks, finest first: how many peers, and how many lanes, are told apart."""
    talks = {(move.src, move.dst) for move in moves.moves}
    peers = max((sum(src == rank for src, _ in talks) for rank in range(moves.ranks)), default=1)
    peers = max(peers, *(sum(dst == rank for _, dst in talks) for rank in range(moves.ranks)), 1)
    lanes = 1 + max((move.lane for move in moves.moves), default=0)
    options = [(peers, lanes)]
    while options[-1] != (1, 1):
        wide, deep = options[-1]
        options.append((wide, -(-deep // 2)) if deep > 1 else (-(-wide // 2), 1))
    return options


def _stream(moves: Moves, led: dict[Event, Event], peers: int, lanes: int) -> Callable[[Event], tuple[bool, int, int]]:
    """Which events share a thread block: those with the same peer, direction and lane, and companions of these."""
    seats: dict[tuple[int, bool, int], int] = {}
    count: dict[tuple[int, bool], int] = {}

    def stream(event: Event) -> tuple[bool, int, int]:
        move, arrives = moves.moves[led.get(event, event)[0]], event[1]
        here, peer = (move.dst, move.src) if arrives else (move.src, move.dst)
        if (here, arrives, peer) not in seats:
            seats[here, arrives, peer] = count.get((here, arrives), 0)
            count[here, arrives] = seats[here, arrives, peer] + 1
        return arrives, seats[here, arrives, peer] % peers, move.lane % lanes

    return stream


def _least_cost(moves: Moves, led: dict[Event, Event], event: Event) -> int:
    """Operations that an event takes at least: its copies, a signal or wait, and a synchronisation of the threads."""
    if led.get(event, event) != event:
        return 0
    return 2 + len(moves.moves[event[0]].runs)


def _too_many_blocks(blocks: list[int], most: int) -> str | None:
    rank = blocks.index(max(blocks))
    if blocks[rank] <= most:
        return None
    return f"rank {rank} needs {blocks[rank]} thread blocks, more than the {most} that run at once"


def _too_much(gpus: tuple[Gpu, ...], most_blocks: int) -> str | None:
    problem = _too_many_blocks([len(gpu.blocks) for gpu in gpus], most_blocks)
    if problem is not None:
        return problem
    for rank, gpu in enumerate(gpus):
        for number, block in enumerate(gpu.blocks):
            if len(block.operations) > MOST_OPERATIONS:
                operations = len(block.operations)
                return (
                    f"thread block {number} of rank {rank} has {operations} operations, the executor {MOST_OPERATIONS}"
                )
            for ids in (*block.channels.values(), *block.remote_buffers.values()):
                if len(ids) > MOST_CHANNELS:
                    return f"thread block {number} of rank {rank} uses {len(ids)} channels or remote buffers"
    return None


@dataclass
class _Slots:
    """Slots of scratch that have been given away at each rank."""

    taken: list[int]

    def take(self, rank: int, count: int) -> Place:
        first = self.taken[rank]
        self.taken[rank] += count
        return SCRATCH, first


class _Builder:
    """Everything that the operations of all ranks have to agree on: channels, slots of scratch, semaphores."""

    def __init__(
        self, moves: Moves, dealt: Dealt, led: dict[Event, Event], choose: ChannelChoice, inplace: bool
    ) -> None:
        self.moves, self.dealt, self.led, self.inplace = moves, dealt, led, inplace
        self.one_name = _one_name(moves) if inplace else _own_names
        self.kind: dict[Link, str] = {}
        self.last_move: dict[Link, int] = {}
        for move in moves.moves:
            link = self.link(move)
            if link not in self.kind:
                self.kind[link] = choose(move.src, move.dst)
                if self.kind[link] not in CHANNEL_TYPES:
                    raise ProgramError(
                        f"channel {self.kind[link]!r} from rank {move.src} to {move.dst} is not known: "
                        f"give one of {', '.join(CHANNEL_TYPES)}"
                    )
            self.last_move[link] = move.number
        slots = _Slots(list(moves.scratch))
        self.landing = {
            (move.number, position): run.target if run.direct else slots.take(move.dst, run.count)
            for move in moves.moves
            for position, run in enumerate(move.runs)
        }
        self.scratch = slots.taken
        self.channel = self._numbered_channels()

    def link(self, move: ProgramSend) -> Link:
        sender, _ = self.dealt.seat[move.number, False]
        receiver, _ = self.dealt.seat[move.number, True]
        return move.src, sender, move.dst, receiver

    def _numbered_channels(self) -> dict[tuple[Link, int], int]:
        """(link, rank at one of its ends) -> number among the rank's channels of its type.

        Both ends list the links between two ranks in the same order, which is what pairs them up.
        """
        numbers: dict[tuple[Link, int], int] = {}
        self.peers: list[dict[str, list[int]]] = [{} for _ in range(self.moves.ranks)]
        for link in sorted(self.kind, key=lambda link: (min(link[0], link[2]), max(link[0], link[2]), link)):
            for here, there in ((link[0], link[2]), (link[2], link[0])):
                peers = self.peers[here].setdefault(self.kind[link], [])
                numbers[link, here] = len(peers)
                peers.append(there)
        return numbers

    def gpus(self) -> tuple[Gpu, ...]:
        return tuple(self._gpu(rank) for rank in range(self.moves.ranks))

    def _gpu(self, rank: int) -> Gpu:
        layout = self.moves.layout
        heard = self.dealt.heard(rank)
        pairs = sorted({(seat[0], listener) for seat, listeners in heard.items() for listener in listeners})
        semaphore = {pair: number for number, pair in enumerate(pairs)}
        remotes: dict[tuple[int, str, str], int] = {}
        blocks = []
        for number, events in enumerate(self.dealt.blocks[rank]):
            emitter = Emitter(remotes)
            self._open(emitter, rank, events)
            for together in self._companies(events):
                emitter.acquire([semaphore[block, number] for event in together for block, _ in self._awaited(event)])
                if together[0][1]:
                    self._arrival(emitter, [self.moves.moves[event[0]] for event in together])
                else:
                    self._departure(emitter, self.moves.moves[together[0][0]])
                for event in together:
                    listeners = heard.get(self.dealt.seat[event], ())
                    emitter.release([semaphore[number, listener] for listener in listeners])
            blocks.append(emitter.block())
        own = [] if self.inplace else self.moves.own(rank)
        if own:
            emitter = Emitter(remotes)
            for source, target, count in own:
                emitter.copy(ChunkSpan(source, count, "i"), ChunkSpan(target, count, "o"))
            blocks.append(emitter.block())
        return Gpu(
            layout.inputs,
            layout.outputs,
            self.scratch[rank],
            tuple(blocks) or (ThreadBlock((), {}, {}),),
            {kind: tuple(self.peers[rank][kind]) for kind in CHANNEL_TYPES if kind in self.peers[rank]},
            tuple(RemoteBuffer(peer, buffer, (kind,)) for peer, buffer, kind in remotes),
            (0,) * len(pairs),
        )

    def _open(self, emitter: Emitter, rank: int, events: tuple[Event, ...]) -> None:
        """Tell the senders that this rank has been launched, then wait until the receivers have been."""
        for arrives in (True, False):
            links = dict.fromkeys(self.link(self.moves.moves[number]) for number, side in events if side is arrives)
            for kind in CHANNEL_TYPES:
                channels = [self.channel[link, rank] for link in links if self.kind[link] == kind]
                if arrives:
                    emitter.signal(kind, channels)
                else:
                    emitter.wait(kind, channels)

    def _departure(self, emitter: Emitter, move: ProgramSend) -> None:
        link = self.link(move)
        kind, channel = self.kind[link], self.channel[link, move.src]
        spans = []
        for position, run in enumerate(move.runs):
            buffer, index = self.one_name(move.dst, self.landing[move.number, position])
            spans.append((self._span(move.src, run.source, run.count), (move.dst, buffer), index))
        finish = self.last_move[link] == move.number or move.number in self.moves.overtaken
        emitter.put(kind, channel, spans, finish=finish)

    def _awaited(self, event: Event) -> tuple[Seat, ...]:
        return self.dealt.awaited.get(event, ())

    def _companies(self, events: tuple[Event, ...]) -> list[list[Event]]:
        """Events of a thread block, those that one operation adds up together."""
        companies: list[list[Event]] = []
        for event in events:
            if companies and event in self.led and self.led.get(companies[-1][0]) == self.led[event]:
                companies[-1].append(event)
            else:
                companies.append([event])
        return companies

    def _arrival(self, emitter: Emitter, company: list[ProgramSend]) -> None:
        links = [self.link(move) for move in company]
        rank = company[0].dst
        for kind in CHANNEL_TYPES:
            emitter.wait(kind, [self.channel[link, rank] for link in links if self.kind[link] == kind])
        for position, run in enumerate(company[0].runs):
            places = [self.landing[move.number, position] for move in company]
            landed = [self._span(rank, place, run.count) for place in places]
            target = self._span(rank, run.target, run.count)
            if run.operand is not None:
                emitter.reduce([self._span(rank, run.operand, run.count), *landed], target)
            elif not run.direct:
                emitter.copy(landed[0], target)

    def _span(self, rank: int, place: Place, count: int) -> ChunkSpan:
        buffer, index = self.one_name(rank, place)
        return ChunkSpan(index, count, buffer)


def _own_names(_: int, place: Place) -> Place:
    return place


def _one_name(moves: Moves) -> Callable[[int, Place], Place]:
    """In place, a chunk of memory has two names; the name in the larger of the two buffers stands for both."""
    layout = moves.layout
    shift = [aliases(layout.collective, rank, layout.inputs, layout.outputs) for rank in range(moves.ranks)]
    larger, smaller = (OUTPUT, INPUT) if layout.outputs >= layout.inputs else (INPUT, OUTPUT)

    def name(rank: int, place: Place) -> Place:
        return (larger, place[1] + abs(shift[rank])) if place[0] == smaller else place

    return name
