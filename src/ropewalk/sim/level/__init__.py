"""How finely time is simulated: as flows, as flows that carry headers, or packet by packet; and which is enough."""

from ropewalk.sim.level.choose import LevelChoice, choose_for_rounds, choose_for_run, events_of_rounds, expected_events
from ropewalk.sim.level.contention import Contention, contention_of_rounds, contention_of_run
from ropewalk.sim.level.options import PacketOptions
from ropewalk.sim.level.packet_facts import PacketFacts, facts_of
from ropewalk.sim.level.run import LevelRun, LevelUse, run_at_level
from ropewalk.sim.level.seen_as_trace import seen_as_trace
from ropewalk.sim.level.wire import WireFormat, on_the_wire, rounds_on_the_wire, wire_format

__all__ = [
    "Contention",
    "LevelChoice",
    "LevelRun",
    "LevelUse",
    "PacketFacts",
    "PacketOptions",
    "WireFormat",
    "choose_for_rounds",
    "choose_for_run",
    "contention_of_rounds",
    "contention_of_run",
    "events_of_rounds",
    "expected_events",
    "facts_of",
    "on_the_wire",
    "rounds_on_the_wire",
    "run_at_level",
    "seen_as_trace",
    "wire_format",
]
