"""Models by name: `build("llama-7b", batch=1)`, `build("gpt:layers=24,hidden=2304,heads=24", batch=4)`.

Operators and kernels are those that PyTorch launches for the model in training mode with its own defaults: image
models as torchvision has them, language models as transformers has them, the loss included.
"""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from functools import partial

from ropewalk.choices import Choices
from ropewalk.errors import WorkloadError
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo import (
    amoebanet,
    bert,
    gnmt,
    gpt,
    hybrid,
    inception,
    like_llama,
    llama,
    megatron,
    mixture,
    mpt,
    parallel,
    recommendation,
    resnet,
    topoopt,
    vgg,
    vision_language,
    vit,
    xlnet,
)  # fmt: skip
from ropewalk.workload.zoo.entry import Option, ZooEntry
from ropewalk.workload.zoo.transformer import (
    STYLES,
    TransformerEntry,
    TransformerFamily,
    entry,
    hybrid_entry,
    mixture_entry,
)

__all__ = ["ALIASES", "ZOO", "TransformerFamily", "ZooEntry", "build", "family_of", "find"]

PICTURE: dict[str, Option] = {"side": 224, "classes": 1000}


def _images() -> list[ZooEntry]:
    """Classifiers of images."""
    return [
        ZooEntry("alexnet", vgg.alexnet, "AlexNet image classifier", options=PICTURE),
        *(ZooEntry(name, vgg.vgg, "VGG image classifier", options=PICTURE) for name in vgg.STAGES),
        *(ZooEntry(name, resnet.resnet, "ResNet image classifier", options=PICTURE) for name in resnet.DEPTHS),
        ZooEntry(
            "inception-v3", inception.inception, "Inception image classifier",
            options={"side": 299, "classes": 1000, "aux": False},
        ),
        *(
            ZooEntry(name, vit.vit, "Vision Transformer image classifier", options=PICTURE | {"attention": "fused"})
            for name in vit.SHAPES
        ),
        *(
            ZooEntry(
                f"amoebanet-{depth}", partial(amoebanet.amoebanet, layers=depth), "AmoebaNet image classifier",
                options={"layers": depth, "filters": 512, **PICTURE},
            )
            for depth in (18, 36)
        ),
    ]  # fmt: skip


def _texts() -> list[ZooEntry]:
    """Transformers of published sizes."""
    return [
        entry(name, about, shape, style)
        for style, about, shapes in (
            ("gpt", "GPT language model", gpt.SHAPES),
            ("bert", "BERT masked language model", bert.SHAPES),
            ("llama", "Llama language model", llama.SHAPES),
            *(("llama", about, shapes) for about, shapes in like_llama.SHAPES.items()),
            ("parallel", "language model of parallel blocks", parallel.SHAPES),
            ("megatron", "GPT language model as in Megatron-LM", megatron.SHAPES),
            ("mpt", "MPT language model", mpt.SHAPES),
            ("xlnet", "XLNet language model", xlnet.SHAPES),
        )
        for name, shape in shapes.items()
    ]


def _translators() -> list[ZooEntry]:
    """Recurrent networks that translate."""
    return [
        ZooEntry(
            f"gnmt-{depth}", partial(gnmt.gnmt, layers=depth), "GNMT translation model", sequence=50,
            options={"layers": depth, "hidden": 1024, "vocabulary": 36548, "dropout": True},
        )
        for depth in (8, 16)
    ]  # fmt: skip


def _tables() -> list[ZooEntry]:
    """Recommendation and tables: their weights are mostly embeddings, or layers without blocks."""
    return [
        ZooEntry(
            "dlrm", recommendation.dlrm, "recommendation model",
            options={
                "tables": 26, "rows": 100_000, "width": 128, "lookups": 1, "dense": 13, "bottom": (512, 256),
                "top": (1024, 1024, 512, 256, 1),
            },
        ),
        ZooEntry(
            "ncf", recommendation.ncf, "recommendation model",
            options={
                "tables": 1, "users": 138_493, "items": 26_744, "factors": 64, "width": 128,
                "mlp": (256, 256, 128, 64), "lookups": 1,
            },
        ),
        ZooEntry(
            "candle-uno", recommendation.uno, "drug response model",
            options={"towers": (4096,) * 8, "dense": (4096,) * 4},
        ),
    ]  # fmt: skip


