"""From operations to layers: edges, hand-overs, tied weights, kept tensors, sums of gradients."""

from ropewalk.workload.adapted import Weights
from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Pointwise
from ropewalk.workload.imports import works
from ropewalk.workload.imports.graph import GraphEvent, Value, result, view
from ropewalk.workload.imports.layering import layers_of


def weight(name: str, *shape: int) -> Value:
    return Value(shape, True, (name,), data=False)


def linear(place: str | None, x: Value, w: Value) -> GraphEvent:
    out = result((x.shape[0], w.shape[0]), (x, w))
    return GraphEvent("linear", place, (x, w), (out,), works.linear(x, w, w.shape[0]))


def add(place: str | None, *terms: Value) -> GraphEvent:
    out = result(terms[0].shape, terms)
    return GraphEvent("add", place, terms, (out,), works.elementwise(terms, out, saves=(), passes_back=0, call="add"))


def test_a_chain_of_two_layers_hands_on_what_the_first_makes() -> None:
    x = Value((2, 4))
    first = linear("one", x, weight("a", 8, 4))
    second = linear("two", first.writes[0], weight("b", 3, 8))
    layers = layers_of([first, second], {"a": 32, "b": 24}, second.writes, {"one": "block"})
    assert [(layer.name, layer.kind, layer.inputs, layer.output_elements) for layer in layers] == [
        ("one", "block", (), 16),
        ("two", "layer", (0,), 6),
    ]
    assert layers[0].operators == (Linear(2, 4, 8, bias=False, first=True),)


def test_a_tied_weight_is_counted_where_it_is_used_first() -> None:
    x, tied = Value((2, 4), gradient=True), weight("a", 4, 4)
    first = linear("one", x, tied)
    second = linear("two", first.writes[0], tied)
    layers = layers_of([first, second], {"a": 16}, second.writes, {})
    assert [layer.parameters() for layer in layers] == [16, 0]
    assert layers[1].operators == (Linear(2, 4, 4, bias=False, tied=True),)


def test_parameters_that_nothing_reads_belong_to_the_last_layer() -> None:
    only = linear("one", Value((2, 4)), weight("a", 4, 4))
    (layer,) = layers_of([only], {"a": 16, "lost": 5, "gone": 2}, only.writes, {})
    assert layer.operators[-1] == Weights(7, 2)


def test_three_readers_of_one_tensor_keep_it_once_and_add_two_gradients() -> None:
    x = Value((2, 4), gradient=True)
    events = [linear("one", x, weight(name, 4, 4)) for name in "qkv"]
    (layer,) = layers_of(events, dict.fromkeys("qkv", 16), tuple(e.writes[0] for e in events), {})
    assert layer.saved_bytes(1) == 8
    sums = [op for op in layer.operators if isinstance(op, Pointwise)]
    assert [(op.passes, op.backward_passes, op.elements) for op in sums] == [(0, 2, 8)]


def test_gradients_of_several_layers_are_added_where_the_tensor_was_made() -> None:
    stem = linear("stem", Value((2, 4)), weight("a", 4, 4))
    left = linear("left", stem.writes[0], weight("b", 4, 4))
    right = linear("right", stem.writes[0], weight("c", 4, 4))
    join = add(None, left.writes[0], right.writes[0])
    layers = layers_of([stem, left, right, join], dict.fromkeys("abc", 16), join.writes, {})
    assert [layer.inputs for layer in layers] == [(), (0,), (0, 1)]
    assert sum(isinstance(op, Pointwise) for op in layers[0].operators) == 1


def test_what_stands_before_the_first_layer_goes_with_it() -> None:
    x = Value((2, 4))
    scaled = add(None, x, x)
    only = linear("one", scaled.writes[0], weight("a", 4, 4))
    layers = layers_of([scaled, only], {"a": 16}, only.writes, {})
    assert [layer.name for layer in layers] == ["one"]
    assert len(layers[0].operators) == 2


def test_a_module_that_runs_again_later_is_a_layer_again() -> None:
    x, shared, other = Value((2, 4), gradient=True), weight("a", 4, 4), weight("b", 4, 4)
    first = linear("one", x, shared)
    second = linear("two", first.writes[0], other)
    third = linear("one", second.writes[0], shared)
    layers = layers_of([first, second, third], {"a": 16, "b": 16}, third.writes, {"one": "block"})
    assert [(layer.name, layer.kind) for layer in layers] == [("one", "block"), ("two", "layer"), ("one#2", "block")]


def test_a_mask_that_needs_no_gradient_makes_no_edge() -> None:
    ids = Value((2, 4))
    mask = GraphEvent("mask", "embed", (ids,), (Value((2, 4)),), [])
    embed = linear("embed", ids, weight("a", 4, 4))
    block = linear("block", embed.writes[0], weight("b", 4, 4))
    head = add("head", block.writes[0], mask.writes[0])
    layers = layers_of([mask, embed, block, head], {"a": 16, "b": 16}, head.writes, {})
    assert [layer.inputs for layer in layers] == [(), (0,), (1,)]


def test_halves_of_one_tensor_cross_as_no_more_than_the_tensor() -> None:
    stem = linear("stem", Value((2, 4)), weight("a", 8, 4))
    whole = stem.writes[0]
    halves = tuple(view((2, 4), whole) for _ in range(2))
    cut = GraphEvent("chunk", None, (whole,), halves)
    block = add("block", *halves)
    layers = layers_of([stem, cut, block], {"a": 32}, block.writes, {})
    assert layers[0].output_elements == 16
