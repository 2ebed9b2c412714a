"""What people say about packets and switches on the command line, and the settings of a run that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ropewalk.errors import Findings, InputError
from ropewalk.sim.packet.settings import PacketSettings, PathSpread, SwitchSettings
from ropewalk.sim.packet.transport import DCQCN, DCQCN_PAPER, DCTCP
from ropewalk.sim.transports import TRANSPORTS, settings_named

SPREADS = {spread.value: spread for spread in PathSpread}


@dataclass(frozen=True)
class PacketOptions:
    """Where something is None, the transport's own setting holds.

    >>> PacketOptions(buffer_bytes=2_000_000).settings("rdma", "ecmp", seed=0).switch.buffer_bytes
    2000000
    """

    buffer_bytes: int | None = None
    """Shared by the ports of a switch."""
    queue_bytes: int | None = None
    """What one port of a lossy switch holds at most (TCP)."""
    ecn: tuple[float, float, float] | None = None
    """Kmin and Kmax in bytes, and Pmax."""
    payload_bytes: int | None = None
    min_rto_s: float | None = None
    spread: str | None = None
    """What a transfer does with several paths. None: one flow a path; packets in turn where the routing is `spray`."""

    def settings(
        self, transport: str, routing: str, *, seed: int, sample_every_s: float | None = None
    ) -> PacketSettings:
        """The settings of a run, checked. Options that the transport has no use for are left to those that do."""
        base = settings_named(transport)
        if self.spread is not None and self.spread not in SPREADS:
            raise InputError(f"unknown spread {self.spread!r}: use one of {', '.join(SPREADS)}")
        kind: Any = base.transport
        if self.min_rto_s is not None and _has_timeout(base):
            kind = replace(kind, min_rto_s=self.min_rto_s)
        usual = PathSpread.SPRAY if routing == "spray" else PathSpread.SPLIT
        settings = replace(
            base,
            transport=kind,
            switch=self._switch(base),
            payload_bytes=base.payload_bytes if self.payload_bytes is None else self.payload_bytes,
            spread=usual if self.spread is None else SPREADS[self.spread],
            seed=seed,
            sample_every_s=sample_every_s,
        )
        settings.check()
        return settings

    def _switch(self, base: PacketSettings) -> SwitchSettings:
        switch = base.switch
        if self.buffer_bytes is not None:
            limit = switch.queue_limit_bytes
            switch = replace(
                switch,
                buffer_bytes=self.buffer_bytes,
                queue_limit_bytes=None if limit is None else min(limit, self.buffer_bytes),
            )
        if self.queue_bytes is not None and _drops(base):
            switch = replace(switch, queue_limit_bytes=self.queue_bytes)
        if self.ecn is not None and _reads_marks(base):
            kmin, kmax, pmax = self.ecn
            switch = replace(switch, mark=True, kmin_bytes=kmin, kmax_bytes=kmax, pmax=pmax)
        return switch

    def check(self, transports: Sequence[str], findings: Findings, routings: Sequence[str] = ("default",)) -> None:
        """Add what is wrong with the options for these transports and routings."""
        for name in transports:
            if name not in TRANSPORTS:
                findings.add(TRANSPORTS.unknown(name))
        known = [name for name in transports if name in TRANSPORTS]
        said: list[str] = []
        for name, routing in product(known, routings):
            try:
                settings = self.settings(name, routing, seed=0)
            except InputError as error:
                said.append(str(error))
                continue
            switch = settings.switch
            limit, kmin = switch.queue_limit_bytes, switch.kmin_bytes
            if switch.mark and limit is not None and kmin is not None and kmin >= limit:
                said.append(
                    f"{name} waits for marks, which start at a queue of {kmin:.0f} bytes, but queues end at {limit}: "
                    "raise --port-queue or --buffer, or lower Kmin with --ecn"
                )
        for option in OF_SOME:
            if known and option.given(self) and not any(option.counts_for(settings_named(name)) for name in known):
                able = ", ".join(name for name in TRANSPORTS if option.counts_for(settings_named(name)))
                said.append(f"{option.name} would have no effect: {option.because}: leave it out, or use {able}")
        for message in dict.fromkeys(said):
            findings.add(message)


def _drops(settings: PacketSettings) -> bool:
    return not settings.switch.pause


def _has_timeout(settings: PacketSettings) -> bool:
    return hasattr(settings.transport, "min_rto_s")


def _reads_marks(settings: PacketSettings) -> bool:
    return settings.transport.code in (DCQCN, DCQCN_PAPER, DCTCP)


@dataclass(frozen=True)
class OptionOfSome:
    """An option that counts for some transports only."""

    name: str
    given: Callable[[PacketOptions], bool]
    counts_for: Callable[[PacketSettings], bool]
    because: str
    """It changes nothing for the others."""


OF_SOME = (
    OptionOfSome(
        "--port-queue",
        lambda options: options.queue_bytes is not None,
        _drops,
        "lossless switches pause instead of dropping",
    ),
    OptionOfSome("--min-rto", lambda options: options.min_rto_s is not None, _has_timeout, "only TCP has that timeout"),
    OptionOfSome("--ecn", lambda options: options.ecn is not None, _reads_marks, "no transport here reacts to marks"),
)
