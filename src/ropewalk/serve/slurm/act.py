"""Takes the steps that were decided: operations of the controller, commands of Slurm."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from ropewalk.serve.operation import Adopt, Bind, End, Operation, Requeue, Submit
from ropewalk.serve.outcome import Refused
from ropewalk.serve.slurm import steps
from ropewalk.serve.slurm.commands import SlurmCommands
from ropewalk.serve.slurm.mark import Mark
from ropewalk.serve.slurm.request import JobRequest
from ropewalk.serve.slurm.view import ARRAY, BY_SLURM, TOKEN
from ropewalk.serve.writer import Answer, Writer

ACTOR = "slurm"
ANSWER_S = 30.0


def new_token() -> str:
    """Nobody can guess it, and no two databases give the same."""
    return secrets.token_hex(8)


def submission(request: JobRequest, gpus_per_server: int, token: str, array: int | None = None) -> Submit:
    """A Slurm job as the controller is asked for it."""
    labels = {TOKEN: token} | ({} if array is None else {ARRAY: str(array)})
    return Submit(
        name=request.name,
        gpus=request.nodes * gpus_per_server,
        user=request.user,
        expected_s=request.limit_s,
        servers=request.servers,
        labels=labels,
    )


class Actor:
    """Each step is taken or raises; none of them leaves anything that the next round could not see."""

    def __init__(self, writer: Writer, commands: SlurmCommands) -> None:
        self._writer, self._slurm = writer, commands

    def begin(self, step: steps.Finish | steps.Attach) -> Future[Answer]:
        """Steps of the controller alone: many of them are one commit."""
        if isinstance(step, steps.Finish):
            return self._ask(End(step.job, step.outcome, BY_SLURM + step.why))
        return self._ask(Bind(step.job, step.slurm.external))

    def take(self, step: steps.Step) -> None:
        takes: dict[type[Any], Callable[[Any], None]] = {
            steps.Remark: self._remark,
            steps.HoldInSlurm: self._hold,
            steps.PutBack: self._put_back,
            steps.Take: self._adopt,
            steps.Start: self._start,
            steps.Enrol: self._enrol,
            steps.LetGo: self._let_go,
            steps.CancelInSlurm: self._cancel,
        }
        takes[type(step)](step)

    def _remark(self, step: steps.Remark) -> None:
        self._slurm.mark(step.slurm.target, step.mark)

    def _hold(self, step: steps.HoldInSlurm) -> None:
        self._slurm.hold(step.slurm.target, step.mark)

    def _put_back(self, step: steps.PutBack) -> None:
        self._apply(Requeue(step.job, step.why))

    def _adopt(self, step: steps.Take) -> None:
        """The next round writes token and order of nodes into its comment."""
        slurm = step.slurm
        self._apply(
            Adopt(
                name=slurm.name or "job",
                servers=step.servers,
                user=slurm.user,
                expected_s=slurm.limit_s,
                labels={TOKEN: new_token()},
                external=slurm.external,
                displaces=step.displaces,
            )
        )

    def _start(self, step: steps.Start) -> None:
        """The word `hold` goes last: while it is there, a round that finds the job still held releases it again."""
        slurm, nodes = step.slurm, step.mark.nodes
        settled = slurm.task is not None or len(nodes) == slurm.asked_nodes == slurm.most_nodes
        self._slurm.place(slurm.target, nodes, step.mark, settle=not settled)
        self._slurm.release(slurm.target)
        self._slurm.mark(slurm.target, replace(step.mark, hold=False))

    def _enrol(self, step: steps.Enrol) -> None:
        """Ask for servers and hold the job; the next round starts it, if there are any."""
        token = new_token()
        array = None if step.task is None else step.slurm.array
        per_server = self._writer.read(lambda controller: controller.state.plant.gpus_per_server).result(ANSWER_S)
        try:
            self._apply(submission(step.request, per_server, token, array))
        except Refused as refusal:
            self._let_go(steps.LetGo(step.slurm, refusal.message))
            return
        if step.task is not None:
            self._slurm.mark(f"{step.slurm.array}_{step.task}", Mark(token, hold=True))
        else:
            self._slurm.hold(step.slurm.target, Mark(token, hold=True))

    def _let_go(self, step: steps.LetGo) -> None:
        self._slurm.mark(step.slurm.target, Mark(left=True, note=f"not placed by ropewalk: {step.why}"))
        if step.slurm.held and step.slurm.mark.hold:
            self._slurm.release(step.slurm.target)

    def _cancel(self, step: steps.CancelInSlurm) -> None:
        self._slurm.cancel(step.slurm.target)

    def _ask(self, operation: Operation) -> Future[Answer]:
        return self._writer.submit(operation, actor=ACTOR)

    def _apply(self, operation: Operation) -> Answer:
        return self._ask(operation).result(ANSWER_S)
