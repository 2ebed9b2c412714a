"""Rules on devices beside what a killed service has kept: none on a link of another job, none left over."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from serve_process import Line

from ropewalk.export.cluster import AddressPlan
from ropewalk.serve.restored import restored
from ropewalk.serve.rules.making import rules_of
from ropewalk.serve.rules.rule import Rule, Send
from ropewalk.serve.rules.table import driver_named
from ropewalk.serve.state import State
from ropewalk.serve.store import open_store

SETTLES_S = 300.0


@dataclass
class RuleCheck:
    """Devices are documents in a folder, written by the driver `files`."""

    database: str
    folder: Path

    @property
    def options(self) -> tuple[str, ...]:
        """What the service is started with."""
        return ("--driver", "files", "--driver-option", f"folder={self.folder}", "--addresses", "numbered",
                "--reconcile-every", "1s")  # fmt: skip

    def strays(self) -> list[str]:
        """Rules that lead over a link which their job does not hold: whenever the service dies there are none."""
        state = self._state()
        if state is None:
            return []
        owner = {}
        for job in state.jobs.values():
            held = [job.allocation] if job.allocation is not None else []
            for one in (*held, *(old for _, old in job.releasing)):
                owner |= dict.fromkeys(one.reserved(), job.id)
        plan = AddressPlan.numbered(state.plant)
        cable_of = {str(hop): cable for cable, hop in plan.next_hops.items()}
        found = []
        for rule in self._present(state):
            if isinstance(rule.body, Send) and owner.get(cable_of[rule.body.next_hop]) != rule.job:
                holder = owner.get(cable_of[rule.body.next_hop])
                found.append(f"{rule.device} sends {rule.body.source} of {rule.job} over a link of {holder}")
        return found

    def differences(self, socket: Path) -> list[str]:
        """Rules that are missing or left over when the service has had time to compare."""
        line, until, wrong = Line(socket), time.monotonic() + SETTLES_S, ["the rules were never compared"]
        try:
            while wrong and time.monotonic() < until:
                line.ask("POST", "/v1/reconcile", {})
                wrong = self._differences()
        finally:
            line.close()
        return wrong

    def _differences(self) -> list[str]:
        state = self._state()
        assert state is not None
        plan = AddressPlan.numbered(state.plant)
        wanted: set[Rule] = set()
        for job in state.jobs.values():
            if job.state == "running" and job.allocation is not None:
                wanted |= set(rules_of(state.plant, job.id, job.allocation, plan, job.generation))
        present = {rule for rule in self._present(state) if rule.job}
        wanted = {rule for rule in wanted if rule.job}
        return [
            *(f"{rule.device} lacks {rule.body} of {rule.job}" for rule in wanted - present),
            *(f"{rule.device} still has {rule.body} of {rule.job}" for rule in present - wanted),
        ]

    def _present(self, state: State) -> list[Rule]:
        plan = AddressPlan.numbered(state.plant)
        driver = driver_named("files", {"folder": str(self.folder)}, state.plant, plan)
        return [rule for device in driver.devices() for rule in driver.present(device).rules]

    def _state(self) -> State | None:
        store = open_store(self.database, writer=False)
        try:
            saved = store.load()
            return None if saved is None else restored(saved).state
        finally:
            store.close()
