import pytest

from ropewalk.errors import FabricError
from ropewalk.tenancy.imports import compress, expand


def test_ranges_keep_their_leading_zeros():
    assert expand("gpu[008-011,7]") == ["gpu008", "gpu009", "gpu010", "gpu011", "gpu7"]


def test_lists_mix_plain_names_and_several_brackets():
    assert expand("a,r[0-1]n[0,2]-x") == ["a", "r0n0-x", "r0n2-x", "r1n0-x", "r1n2-x"]


@pytest.mark.parametrize("text", ["gpu[3-1]", "gpu[1-2", "gpu1-2]", "gpu[]", "gpu[a-b]", "a,,b", "", "gpu[[1]]", "a b"])
def test_lists_that_cannot_be_read_are_refused(text):
    with pytest.raises(FabricError, match="host list"):
        expand(text)


def test_endless_ranges_are_refused():
    with pytest.raises(FabricError, match="more than"):
        expand("gpu[0-99999999]")
    with pytest.raises(FabricError, match="more than"):
        expand("gpu[0-9999]x[0-9999]")


def test_folding_keeps_the_order_of_ranks():
    assert compress(["gpu3", "gpu1", "gpu2", "x", "gpu4"]) == "gpu[3,1-2],x,gpu4"
    assert compress(["n9", "n10"]) == "n[9-10]"
    assert compress(["n09", "n10", "n010"]) == "n[09-10,010]"


def test_names_that_break_a_list_are_refused():
    with pytest.raises(FabricError, match="rename"):
        compress(["a,b"])
