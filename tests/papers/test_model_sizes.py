"""Parameter counts as published or as counted in the frameworks' own models; no tolerance unless one is given."""

import pytest

from ropewalk.workload import zoo

TORCHVISION = {
    # torchvision's table of classification models, and `sum(p.numel() ...)` of its models.
    "alexnet": 61_100_840, "vgg11": 132_863_336, "vgg13": 133_047_848, "vgg16": 138_357_544, "vgg19": 143_667_240,
    "resnet18": 11_689_512, "resnet34": 21_797_672, "resnet50": 25_557_032, "resnet101": 44_549_160,
    "resnet152": 60_192_808, "inception-v3": 23_834_568, "inception-v3:aux=true": 27_161_264, "vit-b-16": 86_567_656,
    "vit-b-32": 88_224_232, "vit-l-16": 304_326_632, "vit-l-32": 306_535_400, "vit-h-14": 632_045_800,
}  # fmt: skip

TRANSFORMERS = {
    # Counted from transformers 5.22 configuration classes; GPT-3 sizes as GPT-2 models with 2048 positions.
    "gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200,
    "gpt3-125m": 125_226_240, "gpt3-350m": 355_871_744, "gpt3-760m": 760_300_032, "gpt3-1.3b": 1_315_723_264,
    "gpt3-2.7b": 2_651_553_280, "gpt3-6.7b": 6_658_404_352, "gpt3-13b": 12_853_386_240, "gpt3-175b": 174_604_259_328,
    "bert-base": 109_514_298, "bert-large": 335_174_458, "bert-48": 637_483_834,
    "llama-7b": 6_738_415_616, "llama-13b": 13_015_864_320, "llama-30b": 32_528_943_616, "llama-65b": 65_285_660_672,
    "llama2-7b": 6_738_415_616, "llama2-13b": 13_015_864_320, "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248, "llama3-70b": 70_553_706_496, "llama3-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400, "llama-3.2-3b": 3_212_749_824,
    "mixtral-8x7b": 46_702_792_704, "mixtral-8x22b": 140_630_071_296, "deepseek-v3": 671_026_404_352,
    "xlnet-24": 360_300_800, "xlnet-36": 524_050_688,
}  # fmt: skip

MODEL_CARDS = {
    # Parameters of the published weights, as model cards count them (tensors of their safetensors files).
    "mistral-7b": 7_241_732_096, "qwen3-0.6b": 596_049_920, "qwen3-1.7b": 1_720_574_976, "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360, "qwen3-14b": 14_768_307_200, "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624, "qwen3-235b-a22b": 235_093_634_560, "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664, "qwen2.5-32b": 32_763_876_352, "qwen2.5-72b": 72_706_203_648,
    "gemma2-2b": 2_614_341_888, "gemma2-9b": 9_241_705_984, "gemma2-27b": 27_227_128_320, "gemma3-1b": 999_885_952,
    "gpt-oss-20b": 20_914_757_184, "gpt-oss-120b": 116_829_156_672, "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v2": 235_741_434_880, "mamba2-130m": 128_989_632, "mamba2-2.7b": 2_702_599_680,
    "llava-1.5-7b": 7_063_427_072, "qwen2-vl-7b": 8_291_375_616,
    "gpt-j-6b": 6_050_882_784, "falcon-7b": 6_921_720_704, "falcon-40b": 41_303_293_952,
}  # fmt: skip

WITH_VISION = {"gemma3-4b": 4_300_079_472, "gemma3-12b": 12_187_325_040, "gemma3-27b": 27_432_406_640}
"""Gemma 3 with its encoder of images (SigLIP, 416,866,032) and the layer between the two."""

