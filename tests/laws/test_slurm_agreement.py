"""Slurm and the controller agree in the end, whatever happens to jobs and whenever the controller is killed.

Slurm is a pretend one that follows what the real one was seen to do; the controller is the real one.
"""

import time
from concurrent.futures import Future
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from pretend_slurm import PretendSlurm

from ropewalk.serve.controller import Controller
from ropewalk.serve.outcome import Refused
from ropewalk.serve.slurm.act import new_token, submission
from ropewalk.serve.slurm.bridge import Bridge, SlurmSettings
from ropewalk.serve.slurm.commands import SlurmCommands
from ropewalk.serve.slurm.request import JobRequest, of_form
from ropewalk.serve.slurm.seen import Patience
from ropewalk.serve.slurm.submit import job_answered, not_asked
from ropewalk.tenancy.plant import plant

PLANT = plant("leaf-spine:4x4x8", gpus_per_server=2)
NAMES = PLANT.server_names
EVENTS = st.one_of(
    st.tuples(st.just("submit"), st.integers(1, 9)),
    st.tuples(st.just("submit without an answer"), st.integers(1, 9)),
    st.tuples(st.just("submit that is lost"), st.integers(1, 9)),
    st.tuples(st.just("submit array"), st.integers(1, 4)),
    st.tuples(
        st.sampled_from(
            ["finish", "cancel", "requeue", "user hold", "release", "cancel here", "node down", "node up", "fail"]
        ),
        st.integers(0, 1000),
    ),
    st.tuples(st.sampled_from(["round", "round", "schedule", "schedule", "forget", "silent", "later"]), st.just(0)),
    st.tuples(st.just("killed round"), st.integers(0, 12)),
)


class InlineWriter:
    """A writer without thread and store: the controller alone decides."""

    def __init__(self, controller):
        self.controller, self.now = controller, 1000.0
        self.store, self.kept = self, []

    def events_of(self, kinds):
        return [event for event in self.kept if event.kind in kinds]

    def submit(self, operation, actor=""):
        future = Future()
        try:
            outcome = self.controller.apply(operation, self.now)
            self.kept += [replace(event, document=event.document | {"actor": actor}) for event in outcome.events]
            future.set_result(type("Answer", (), {"document": outcome.answer}))
        except Refused as refusal:
            future.set_exception(refusal)
        return future

    def read(self, function):
        future = Future()
        future.set_result(function(self.controller))
        return future


