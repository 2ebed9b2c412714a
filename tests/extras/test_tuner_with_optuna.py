"""Searching partition size and credit with Optuna, against trying everything."""

import pytest

from ropewalk.device.pricer import pricer
from ropewalk.overlap.gains import LINKS
from ropewalk.overlap.link import ExchangeKind
from ropewalk.overlap.tensors import tensors_of
from ropewalk.overlap.tuner import bayesian, cost_of, exhaustive, space_of
from ropewalk.workload.zoo import build

pytestmark = pytest.mark.extras
pytest.importorskip("optuna")


@pytest.mark.parametrize("kind", list(ExchangeKind))
@pytest.mark.parametrize(("name", "batch", "sequence"), [("vgg16", 32, None), ("bert-large", 1, 512), ("gpt2", 1, 512)])
def test_sixty_trials_come_within_a_hundredth_of_the_whole_grid(
    name: str, batch: int, sequence: int | None, kind: ExchangeKind
) -> None:
    tensors = tensors_of(build(name, batch=batch, sequence=sequence), pricer("v100", "fp32"))
    cost, space = cost_of(tensors, LINKS[kind](8, 10.0)), space_of(tensors)
    whole = exhaustive(cost, space).best.step_s
    for seed in range(3):
        assert bayesian(cost, space, seed=seed).best.step_s <= 1.01 * whole


def test_the_same_seed_tries_the_same_settings_and_another_seed_others() -> None:
    tensors = tensors_of(build("resnet50", batch=32), pricer("v100", "fp32"))
    cost, space = cost_of(tensors, LINKS[ExchangeKind.PARAMETER_SERVER](8, 10.0)), space_of(tensors)
    first, again, other = (bayesian(cost, space, trials=20, seed=seed) for seed in (7, 7, 8))
    assert first == again
    assert first.trials != other.trials


def test_the_answer_says_how_it_was_found() -> None:
    tensors = tensors_of(build("vgg16", batch=32))
    found = bayesian(cost_of(tensors, LINKS[ExchangeKind.ALL_REDUCE](4, 10.0)), space_of(tensors), trials=12, seed=3)
    assert found.method.startswith("bayesian: 12 trials of optuna")
    assert len(found.trials) == 12