ROUGHLY = {
    # Megatron-LM 2021 and 2022: 22B, 175B, 530B, 1T (1008B); DAPPLE, Table of models: GNMT-16, BERT-48, AmoebaNet-36;
    # DeepSeekMoE: 16.4B; GPipe, Table 1: AmoebaNet-D of 18 layers and 208 filters, of 36 layers and 544.
    "megatron-22b": (22e9, 0.01), "megatron-175b": (174.6e9, 0.01), "megatron-530b": (529.6e9, 0.01),
    "megatron-1t": (1008e9, 0.01), "gnmt-16": (291e6, 0.01), "bert-48": (640e6, 0.01), "amoebanet-36": (933e6, 0.01),
    # PaLM, Table 1: 8.63B, 62.50B, 540.35B.
    "palm-8b": (8.63e9, 0.001), "palm-62b": (62.50e9, 0.001), "palm-540b": (540.35e9, 0.0001),
    # Nemotron-H: 8.1B; Nemotron 3 Super 120B-A12B and Ultra 550B, without the layers that predict further tokens.
    "nemotron-h-8b": (8.1e9, 0.001), "nemotron-3-super": (120.6e9, 0.001), "nemotron-3-ultra": (550e9, 0.002),
    "mamba2-370m": (370e6, 0.01), "mamba2-780m": (780e6, 0.01), "mamba2-1.3b": (1.344e9, 0.01),
    "deepseek-moe-16b": (16.4e9, 0.01), "amoebanet-18:filters=208": (82e6, 0.01),
    "amoebanet-36:filters=544": (1.05e9, 0.01),
}  # fmt: skip


@pytest.mark.parametrize(("name", "parameters"), {**TORCHVISION, **TRANSFORMERS, **MODEL_CARDS}.items())
def test_a_model_has_exactly_the_parameters_of_its_framework(name: str, parameters: int) -> None:
    assert zoo.build(name, 1).parameters() == parameters


@pytest.mark.parametrize(("name", "whole"), WITH_VISION.items())
def test_gemma_3_has_the_published_count_less_what_sees(name: str, whole: int) -> None:
    model = zoo.family_of(name)
    assert model is not None
    between = 1152 * (model.shape.hidden + 1)
    assert zoo.build(name, 1).parameters() == whole - 416_866_032 - between


@pytest.mark.parametrize(("name", "published"), ROUGHLY.items())
def test_a_model_has_about_the_published_parameters(name: str, published: tuple[float, float]) -> None:
    parameters, tolerance = published
    assert zoo.build(name, 1).parameters() == pytest.approx(parameters, rel=tolerance)


def test_deepseek_v3_with_the_biases_of_its_routers_has_the_published_count() -> None:
    assert zoo.build("deepseek-v3", 1).parameters() + 58 * 256 == 671_026_419_200


def test_nemotron_3_nano_with_the_biases_of_its_routers_has_the_published_count() -> None:
    assert zoo.build("nemotron-3-nano", 1).parameters() + 23 * 128 == 31_577_940_288


def test_kimi_k2_with_the_biases_of_its_routers_has_the_published_count() -> None:
    assert zoo.build("kimi-k2", 1).parameters() + 60 * 384 == 1_026_408_232_448


def test_deepseek_v3_with_its_prediction_layer_has_the_published_count() -> None:
    """The published weights count 684,489,845,504: the layer (11.5 B of its own) has copies of table and head."""
    main, whole = (zoo.build(name, 1).parameters() for name in ("deepseek-v3", "deepseek-v3:mtp=1"))
    assert whole - main == pytest.approx(11.5e9, rel=0.01)
    assert whole + 59 * 256 + 2 * 129280 * 7168 == 684_489_845_504


def test_the_encoder_of_bert_has_the_published_count() -> None:
    """BERT-base without its head but with the pooler that was trained with it: 109,482,240 (Devlin et al., 110M)."""
    head = zoo.build("bert-base", 1).layers[-1].parameters()
    assert zoo.build("bert-base", 1).parameters() - head + 768 * 769 == 109_482_240


def test_candle_uno_in_the_sizes_of_topoopt() -> None:
    """Wang et al., TopoOpt (NSDI 2023): 785,420,291 on the testbed, 1,188,171,779 and 23,610,605,571 in simulation."""
    assert zoo.build("candle-uno", 10).parameters() == 785_420_291
    assert zoo.build("candle-uno", 256, towers=(4096,) * 12, dense=(4096,) * 8).parameters() == 1_188_171_779
    assert zoo.build("candle-uno", 256, towers=(16384,) * 16, dense=(16384,) * 8).parameters() == 23_610_605_571


