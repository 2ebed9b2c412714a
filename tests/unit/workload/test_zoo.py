"""The zoo as a user meets it: names, other names, options, and what is refused with which remedy."""

import pytest

from ropewalk.errors import WorkloadError
from ropewalk.workload import zoo
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.operator import Split
from ropewalk.workload.workload import Layer, Workload


def small(name: str, **options: object) -> Workload:
    found = zoo.find(name)
    short = found.sequence and "images" not in found.options
    return zoo.build(name, 2, 16 if short else None, **options)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("resnet-50", "resnet50"), ("ResNet50", "resnet50"), ("inception_v3", "inception-v3"),
        ("vit_b_16", "vit-b-16"), ("llama-2-7b", "llama2-7b"), ("llama-3-8b", "llama3-8b"),
        ("llama3.2-1b", "llama-3.2-1b"), ("gpt2-small", "gpt2"), ("gpt3-1.3b", "gpt3-1.3b"), ("gpt3-13b", "gpt3-13b"),
        ("gpt-1t", "megatron-1t"), ("xlnet-large", "xlnet-24"), ("uno", "candle-uno"),
    ],
)  # fmt: skip
def test_other_names_lead_to_the_same_model(written: str, meant: str) -> None:
    assert zoo.find(written).name == meant


def test_no_two_names_of_the_zoo_are_spelt_the_same_without_hyphens() -> None:
    plain = [name.replace("-", "") for name in list(zoo.ZOO)]
    assert len(set(plain)) == len(plain)


def test_every_alias_leads_somewhere_and_hides_no_model() -> None:
    assert set(zoo.ALIASES.values()) <= set(zoo.ZOO)
    assert not set(zoo.ALIASES) & set(zoo.ZOO)


def test_an_unknown_name_is_refused_with_the_nearest_ones() -> None:
    with pytest.raises(WorkloadError, match=r"'resnet51' is not in the zoo: did you mean resnet5?0?"):
        zoo.build("resnet51", 1)


def test_a_name_like_no_other_is_refused_with_the_remedy() -> None:
    with pytest.raises(WorkloadError, match=r"is not in the zoo: give a name of .*, or any size as gpt:layers"):
        zoo.build("qqqq", 1)


def test_a_sequence_for_an_image_model_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"resnet50: its samples are not sequences.*leave the sequence out"):
        zoo.build("resnet50", 1, 128)


def test_more_tokens_than_positions_are_refused_unless_the_table_grows() -> None:
    with pytest.raises(WorkloadError, match=r"gpt2: its table has 1024 positions.*or positions=2048"):
        zoo.build("gpt2", 1, 2048)
    assert zoo.build("gpt2", 1, 2048, positions=2048).parameters() == 124439808 + 1024 * 768


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(WorkloadError, match=r"3 findings(.|\n)*0 samples(.|\n)*0 tokens(.|\n)*did you mean hidden"):
        zoo.build("gpt2", 0, 0, hiden=3)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("gpt:heads=7", "7 heads do not divide hidden=768"),
        ("llama:kv_heads=5", "5 kv_heads do not divide 32 heads"),
        ("gpt:layers=0", "layers=0: give a whole number, 1 or more"),
        ("gpt:layers=many", "layers=many: give a whole number"),
        ("gpt:dropout=maybe", "give true or false"),
        ("gpt:attention=fast", "attention=fast is not known: give fused or written"),
        ("gpt:layers", "options follow the colon as name=value"),
        ("mixtral-8x7b:choices=9", "cannot go to 9 of 8 experts"),
        ("vit-b-16:side=225", "do not divide into patches of 16"),
        ("resnet50:side=8", "vanish on the way"),
        ("amoebanet-18:layers=4", "give layers= a multiple of 3"),
        ("resnet50:classes=0", "classes=0: give a whole number, 1 or more"),
        ("dlrm:tables=0", "tables=0: give a whole number, 1 or more"),
        ("candle-uno:towers=4096x0", "towers=4096x0: give a whole number, 1 or more"),
        ("vit-b-16:attention=fast", "attention=fast is not known: give fused or written"),
        ("gnmt-8:layers=2", "give layers= an even number from 4 on"),
        ("gnmt-8:layers=7", "give layers= an even number from 4 on"),
    ],
)
def test_sizes_that_make_no_model_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(WorkloadError, match=complaint):
        zoo.build(name, 1)


def test_options_in_the_name_and_as_arguments_are_the_same() -> None:
    named = zoo.build("gpt:layers=2,hidden=128,heads=4,vocabulary=1000", 2, 16)
    assert named == zoo.build("gpt", 2, 16, layers=2, hidden=128, heads=4, vocabulary=1000)


