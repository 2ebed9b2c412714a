"""Laws of all models: what is split comes to the whole, work grows with the batch, parameters do not."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.workload import zoo
from ropewalk.workload.operator import Split
from ropewalk.workload.workload import Workload

STYLES = ("gpt", "bert", "llama", "megatron", "mpt", "parallel", "xlnet")
PRODUCTS = ("matmul", "attention", "grouped_matmul", "convolution", "recurrent")
FIXED = ("alexnet", "resnet18", "vit-b-16", "dlrm", "ncf", "gnmt-8")


@st.composite
def transformers(draw: st.DrawFn) -> Workload:
    heads = 8 * draw(st.integers(1, 2))
    size = draw(st.sampled_from((8, 16)))
    return zoo.build(
        draw(st.sampled_from(STYLES)), draw(st.integers(1, 4)), 8 * draw(st.integers(1, 4)),
        layers=draw(st.integers(1, 3)), hidden=heads * size, heads=heads, ffn=64 * draw(st.integers(1, 4)),
        vocabulary=64 * draw(st.integers(2, 20)), attention=draw(st.sampled_from(("fused", "written"))),
        dropout=draw(st.booleans()),
    )  # fmt: skip


def products(model: Workload, split: Split) -> float:
    return sum(
        kernel.flops
        for layer in model.layers
        for operator in layer.split(split).operators
        for kernel in operator.forward() + operator.backward()
        if kernel.kind in PRODUCTS
    )


@given(transformers(), st.sampled_from((2, 4, 8)))
def test_tensor_ranks_together_do_the_products_of_the_whole(model: Workload, ways: int) -> None:
    """All products are split but those of BERT's extra layer, which every rank does whole."""
    whole, part = products(model, Split()), products(model, Split(tensor=ways))
    if model.name != "bert":
        assert abs(part * ways - whole) <= 1e-9 * whole
    else:
        assert whole / ways <= part <= whole


@given(transformers(), st.sampled_from((2, 4, 8)))
def test_tensor_ranks_together_hold_the_parameters_of_the_whole(model: Workload, ways: int) -> None:
    """Every matrix is split; vectors outside split regions, positions and narrow layers are whole on every rank."""
    whole = model.parameters()
    part = sum(layer.split(Split(tensor=ways)).parameters() for layer in model.layers)
    assert whole / ways <= part <= whole
    blocks = [layer for layer in model.layers if layer.kind == "block"]
    hidden = blocks[0].output_elements // model.tokens
    # What is whole on each rank in a block: two norms and two biases, and XLNet's unused segments.
    kept = sum(layer.split(Split(tensor=ways)).parameters() - layer.parameters() / ways for layer in blocks)
    assert kept <= len(blocks) * 10 * hidden


@given(transformers(), st.sampled_from((2, 4)))
def test_sequence_parallel_ranks_do_no_more_than_tensor_parallel_ones(model: Workload, ways: int) -> None:
    def moved(split: Split) -> float:
        return sum(
            kernel.moved_bytes(2)
            for layer in model.layers
            for operator in layer.split(split).operators
            for kernel in operator.forward() + operator.backward()
        )

    assert moved(Split(tensor=ways, sequence=True)) <= moved(Split(tensor=ways)) <= moved(Split())


@given(transformers(), st.integers(2, 5))
def test_products_grow_with_the_batch_and_parameters_do_not(model: Workload, times: int) -> None:
    larger = model.at_batch(times * model.batch)
    assert larger.parameters() == model.parameters()
    assert larger.parameter_tensors() == model.parameter_tensors()
    assert abs(products(larger, Split()) - times * products(model, Split())) <= 1e-9 * products(larger, Split())


@settings(max_examples=20)
@given(st.sampled_from(FIXED), st.integers(1, 4), st.integers(2, 4))
def test_other_models_grow_with_the_batch_too(name: str, batch: int, times: int) -> None:
    model, larger = zoo.build(name, batch), zoo.build(name, times * batch)
    assert larger.parameters() == model.parameters()
    assert abs(products(larger, Split()) - times * products(model, Split())) <= 1e-9 * products(larger, Split())
    for mine, its in zip(model.layers, larger.layers, strict=True):
        assert its.output_elements in (times * mine.output_elements, mine.output_elements)


@given(st.sampled_from((1, 2, 4, 8)), st.integers(1, 3), st.integers(1, 2))
def test_expert_ranks_together_hold_every_expert_once(ways: int, batch: int, choices: int) -> None:
    model = zoo.build(
        "mixtral-8x7b", batch, 8, layers=2, hidden=64, heads=4, kv_heads=4, expert_ffn=96, choices=choices
    )
    for layer in (layer for layer in model.layers if layer.kind == "block"):
        part = layer.split(Split(expert=ways))
        experts = 3 * 8 * 64 * 96
        assert part.parameters() - (layer.parameters() - experts) == experts // ways
        assert part.forward_flops() == layer.forward_flops()
