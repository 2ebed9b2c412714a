"""A plan as a job that a framework starts: its model, its cut, its gradients, with nothing left to be worked out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ropewalk.device.device import PRECISIONS
from ropewalk.plans import Plan
from ropewalk.strategy import Pieces, Placement, Strategy
from ropewalk.strategy.asked import StrategyFacts, asked_of
from ropewalk.strategy.frameworks import FRAMEWORKS
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.strategy import SERVER
from ropewalk.workload.source import is_file, open_workload
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo import TransformerFamily, family_of, find


@dataclass(frozen=True, eq=False)
class PlannedJob:
    """What frameworks are told, worked out once.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse
    >>> plan = Plan(ModelUse("gpt2", 64), read_cluster("1x4"), Strategy(data=2, pipeline=2, micro_batches=4))
    >>> job = PlannedJob(plan)
    >>> [len(job.pieces.of(piece)) for piece in range(2)], job.gradient_bytes
    ([7, 7], 2.0)
    """

    plan: Plan

    @property
    def strategy(self) -> Strategy:
        return self.plan.strategy

    @cached_property
    def workload(self) -> Workload:
        """The model for one micro-batch."""
        strategy = self.strategy
        size = None if strategy.grain == SERVER else strategy.micro_batch
        return open_workload(self.plan.model.name, size, self.plan.model.sequence)

    @cached_property
    def family(self) -> TransformerFamily | None:
        """The sizes of a transformer of the zoo; None for other models."""
        return None if is_file(self.plan.model.name) else family_of(self.plan.model.name)

    @property
    def zoo_name(self) -> str:
        """What the zoo calls the model, without options; empty for models in files and of other sizes."""
        name, _, options = self.plan.model.name.partition(":")
        return "" if options or is_file(self.plan.model.name) else find(name).name

    @property
    def asked(self) -> StrategyFacts:
        talk, precision = self.plan.communication, self.plan.model.precision
        return asked_of(self.cut, self.workload, algorithm=talk.algorithm, precision=precision)

    @property
    def cut(self) -> Strategy:
        """The strategy, with its stages written out where it matters which layers they hold."""
        if not self.strategy.choices or self.strategy.pipeline == 1 or self.strategy.parts:
            return self.strategy
        return replace(self.strategy, stages=self.pieces.firsts)

    def refusal(self, framework: str) -> str | None:
        """Why a framework cannot run the job, None where it can."""
        return FRAMEWORKS[framework].applies(self.asked)

    @property
    def sequence(self) -> int:
        """Tokens of a sample, 0 where samples are not sequences."""
        return self.workload.sequence

    @property
    def element_bytes(self) -> float:
        """Of a weight."""
        return PRECISIONS[self.plan.model.precision].element_bytes

    @property
    def gradient_bytes(self) -> float:
        """Of a gradient, as it is sent."""
        return float(self.strategy.gradient_bytes or self.element_bytes)

    @property
    def bucket_parameters(self) -> int:
        """Gradients that are reduced together; 0: those of every layer by itself."""
        return int(self.strategy.order.bucket_bytes // self.gradient_bytes)

    @cached_property
    def pieces(self) -> Pieces:
        """Where the pipeline is cut, as it was simulated."""
        from ropewalk.training.planned import question_of
        from ropewalk.training.prepared import prepared

        return prepared(replace(question_of(self.plan), memory_check=False)).pieces

    @property
    def order(self) -> str:
        """In which order ranks are laid over GPUs."""
        return self.plan.placement or DEFAULT_ORDER

    def laid_out_as(self, order: str) -> bool:
        """Would this order give every GPU the same rank? Degrees of 1 may stand anywhere."""
        own, other = (Placement(self.strategy, one).grid for one in (self.order, order))
        return np.array_equal(own, other)