def test_sizes_of_stacks_are_read_from_text() -> None:
    named = zoo.build("dlrm:bottom=64x32,top=16x1,width=8,tables=3,rows=1000", 4)
    assert named == zoo.build("dlrm", 4, bottom=(64, 32), top=(16, 1), width=8, tables=3, rows=1000)


@pytest.mark.parametrize("name", list(zoo.ZOO))
def test_every_model_can_be_built_and_resized(name: str) -> None:
    model = small(name)
    twice = model.at_batch(4)
    assert twice == zoo.build(name, 4, model.sequence or None)
    assert twice.parameters() == model.parameters() > 0
    assert twice.forward_flops() > 1.5 * model.forward_flops() > 0


def test_image_models_take_another_side() -> None:
    half = zoo.build("resnet50", 8, side=112)
    assert half.parameters() == zoo.build("resnet50", 8).parameters()
    assert half.forward_flops() < zoo.build("resnet50", 8).forward_flops() / 3.5


def test_without_a_sequence_a_model_has_its_own() -> None:
    lengths = {name: zoo.build(name, 1).sequence for name in ("gpt2", "bert-base", "llama-7b", "resnet50", "gnmt-8")}
    assert lengths == {"gpt2": 1024, "bert-base": 512, "llama-7b": 2048, "resnet50": 0, "gnmt-8": 50}


def test_graphs_are_graphs_and_chains_are_chains() -> None:
    assert [layer.inputs for layer in zoo.build("dlrm", 8).layers] == [(), (), (0, 1), (2,)]
    assert zoo.build("gpt2", 1, 16).is_chain
    assert zoo.build("resnet18", 1).is_chain
    assert zoo.build("inception-v3", 1).is_chain
    assert not zoo.build("inception-v3", 1, aux=True).is_chain
    memory = next(at for at, layer in enumerate(zoo.build("gnmt-8", 2).layers) if layer.name == "encoder 3")
    assert memory in next(layer for layer in zoo.build("gnmt-8", 2).layers if layer.name == "decoder 0").inputs


def meetings(layer: Layer) -> list[tuple[Meeting, int]]:
    return [(op.meeting, op.elements) for op in layer.operators if isinstance(op, Exchange)]


@pytest.mark.parametrize("name", ["gpt2", "bert-base", "llama-7b", "megatron-22b", "mpt-125m", "xlnet-24"])
def test_a_block_is_entered_and_left_twice_with_all_of_its_activations(name: str) -> None:
    block = small(name, layers=1, hidden=64, heads=4, vocabulary=100).layers[1]
    whole = 2 * 16 * 64
    assert meetings(block) == [(Meeting.ENTER, whole), (Meeting.LEAVE, whole)] * 2


def test_experts_lie_between_dispatch_and_combine() -> None:
    block = small("mixtral-8x7b", layers=1, hidden=64, heads=4, kv_heads=4, vocabulary=100).layers[1]
    tokens, copies = 2 * 16 * 64, 2 * 2 * 16 * 64
    assert meetings(block) == [
        (Meeting.ENTER, tokens), (Meeting.LEAVE, tokens), (Meeting.ENTER, tokens), (Meeting.DISPATCH, copies),
        (Meeting.COMBINE, copies), (Meeting.LEAVE, tokens),
    ]  # fmt: skip


def test_tables_of_a_recommendation_model_meet_its_ranks() -> None:
    assert meetings(zoo.build("dlrm", 512).layers[1]) == [(Meeting.TABLES, 26 * 512 * 128)]


def test_expert_parallelism_keeps_the_tokens_and_shares_the_experts() -> None:
    block = small("mixtral-8x7b", layers=1, hidden=64, heads=4, kv_heads=4, expert_ffn=128, vocabulary=100).layers[1]
    shared = block.split(Split(expert=4))
    assert shared.forward_flops() == block.forward_flops()
    assert block.parameters() - shared.parameters() == 6 * 3 * 64 * 128


def test_written_attention_keeps_its_scores_and_fused_does_not() -> None:
    fused = small("gpt2", layers=1).layers[1]
    written = small("gpt2", layers=1, attention="written").layers[1]
    scores = 2 * 12 * 16 * 16
    # The softmax keeps its result, the product what is left of it after dropout, dropout its mask.
    assert written.saved_bytes(2) - fused.saved_bytes(2) == (2 + 2 + 1) * scores
    assert not any(kernel.kind == "attention" for op in written.operators for kernel in op.forward())


def test_without_dropout_fewer_kernels_run() -> None:
    def launches(**options: object) -> int:
        return sum(len(op.forward()) for layer in small("gpt2", layers=3, **options).layers for op in layer.operators)

    assert launches() - launches(dropout=False) == 1 + 2 * 3
