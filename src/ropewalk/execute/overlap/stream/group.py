"""Links of a process group's own sends and receives (Gloo): messages carry their chunk and round as tag.

Receives of all messages are posted beforehand, so nothing is ever sent that nobody waits for. Gloo does not say which
of many posted receives is done, so each message is announced by a few bytes that do arrive in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ropewalk.execute.overlap.stream.buffer import Tensor
from ropewalk.execute.overlap.stream.desk import Message
from ropewalk.execute.overlap.stream.links import LinkLost, Slot
from ropewalk.execute.overlap.stream.ring import RingPlace

_ANNOUNCED = 0
_GOODBYE, _GIVEN_UP = (-1, -1), (-2, -2)
_POSTED_AHEAD = 64
"""Announcements that a rank can take before it looks at them."""


class GroupLinks:
    """Made by `group_links` on all ranks of a group that is used for nothing else."""

    def __init__(self, ring: RingPlace, group: Any) -> None:
        import torch.distributed as dist

        self.ring = ring
        self._group = group
        self._after = dist.get_global_rank(group, ring.after)
        self._before = dist.get_global_rank(group, ring.before)
        self._posted: dict[Message, Any] = {}
        self._slot: Slot | None = None
        self._announced: deque[tuple[Tensor, Any]] = deque()
        self._ended = False
        self._last: Any = None

    def expect(self, messages: list[Message], slot: Slot) -> None:
        self._slot = slot
        with self._reaching(self.ring.before):
            for _ in range(_POSTED_AHEAD):
                self._post_announcement()
            for message in messages:
                self._post(message)

    def send(self, message: Message, content: Tensor) -> None:
        self._announce(message)
        if content.numel():
            with self._reaching(self.ring.after):
                self._isend(content, self._tag(message)).wait()

    def receive(self) -> Message | None:
        words, work = self._announced.popleft()
        with self._reaching(self.ring.before):
            work.wait()
        chunk, turn = words.tolist()
        if (chunk, turn) == _GOODBYE:
            return None
        if (chunk, turn) == _GIVEN_UP:
            raise self._lost(self.ring.before, "it has lost another rank")
        message = (chunk, turn)
        with self._reaching(self.ring.before):
            self._post_announcement()
            if (posted := self._posted.pop(message, None)) is not None:
                posted.wait()
                self._post(message)
        return message

    def goodbye(self) -> None:
        self._announce(_GOODBYE)
        self._ended = True

    def close(self) -> None:
        """Connections belong to the group and end with it, so the rank behind is told by a message."""
        if not self._ended:
            self._ended = True
            with suppress(RuntimeError):
                self._last = self._isend(_words(_GIVEN_UP), _ANNOUNCED)

    def _announce(self, message: Message) -> None:
        with self._reaching(self.ring.after):
            self._isend(_words(message), _ANNOUNCED).wait()

    def _isend(self, content: Tensor, tag: int) -> Any:
        import torch.distributed as dist

        return dist.isend(content, self._after, group=self._group, tag=tag)

    def _post_announcement(self) -> None:
        import torch
        import torch.distributed as dist

        words = torch.zeros(2, dtype=torch.int64)
        self._announced.append((words, dist.irecv(words, self._before, group=self._group, tag=_ANNOUNCED)))

    def _post(self, message: Message) -> None:
        import torch.distributed as dist

        assert self._slot is not None
        place = self._slot(message)
        if place.numel():
            self._posted[message] = dist.irecv(place, self._before, group=self._group, tag=self._tag(message))

    def _tag(self, message: Message) -> int:
        chunk, turn = message
        return 1 + chunk * self.ring.rounds + turn

    @contextmanager
    def _reaching(self, rank: int) -> Iterator[None]:
        """Gloo finds a lost peer when it waits for it, but also when it is asked to send or receive anything more."""
        try:
            yield
        except RuntimeError as problem:
            raise self._lost(rank, str(problem).splitlines()[0]) from None

    def _lost(self, rank: int, why: str) -> LinkLost:
        return LinkLost(
            f"rank {self.ring.rank} lost rank {rank} ({why}): check the output of rank {rank}, and restart all ranks"
        )


def _words(message: Message) -> Tensor:
    import torch

    return torch.tensor(message, dtype=torch.int64)


def group_links(group: Any) -> GroupLinks:
    """A ring of the ranks of a process group; all of them call it, and use the group for nothing else."""
    import torch.distributed as dist

    return GroupLinks(RingPlace(dist.get_world_size(group), dist.get_rank(group)), group)
