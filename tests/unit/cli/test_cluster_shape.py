"""How people write servers of GPUs."""

import pytest

from ropewalk.cli.cluster_shape import equal_servers, servers
from ropewalk.errors import InputError


def test_equal_servers_and_servers_one_by_one_can_be_written():
    assert servers("3x2") == servers("2,2,2") == (2, 2, 2)
    assert equal_servers(" 4x8 ") == (4, 8)
    assert servers("8, 4") == (8, 4)
    assert servers("8") == (8,)


@pytest.mark.parametrize("text", ["", "x8", "2x", "2x8x2", "2x0", "-2x8", "two x eight", "999999x999999"])
def test_what_is_no_cluster_is_refused(text):
    with pytest.raises(InputError, match="cluster"):
        servers(text)
