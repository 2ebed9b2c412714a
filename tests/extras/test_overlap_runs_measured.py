"""What the clock sees of real modules and links, and the buckets that DistributedDataParallel really makes."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

import overlap_jobs as jobs
from torch.nn.parallel import DistributedDataParallel

from ropewalk.execute import LocalRanks
from ropewalk.export.ddp import ddp_settings
from ropewalk.fabric import IdealSwitch
from ropewalk.lab.forwarding import hashed
from ropewalk.lab.lab import built
from ropewalk.lab.needs import missing
from ropewalk.lab.network import LabNetwork, LabSettings
from ropewalk.lab.process import needs_user_namespace
from ropewalk.overlap.groups import Groups

pytestmark = pytest.mark.extras


HAS_LISTED_CAPS = "bucket_cap_mb_list" in DistributedDataParallel.__init__.__annotations__


@pytest.fixture(scope="module")
def processes():
    with LocalRanks(2, timeout_s=600) as started:
        yield started


def test_layers_are_seen_in_the_order_of_the_forward_pass(processes):
    seen = processes.call(jobs.layers_seen, [("attention",)] * 2)[0]
    assert seen.layers == ("embed", "attend", "read")
    owner = dict(zip(seen.parameters, seen.layer, strict=True))
    assert owner["attend.out_proj.weight"] == 1  # its own module is never called
    tensors = seen.tensors("attention")
    assert tensors.total_bytes == 4 * sum(jobs.elements("attention").values())
    assert tensors.compute_s == pytest.approx(seen.compute_s)
    assert min(seen.forward_s) > 0
    assert tensors.names[tensors.in_ready_order[0]].startswith("read.")
    assert tensors.ready_s.max() <= tensors.backward_end_s


@pytest.mark.skipif(not HAS_LISTED_CAPS, reason="needs caps for single buckets: PyTorch 2.13 or newer")
@pytest.mark.parametrize("ends", [[1, 3, 8], [5, 6, 8], [8]], ids=str)
def test_ddp_makes_the_planned_buckets(processes, ends):
    tensors = processes.call(jobs.layers_seen, [("uneven",)] * 2)[0].tensors("uneven")
    settings = ddp_settings(tensors, Groups.cut(tensors.in_ready_order, ends))
    made = processes.call(jobs.buckets_of_ddp, [("uneven", settings.keywords)] * 2)
    expected = [list(bucket) for bucket in settings.buckets]
    assert made == [expected, expected]


@pytest.mark.skipif(needs_user_namespace(), reason="processes with threads enter namespaces of root only")
def test_ranks_sum_over_slow_links_and_leave_no_namespace_behind():
    if lacks := missing():
        pytest.skip("; ".join(lacks))
    elements, mtu, fabric = 100_000, 9000, IdealSwitch(3, 1e9 / 8).build()
    with (
        built(LabNetwork(fabric, settings=LabSettings(mtu=mtu, window_bytes=4 << 20)), hashed(fabric)) as lab,
        LocalRanks(3, timeout_s=600) as processes,
    ):
        seen = processes.call(jobs.sum_over, [(lab.namespace(rank), elements) for rank in range(3)])
        holder = Path(f"/proc/{lab.process.holder}")
        assert holder.exists()
    # A ring sends 2 · 2/3 of the bytes, and headers besides.
    for total, sent, again in seen:
        assert total == 3.0
        assert 4 / 3 * 4 * elements <= sent <= 1.5 * 4 / 3 * 4 * elements + again * mtu
    assert not holder.exists()
