"""Who sends which samples to whom."""

import pytest

from ropewalk.errors import StrategyError
from ropewalk.pipeline.handover import message_count, messages


@pytest.mark.parametrize(
    ("sources", "targets", "count"), [(8, 8, 8), (15, 1, 15), (11, 5, 15), (4, 6, 8), (3, 2, 4), (14, 2, 14)]
)
def test_m_replicas_send_n_replicas_m_plus_n_minus_gcd_messages(sources, targets, count):
    assert message_count(sources, targets) == count
    assert len(messages(range(sources), range(100, 100 + targets))) == count


def test_three_replicas_feed_two_with_whole_samples():
    sent = messages((0, 1, 2), (3, 4))
    assert [(m.source, m.target, list(m.samples(6))) for m in sent] == [
        (0, 3, [0, 1]),
        (1, 3, [2]),
        (1, 4, [3]),
        (2, 4, [4, 5]),
    ]


def test_a_sample_is_not_cut_in_two():
    with pytest.raises(StrategyError, match="micro-batch of 4 samples cuts a sample between GPUs 0 and 3"):
        messages((0, 1, 2), (3, 4))[0].samples(4)


def test_a_stage_needs_a_replica():
    with pytest.raises(StrategyError, match="neither sends nor receives"):
        messages((), (1,))
