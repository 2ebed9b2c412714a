"""A job that another scheduler did not start goes back into the queue, first in line."""

import pytest

from ropewalk.serve.controller import Controller
from ropewalk.serve.operation import End, Requeue, Submit
from ropewalk.serve.outcome import Refused
from ropewalk.tenancy.plant import plant


def small():
    return Controller.empty(plant("leaf-spine:4x8x8", gpus_per_server=4))


def test_a_requeued_job_is_first_in_line_again():
    controller = small()
    for name in ("all", "next"):
        controller.apply(Submit(name, 32), 0.0)
    outcome = controller.apply(Requeue("j1", "nodes are busy"), 1.0)
    assert [event.kind for event in outcome.events] == ["job-requeued", "job-started"]
    assert outcome.answer["state"] == "running"
    assert outcome.answer["restarts"] == 1
    assert controller.state.jobs["j2"].state == "pending"


def test_a_requeued_job_keeps_links_that_are_being_released():
    controller = small()
    controller.state.settings = type(controller.state.settings)(keep_links=True)
    controller.apply(Submit("wide", 32), 0.0)
    outcome = controller.apply(Requeue("j1"), 1.0)
    # Its own links are still taken until their rules are gone, so it waits.
    assert outcome.answer["state"] == "pending"
    assert outcome.answer["releasing"] == [1]


def test_requeueing_what_waits_changes_nothing_and_what_has_ended_is_refused():
    controller = small()
    for name in ("all", "next"):
        controller.apply(Submit(name, 32), 0.0)
    assert not controller.apply(Requeue("j2"), 1.0).changed
    controller.apply(End("j2"), 2.0)
    with pytest.raises(Refused, match="has ended"):
        controller.apply(Requeue("j2"), 3.0)
