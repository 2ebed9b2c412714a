"""`--power`: a limit is given once, for a device whose energies are known."""

from __future__ import annotations

import pytest

from ropewalk.cli.cluster_options import held_to
from ropewalk.errors import InputError


def test_a_limit_follows_the_name_of_the_device() -> None:
    assert (held_to("h200", "500W"), held_to("h200", None)) == ("h200@500W", "h200")


@pytest.mark.parametrize(
    ("device", "why"), [("h200@700W", "has a power limit already"), ("my.csv.gz", "is a table of measurements")]
)
def test_a_second_limit_and_a_table_are_refused(device: str, why: str) -> None:
    with pytest.raises(InputError, match=f"{why}.*leave --power 500W out"):
        held_to(device, "500W")
