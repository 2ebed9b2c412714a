"""Graph files: as NCCL writes them, and back."""

import pytest

from ropewalk.collectives import ring_all_reduce
from ropewalk.errors import ProgramError
from ropewalk.export.nccl import graph_advice, orders_of, read_ring_graph, ring_graphs, ring_orders, write_ring_graphs


def test_a_file_of_one_server_has_this_text():
    (graph,) = ring_graphs([[0, 2, 1]], speed_intra=20)
    assert graph.to_xml() == (
        '<graphs version="1">\n'
        '  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="20" speedinter="20" latencyinter="0" '
        'typeintra="NVL" typeinter="PIX" samechannels="1">\n'
        "    <channel>\n"
        '      <gpu dev="0x0" rank="0"/>\n'
        '      <gpu dev="0x2" rank="2"/>\n'
        '      <gpu dev="0x1" rank="1"/>\n'
        "    </channel>\n"
        "  </graph>\n"
        "</graphs>\n"
    )


def test_rings_over_servers_are_a_file_for_each_and_come_back_whole(tmp_path):
    orders = [[0, 1, 2, 3], [1, 0, 3, 2]]
    graphs = ring_graphs(orders, [0, 0, 1, 1], [0, 11, 0, 11], speed_intra=20, speed_inter=12)
    paths = write_ring_graphs(graphs, tmp_path / "rings.xml")
    assert [path.name for path in paths] == ["rings.0.xml", "rings.1.xml"]
    text = paths[1].read_text()
    assert '<net dev="0xb"/>' in text
    assert 'crossnic="1"' in text
    assert 'samechannels="0"' in text
    read = [read_ring_graph(path) for path in paths]
    assert read == graphs
    program = ring_all_reduce(orders_of(read))
    program.check()
    assert ring_orders(program) == [(0, 1, 2, 3), (0, 3, 2, 1)]


def test_a_ring_may_begin_anywhere_but_meets_servers_in_ascending_order():
    turned = ring_graphs([[3, 0, 1, 2]], [0, 0, 1, 1], [0, 1, 0, 1], speed_intra=20)
    assert [graph.channels[0].ranks for graph in turned] == [(0, 1), (2, 3)]
    with pytest.raises(ProgramError, match=r"visits servers in the order \[0, 1, 0, 1\]"):
        ring_graphs([[0, 2, 1, 3]], [0, 0, 1, 1], [0, 1, 0, 1], speed_intra=20)
    with pytest.raises(ProgramError, match=r"visits servers in the order \[0, 2, 1\]"):
        ring_graphs([[0, 2, 1]], [0, 1, 2], [0, 0, 0], speed_intra=20)


def test_all_mistakes_of_the_rings_are_told_at_once():
    with pytest.raises(ProgramError, match="3 findings") as told:
        ring_graphs([[0, 0]], [0, 1], speed_intra=20, type_intra="WIRE")
    for part in ("visits [0, 0]", "give the port of every rank", "'WIRE' is unknown"):
        assert part in str(told.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<graph/>", "line 1: begins with <graph>"),
        ('<graphs version="1"/>', "holds no ring"),
        ('<graphs version="1">\n<graph', "line 2, column"),
        ("<!DOCTYPE a []><graphs/>", "declares a document type"),
        (
            '<graphs version="1"><graph id="0" pattern="4" nchannels="2" speedintra="x" speedinter="1" typeintra="NVL" '
            'typeinter="PIX"><channel><net dev="0"/><gpu dev="zz" rank="0"/></channel></graph></graphs>',
            "4 findings",
        ),
    ],
)
def test_files_that_are_no_ring_graphs_are_refused_with_their_line(tmp_path, text, told):
    (tmp_path / "g.xml").write_text(text)
    with pytest.raises(ProgramError, match=told):
        read_ring_graph(tmp_path / "g.xml")


def test_files_of_different_rings_do_not_make_one():
    one = ring_graphs([[0, 1]], speed_intra=20)[0]
    two = ring_graphs([[0, 1], [1, 0]], speed_intra=20)[0]
    with pytest.raises(ProgramError, match=r"\[1, 2\] channels"):
        orders_of([one, two])


def test_advice_names_the_file_and_its_channels():
    assert graph_advice("rings.xml", 2)[0] == "NCCL_GRAPH_FILE=rings.xml"
    assert "NCCL_MIN_NCHANNELS=2" in graph_advice("rings.xml", 2)
