"""The page of a replayed trace in a real browser: drawn without a word, and the map of jobs answers the reader."""

import re

import pytest
from browser import browse, needs_browser, plots

from ropewalk.report.cluster import cluster_page
from ropewalk.tenancy.compared import of_one
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import policies_named
from ropewalk.tenancy.question import ClusterQuestion
from ropewalk.tenancy.study import answer
from ropewalk.tenancy.work import Iteration, JobExchange

EVIL = "<script>document.title='broken'</script>"

pytestmark = needs_browser


def page() -> str:
    work = Iteration(0.5, (JobExchange("all-to-all", 5e9),))
    jobs = [Job(f"{EVIL}{number}", size, float(number), 20, work) for number, size in enumerate((8, 8, 16, 2, 1, 12))]
    small = plant("leaf-spine:4x4x4", gpus_per_server=2)
    policies = policies_named(["vclos"], None, compare=True)
    return cluster_page(of_one(answer(ClusterQuestion(small, jobs, policies, trace=EVIL))))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [800, 1400])
def test_the_page_of_a_trace_draws_all_its_charts_within_the_window(tmp_path, scheme, width):
    measure = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script></body>"
    options = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    document, console = browse(page().replace("</body>", measure), tmp_path, f"--window-size={width},1400", *options)
    assert console == []
    assert plots(document) == {"means", "distribution", "over-time", "reasons"}
    assert int(re.search(r'<canvas[^>]* data-drawn="(\d+)"', document).group(1)) > 5
    needed, room = map(int, re.search(r"<title>(\d+) of (\d+)</title>", document).groups())
    assert needed <= room == width


def test_the_map_of_jobs_changes_its_way_zooms_and_names_jobs(tmp_path):
    act = """<script>
      const canvas = document.querySelector('figure.cluster-map canvas');
      const seen = [canvas.dataset.drawn];
      const press = (what) => {
        document.querySelector('figure.cluster-map ' + what).click();
        seen.push(canvas.dataset.drawn);
      };
      press('[data-view="2"]');
      for (let times = 0; times < 3; times++) document.querySelector('[data-key="+"]').click();
      press('[data-key="+"]');
      press('[data-key="Home"]');
      const box = canvas.getBoundingClientRect();
      const at = { clientX: box.left + box.width * 0.25, clientY: box.top + 45 };
      canvas.dispatchEvent(new PointerEvent('pointermove', at));
      const tip = document.querySelector('figure.cluster-map .tip');
      document.title = seen.join(' ') + ' ' + (tip.hidden ? 'nothing' : tip.textContent.slice(-60));
    </script></body>"""
    document, console = browse(page().replace("</body>", act), tmp_path, "--window-size=1400,1200")
    assert console == []
    shared, isolated, zoomed, whole, tip = re.search(
        r"<title>(\d+) (\d+) (\d+) (\d+) ([^<]+)</title>", document
    ).groups()
    assert int(shared) < int(isolated) == int(whole)  # vClos also draws links
    assert int(zoomed) < int(whole)
    assert "GPUs on" in tip