def _entries() -> list[ZooEntry]:
    experts = [
        mixture_entry(name, "mixture-of-experts language model", *shapes) for name, shapes in mixture.SHAPES.items()
    ]
    scans = [
        hybrid_entry(
            name, "Mamba-2 language model" if name.startswith("mamba") else "hybrid of Mamba-2 and attention", *shapes
        )
        for name, shapes in hybrid.SHAPES.items()
    ]
    pairs = [vision_language.entry(name, *shapes) for name, shapes in vision_language.SHAPES.items()]
    any_size = [
        entry(name, f"{name} of any size: layers=, hidden=, heads=, …", style.start, name)
        for name, style in STYLES.items()
    ]
    blocks = [*_texts(), *experts, *scans, *pairs, *any_size]
    return [*_images(), *blocks, *_translators(), *_tables(), *topoopt.entries()]


ZOO = Choices("model", _entries(), error=WorkloadError)
"""Every model, by its name."""

ALIASES = {
    "amoebanet": "amoebanet-18",
    "bert-base-uncased": "bert-base",
    "bert-large-uncased": "bert-large",
    "deepseek-moe": "deepseek-moe-16b",
    "gnmt": "gnmt-8",
    "gpt2-small": "gpt2",
    "gpt3": "gpt3-175b",
    "inception": "inception-v3",
    "gpt-22b": "megatron-22b",
    "gpt-175b": "megatron-175b",
    "gpt-530b": "megatron-530b",
    "gpt-1t": "megatron-1t",
    "llama-1b": "llama-3.2-1b",
    "llama-3b": "llama-3.2-3b",
    "llama-33b": "llama-30b",
    "llama-3.1-8b": "llama3-8b",
    "llama-3.1-70b": "llama3-70b",
    "llama-3.1-405b": "llama3-405b",
    "megatron-gpt-22b": "megatron-22b",
    "megatron-gpt-175b": "megatron-175b",
    "megatron-gpt-530b": "megatron-530b",
    "megatron-gpt-1t": "megatron-1t",
    "mixtral": "mixtral-8x7b",
    "uno": "candle-uno",
    "xlnet-large": "xlnet-24",
    "vit": "vit-b-16",
    "vit-base": "vit-b-16",
    "vit-large": "vit-l-16",
    "vit-huge": "vit-h-14",
}
"""Other names for the same model. Besides, hyphens, underscores and capitals make no difference."""


def plain(name: str) -> str:
    """A name without what makes no difference: capitals, hyphens, underscores and spaces."""
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def spellings() -> dict[str, str]:
    """Names as people may write them, to those of the table."""
    return {plain(name): target for name, target in ALIASES.items()} | {plain(name): name for name in ZOO}


def find(name: str) -> ZooEntry:
    """The entry of this name or of another name for the same model.

    >>> find("ResNet_50").name, find("llama-2-7b").name, find("gpt2-small").name
    ('resnet50', 'llama2-7b', 'gpt2')
    """
    found = spellings()
    if plain(name) not in found:
        near = get_close_matches(plain(name), found, 3)
        meant = f"did you mean {' or '.join(dict.fromkeys(found[one] for one in near))}? " if near else ""
        raise WorkloadError(
            f"model {name!r} is not in the zoo: {meant}give a name of `ropewalk list models`, or any size as "
            f"gpt:layers=24,hidden=2304,heads=24 (also {', '.join(style for style in STYLES if style != 'gpt')})"
        )
    return ZOO[found[plain(name)]]


def build(name: str, batch: int, sequence: int | None = None, **options: object) -> Workload:
    """The model of this name for a micro-batch; options may follow the name, as in `resnet50:side=160`.

    >>> build("gpt2", batch=1).parameters()
    124439808
    """
    bare, _, listed = name.partition(":")
    given = dict(_pairs(name, listed)) if listed else {}
    return find(bare).build(batch, sequence, given | options)


def family_of(name: str) -> TransformerFamily | None:
    """The sizes of a transformer by its name, with options behind it; None for all other models.

    >>> family_of("llama3-8b:layers=4").shape.layers
    4
    """
    bare, _, listed = name.partition(":")
    found = find(bare)
    return found.sized(dict(_pairs(name, listed)) if listed else {}) if isinstance(found, TransformerEntry) else None


def _pairs(name: str, listed: str) -> list[tuple[str, str]]:
    pairs = [part.partition("=") for part in listed.split(",")]
    if any(not option or not value for option, _, value in pairs):
        raise WorkloadError(f"model {name!r}: options follow the colon as name=value, separated by commas")
    found = [(option.strip(), value.strip()) for option, _, value in pairs]
    twice = [option for option, times in Counter(option for option, _ in found).items() if times > 1]
    if twice:
        raise WorkloadError(f"model {name!r}: {twice[0]} is given twice: give it once")
    return found
