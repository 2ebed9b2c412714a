"""The page of a snapshot in a real browser: drawn without a word, in light and dark."""

import re

import pytest
from browser import browse, needs_browser, plots
from snapshot_worlds import moment

from ropewalk.report.cluster_snapshot import snapshot_page
from ropewalk.sim.level import LevelUse, PacketOptions
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.snapshot import SnapshotQuestion, answer
from ropewalk.tenancy.work import Iteration, JobExchange

EVIL = "<script>document.title='broken'</script>"

pytestmark = needs_browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_snapshot_draws_all_its_charts_within_the_window(tmp_path, scheme):
    work = Iteration(1e-6, (JobExchange("all-to-all", 1e6),))
    jobs = [Job(f"{EVIL}{number}", 6, 0.0, 1e9, work) for number in range(2)]
    use = LevelUse("packet", "rdma-pfc", PacketOptions(buffer_bytes=1_000_000))
    where = plant("leaf-spine:3x4x4", gpus_per_server=2)
    page = snapshot_page(answer(SnapshotQuestion(moment(jobs, "ecmp", 1.0, where), use, iterations=1)), [EVIL])
    measure = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script></body>"
    options = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    document, console = browse(page.replace("</body>", measure), tmp_path, "--window-size=1200,1400", *options)
    assert console == []
    packets = {"packet-throughput", "packet-queues", "packet-pauses", "packet-nodes"}
    assert plots(document) == {"slowdown", "course", "places", *packets}
    needed, room = map(int, re.search(r"<title>(\d+) of (\d+)</title>", document).groups())
    assert needed <= room == 1200
