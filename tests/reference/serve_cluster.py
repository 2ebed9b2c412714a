"""A small cluster for tests of the controller: every operation is checked, and each takes a second."""

from __future__ import annotations

import pytest
from serve_invariants import check

from ropewalk.serve import operation as asked
from ropewalk.serve.controller import Controller
from ropewalk.serve.outcome import Outcome, Refused
from ropewalk.serve.settings import Settings
from ropewalk.tenancy.plant import plant


class Cluster:
    """Four leafs with two servers of four GPUs each, eight spines; every operation is checked and takes a second."""

    def __init__(self, policy: str = "vclos", fabric: str = "leaf-spine:4x8x8", **settings: object) -> None:
        self.controller = Controller.empty(
            plant(fabric, gpus_per_server=4),
            Settings(policy, **settings),  # type: ignore[arg-type]
        )
        self.state = self.controller.state
        self.now = 0.0

    def do(self, operation: asked.Operation) -> Outcome:
        self.now += 1.0
        outcome = self.controller.apply(operation, self.now)
        check(self.state)
        return outcome

    def submit(self, gpus: int, **more: object) -> str:
        answer = self.do(asked.Submit("job", gpus, **more)).answer  # type: ignore[arg-type]
        return str(answer["id"])

    def state_of(self, job: str) -> str:
        return self.state.job(job).state

    def refused(self, operation: asked.Operation) -> Refused:
        with pytest.raises(Refused) as refusal:
            self.controller.apply(operation, self.now)
        check(self.state)
        return refusal.value
