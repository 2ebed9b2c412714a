"""The service is killed inside operations while 16 clients work with it: nothing acknowledged is ever lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import postgres_server
import pytest
from killed_service import Harness

from ropewalk.serve.failpoints import PLACES

pytestmark = pytest.mark.extras
LACK = postgres_server.missing()


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "state.db")
        return
    if LACK is not None:
        pytest.skip(LACK)
    with postgres_server.postgres() as url:
        yield url


@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
def test_nothing_acknowledged_is_lost(tmp_path: Path, database: str) -> None:
    harness = Harness(tmp_path, database, seed=11)
    for place in (*PLACES, "any time"):
        harness.round(place)
    report = harness.finish()
    assert report.violations == []
    assert report.kills.total() == len(PLACES) + 1
    assert report.acknowledged > 200
    assert report.lost > 16


def test_a_service_that_acknowledges_before_the_commit_is_found_out(tmp_path: Path) -> None:
    harness = Harness(tmp_path, str(tmp_path / "state.db"), seed=11, broken=True)
    for place in ("mid-commit", "before-commit", "mid-commit"):
        harness.round(place)
    assert any("was acknowledged and is gone" in one for one in harness.finish().violations)


def test_no_rule_is_on_a_link_of_another_job_and_none_is_left_over(tmp_path: Path) -> None:
    harness = Harness(tmp_path, str(tmp_path / "state.db"), seed=5, rules=True)
    for place in ("after-commit", "mid-answer", "any time"):
        harness.round(place)
    assert harness.finish().violations == []
    check = harness.rule_check
    assert check is not None
    document = next(one for one in check.folder.rglob("*.json") if '"send"' in one.read_text().lower())
    document.write_text(document.read_text().replace('"job": "j', '"job": "j9'))
    assert check.strays()