@pytest.mark.parametrize(
    ("name", "published"),
    # Multiply-adds of one image in torchvision's table, in units of 1e9.
    [("resnet50", 4.09), ("resnet101", 7.80), ("resnet152", 11.51), ("vgg16", 15.47), ("alexnet", 0.71),
     ("inception-v3", 5.71), ("vit-b-16", 17.56), ("vit-l-16", 61.55)],
)  # fmt: skip
def test_the_arithmetic_of_an_image_is_the_published_one(name: str, published: float) -> None:
    kernels = [k for layer in zoo.build(name, 1).layers for op in layer.operators for k in op.forward()]
    products = sum(k.flops for k in kernels if k.kind in ("matmul", "convolution", "attention"))
    assert products / 2e9 == pytest.approx(published, rel=0.02)


def test_megatron_counts_arithmetic_as_its_paper_does() -> None:
    """Narayanan et al. (2021), equation 3 without recomputation: 72 B s l h² (1 + s/6h + V/12lh) for both passes.

    The forward pass is a third of it.
    """
    model = zoo.build("megatron-22b", 1)
    s, l, h, v = 2048, 48, 6144, 51200  # noqa: E741
    kernels = [k for layer in model.layers for op in layer.operators for k in op.forward()]
    products = sum(k.flops for k in kernels if k.kind == "matmul")
    assert products == pytest.approx(24 * s * l * h**2 * (1 + s / (6 * h) + v / (12 * l * h)), rel=1e-9)


def products(name: str, sequence: int, *kinds: str) -> float:
    """Arithmetic of the forward pass of one sample."""
    layers = zoo.build(name, 1, sequence, stack="megatron").layers
    return sum(k.flops for layer in layers for op in layer.operators for k in op.forward() if k.kind in kinds)


@pytest.mark.parametrize(
    ("name", "active"),
    # Weights that a token is multiplied with: all but the table of words, norms, biases, and experts not chosen. Of
    # Qwen3-30B-A3B 3.3 B are active with the table, of 235B-A22B 22 B, of GPT-OSS 3.6 B and 5.1 B (model cards).
    [("qwen3-8b", 36 * (4096 * (4096 + 2048 + 4096) + 3 * 4096 * 12288) + 151936 * 4096),
     ("qwen3-30b-a3b", 48 * (2048 * (4096 + 1024 + 4096 + 128) + 24 * 2048 * 768) + 151936 * 2048),
     ("qwen3-235b-a22b", 94 * (4096 * (8192 + 1024 + 8192 + 128) + 24 * 4096 * 1536) + 151936 * 4096),
     ("gpt-oss-20b", 24 * (2880 * (4096 + 1024 + 4096 + 32) + 12 * 2880**2) + 201088 * 2880),
     ("deepseek-v2-lite", 27 * 2048 * (16 * 192 + 576 + 16 * 128) + 27 * 512 * 16 * 256 + 3 * 2048 * 10944
      + 26 * (2048 * 64 + 24 * 2048 * 1408) + 102400 * 2048),
     ("gpt-oss-120b", 36 * (2880 * (4096 + 1024 + 4096 + 128) + 12 * 2880**2) + 201088 * 2880)],
)  # fmt: skip
def test_a_token_is_multiplied_once_with_every_weight_that_is_active(name: str, active: int) -> None:
    assert products(name, 512, "matmul", "grouped_matmul") == 2 * 512 * active


def test_half_of_the_layers_of_gpt_oss_look_at_128_tokens() -> None:
    """Two products of 64 heads of 64 numbers; a token of the window's layers meets 128, the first ones fewer."""
    windowed, whole = 4096 * 128 - 128**2 / 2, 4096**2 / 2
    assert products("gpt-oss-20b", 4096, "attention") == pytest.approx(12 * 4 * 64 * 64 * (windowed + whole))
    assert products("gpt-oss-20b:window=0,whole_every=0", 4096, "attention") == 24 * 4 * 64 * 64 * whole