class World:
    def __init__(self):
        self.slurm = PretendSlurm(NAMES)
        self.writer = InlineWriter(Controller.empty(PLANT))
        self.bridge = self.new_bridge()

    def new_bridge(self):
        commands = SlurmCommands(run=self.slurm.run)
        return Bridge(self.writer, SlurmSettings((), 2.0, Patience(5.0, 5.0), commands))

    def round(self):
        clock, time.time = time.time, lambda: self.writer.now
        try:
            self.bridge.once()
        finally:
            time.time = clock

    def submit(self, nodes, *, array=""):
        """What the service does at /v1/slurm/submit and the plugin with its answer; None where it is refused."""
        form = {"name": "train", "user": "ada", "nodes": str(nodes)} | ({"array": array} if array else {})
        found = of_form(form, PLANT.gpus_per_server, ())
        if not isinstance(found, JobRequest):
            decision = not_asked(found)
        else:
            token = new_token()
            try:
                answer = self.writer.submit(submission(found, PLANT.gpus_per_server, token)).result().document
            except Refused:
                return None
            decision = job_answered(found, token, answer)
        fields = {"comment": decision.mark.text(), "array": array}
        if decision.decision == "start":
            fields["required"] = decision.mark.nodes
        if decision.decision == "hold":
            fields["priority"] = 0
        return fields

    def happen(self, event):
        kind, number = event
        jobs = self.slurm.jobs
        pending = [job for job in jobs.values() if job.state == "PENDING"]
        running = [job for job in jobs.values() if job.state == "RUNNING"]
        if kind == "submit" and (fields := self.submit(number)) is not None:
            self.slurm.submit(number, **fields)
        elif kind == "submit without an answer":
            self.slurm.submit(number)
        elif kind == "submit that is lost":
            self.submit(number)
        elif kind == "submit array":
            self.slurm.submit(1, **self.submit(1, array=f"0-{number}"))
        elif kind == "schedule":
            self.slurm.schedule()
        elif kind == "round":
            self.round()
        elif kind == "killed round":
            self.killed_round(number)
        elif kind == "forget":
            self.slurm.forget()
        elif kind == "later":
            self.writer.now += 6.0
        elif kind == "silent":
            self.silent_round()
        elif kind == "node down":
            self.slurm.out.add(NAMES[number % len(NAMES)])
        elif kind == "node up":
            self.slurm.out.discard(NAMES[number % len(NAMES)])
        elif kind == "cancel here":
            self.cancel_here(number)
        elif kind in ("finish", "fail", "requeue") and running:
            job = running[number % len(running)]
            {"finish": lambda: self.slurm.finish(job), "fail": lambda: self.slurm.finish(job, "NODE_FAIL"),
             "requeue": lambda: self.slurm.requeue(job)}[kind]()  # fmt: skip
        elif kind in ("user hold", "release", "cancel") and pending:
            job = pending[number % len(pending)]
            if kind == "cancel":
                self.slurm.finish(job, "CANCELLED")
            else:
                job.priority = 0 if kind == "user hold" else 100

    def cancel_here(self, number):
        """Somebody cancels a job in the controller, as `ropewalk cluster cancel` does."""
        from ropewalk.serve.operation import Cancel

        live = [job.id for job in self.state.jobs.values() if job.state != "ended"]
        if live:
            self.writer.submit(Cancel(live[number % len(live)])).result()

    def killed_round(self, number):
        self.slurm.crash_after = number
        try:
            self.round()
        except KeyboardInterrupt:
            self.bridge = self.new_bridge()
        finally:
            self.slurm.crash_after = None

    def silent_round(self):
        from ropewalk.serve.slurm.commands import SlurmFailed

        self.slurm.answers = False
        before = len(self.state.jobs)
        try:
            self.round()
            raise AssertionError("a round without Slurm")
        except SlurmFailed:
            assert len(self.state.jobs) == before
        finally:
            self.slurm.answers = True

    @property
    def state(self):
        return self.writer.controller.state

    def no_node_twice(self):
        seen = [node for job in self.slurm.jobs.values() if job.state == "RUNNING" for node in job.nodes]
        assert len(seen) == len(set(seen))

    def settle(self):
        """Rounds and schedulings until neither side has anything to do."""
        quiet = 0
        for _ in range(60):
            before = (repr(self.slurm.jobs), {job.id: job.version for job in self.state.jobs.values()})
            self.round()
            self.slurm.schedule()
            self.no_node_twice()
            self.writer.now += 6.0
            after = (repr(self.slurm.jobs), {job.id: job.version for job in self.state.jobs.values()})
            quiet = quiet + 1 if before == after else 0
            if quiet == 3:
                return
        raise AssertionError(f"it never settles: {self.slurm.jobs}")

    def agree(self):
        """What Slurm runs is what the controller runs, on the same servers, and nothing else of Slurm's is there."""
        running = {f"slurm:{job.id}": set(job.nodes) for job in self.slurm.jobs.values() if job.state == "RUNNING"}
        plant, ours = self.state.occupancy.plant, {}
        for job in self.state.jobs.values():
            if job.state == "running":
                servers = {plant.server_names[gpu // plant.gpus_per_server] for gpu in job.allocation.gpus}
                ours[job.external] = servers
        assert ours == running
        self.state.occupancy.check()


@settings(max_examples=150)
@given(st.lists(EVENTS, max_size=40))
def test_whatever_happens_both_sides_agree_and_nothing_leaks(events):
    world = World()
    for event in events:
        world.happen(event)
        world.no_node_twice()
        world.state.occupancy.check()
    world.slurm.out.clear()
    world.settle()
    world.agree()
    for _ in range(200):
        running = [job for job in world.slurm.jobs.values() if job.state == "RUNNING"]
        if not running:
            break
        world.slurm.finish(running[0])
        world.settle()
        world.agree()
    # Whatever is left waits for its user, who holds it; the controller keeps nothing for it.
    assert not [job for job in world.state.jobs.values() if job.state == "running"]
    for job in world.slurm.jobs.values():
        if job.state == "PENDING":
            assert job.priority == 0
            world.slurm.finish(job, "CANCELLED")
    world.settle()
    assert not world.state.jobs
    assert world.state.occupancy.free == PLANT.gpus
