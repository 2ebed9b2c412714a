"""Transformers of any size, in the style of a family: `gpt:layers=24,hidden=2304,heads=24`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ropewalk.errors import Findings, WorkloadError
from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo import (
    adapters,
    bert,
    gpt,
    hybrid,
    llama,
    megatron,
    mixture,
    mpt,
    parallel,
    prediction,
    xlnet,
)
from ropewalk.workload.zoo.entry import DEFAULT_STACK, Option, ZooEntry
from ropewalk.workload.zoo.graphs import graphs_named
from ropewalk.workload.zoo.parts import Operators, Run
from ropewalk.workload.zoo.shape import SIDE_BY_SIDE, TRAITS, Transformer
from ropewalk.workload.zoo.stacks import STACKS, Stack
from ropewalk.workload.zoo.wide_parts import LATENT, kept_wide, wide_named

Layers = Callable[[Transformer, Run], list[Layer]]
ATTENTIONS = ("fused", "written")


@dataclass(frozen=True)
class Style:
    """How the layers of a family are made, and a model of that family to start from."""

    layers: Layers
    start: Transformer
    attention: str = "fused"
    """Where the stack is the usual one; all others fuse it."""
    dropout: bool = True
    stacks: tuple[str, ...] = (DEFAULT_STACK,)
    """The stacks that are known to run models of this family."""
    table: bool = True
    """Positions come from a table, so sequences cannot be longer than it."""
    traits: tuple[str, ...] = ()
    """What is not the same in all of its blocks: windows, norms of heads, biases."""
    causal: bool = True
    """It predicts the next word, with the loss that all such models have."""


STYLES = {
    "gpt": Style(gpt.layers, gpt.SHAPES["gpt2"], stacks=tuple(STACKS)),
    "bert": Style(bert.layers, bert.SHAPES["bert-base"], stacks=tuple(STACKS), causal=False),
    "llama": Style(
        llama.layers, llama.SHAPES["llama-7b"], dropout=False, stacks=tuple(STACKS), table=False, traits=TRAITS
    ),
    "megatron": Style(
        megatron.layers, megatron.SHAPES["megatron-22b"], attention="written", stacks=(DEFAULT_STACK, "megatron")
    ),
    "mpt": Style(
        mpt.layers, mpt.SHAPES["mpt-125m"], dropout=False, stacks=(DEFAULT_STACK, "megatron", "fsdp", "fsdp2")
    ),
    "parallel": Style(
        parallel.layers,
        parallel.SHAPES["falcon-7b"],
        dropout=False,
        stacks=(DEFAULT_STACK, "compiled"),
        table=False,
        traits=SIDE_BY_SIDE,
    ),
    "xlnet": Style(xlnet.layers, xlnet.SHAPES["xlnet-24"], attention="written", table=False, causal=False),
}


@dataclass(frozen=True)
class TransformerFamily:
    """What a transformer of the zoo is made of, for programs that build it themselves."""

    name: str
    """A style, such as `llama`; that of a mixture of experts is `mixture`."""
    shape: Transformer
    experts: mixture.Mixture | None = None
    lora: int = 0
    """Rank of the adapters that are trained in place of its weights; 0: all weights are trained."""


@dataclass(frozen=True, kw_only=True)
class TransformerEntry(ZooEntry):
    """A transformer that remembers its sizes."""

    family: TransformerFamily

    def sized(self, given: Mapping[str, object]) -> TransformerFamily:
        """Its family with the sizes that were asked for behind its name."""
        findings = Findings(WorkloadError, f"model {self.name}")
        read = self._options(given, findings)
        findings.raise_if_any()
        shape = resized(
            self.name, self.family.shape, {name: value for name, value in read.items() if name in EVERY_SIZE}
        )
        if "pattern" in read:
            shape = replace(shape, layers=len(str(read["pattern"])))
        experts = self.family.experts
        renamed = {"experts_per_layer": "experts", "expert_ffn": "ffn"}
        renamed |= {name: name for name in ("choices", "mtp", *HANDLING)}
        changed: dict[str, Any] = {renamed[name]: value for name, value in read.items() if name in renamed}
        given_rank = int(str(read.get("lora", 0)))
        return replace(self.family, shape=shape, experts=experts and replace(experts, **changed), lora=given_rank)


SIZES = tuple(field.name for field in fields(Transformer) if field.name not in ("sequence", *TRAITS, *SIDE_BY_SIDE))
EVERY_SIZE = (*SIZES, *TRAITS, *SIDE_BY_SIDE)


def entry(name: str, about: str, shape: Transformer, style: str) -> TransformerEntry:
    """A transformer of the zoo in one of the styles; every size of it is an option."""
    how = STYLES[style]

    def make(
        name: str, batch: int, length: int, *, attention: str = "", dropout: bool = how.dropout,
        stack: str = DEFAULT_STACK, loss_fusion: bool = True, lora: int = 0, lora_on: str = adapters.ALL,
        graphs: str = "", **sizes: Option,
    ) -> list[Layer]:  # fmt: skip
        usual = how.attention if stack == DEFAULT_STACK else "fused"
        runner = running(name, stack, how.stacks, loss_fusion=loss_fusion)
        run = Run(batch, length, known(name, attention or usual), dropout, runner, graphs_named(graphs))
        return adapters.added(how.layers(resized(name, shape, sizes), run), lora, run.stack, lora_on)

    return TransformerEntry(
        name, make, about, sequence=shape.sequence, options=options(shape, how),
        longest=shape.places if how.table else 0, family=TransformerFamily(style, shape),
        switched_off=("window", "whole_every"),
    )  # fmt: skip


HANDLING = ("masked", "glued", "router_pads", "router_fusion", "dispatch", "domain", "capacity", "imbalance")
"""Options of mixtures that say how experts are run."""


@dataclass(frozen=True)
class Treatment:
    """Options of mixtures and of models with states that say how they are run, whatever their sizes are."""

    attention: str = "fused"
    stack: str = DEFAULT_STACK
    loss_fusion: bool = True
    lora: int = 0
    mtp: int = 0
    graphs: str = ""
    wide: str = ""
    wide_layers: int = 0

    def run(self, name: str, batch: int, length: int) -> Run:
        runner = running(name, self.stack, tuple(STACKS), loss_fusion=self.loss_fusion)
        attention = known(name, self.attention)
        return Run(batch, length, attention, dropout=False, stack=runner, graphs=graphs_named(self.graphs))

    def finished(
        self, name: str, layers: list[Layer], shape: Transformer, run: Run, block: Operators = ()
    ) -> list[Layer]:
        """The layers with those that predict further tokens, numbers that stay wide, and adapters."""
        layers = prediction.added(name, layers, shape, run, self.mtp, block)
        return adapters.added(kept_wide(layers, wide_named(self.wide), self.wide_layers), self.lora, run.stack)


def _taken(given: dict[str, Option], names: Iterable[str]) -> dict[str, Any]:
    """Those of the options, which are taken out of what was given."""
    return {name: given.pop(name) for name in names if name in given}


TREATED = tuple(field.name for field in fields(Treatment))


def mixture_entry(name: str, about: str, shape: Transformer, experts: mixture.Mixture) -> TransformerEntry:
    """A mixture of experts of the zoo."""
    usual = Treatment(mtp=experts.mtp)

    def make(
        name: str, batch: int, length: int, *, experts_per_layer: int = experts.experts,
        choices: int = experts.choices, expert_ffn: int = experts.ffn, **given: Option,
    ) -> list[Layer]:  # fmt: skip
        treatment = replace(usual, **_taken(given, TREATED))
        handling = _taken(given, HANDLING)
        chosen = replace(experts, experts=experts_per_layer, choices=choices, ffn=expert_ffn, **handling)
        chosen.check(name)
        run = treatment.run(name, batch, length)
        made = resized(name, shape, given)
        return treatment.finished(name, mixture.layers(made, chosen, run), made, run)

    own: dict[str, Option] = {
        "attention": usual.attention, "experts_per_layer": experts.experts, "choices": experts.choices,
        "expert_ffn": experts.ffn, **vars(usual), **{trait: getattr(experts, trait) for trait in HANDLING},
    }  # fmt: skip
    sizes = {size: getattr(shape, size) for size in (SIZES if experts.latent else SIZES + TRAITS)}
    return TransformerEntry(
        name, make, about, sequence=shape.sequence, options=own | sizes,
        family=TransformerFamily("mixture", shape, experts), switched_off=("window", "whole_every"),
    )  # fmt: skip


def hybrid_entry(name: str, about: str, shape: Transformer, states: hybrid.Hybrid) -> TransformerEntry:
    """A model of layers in a pattern, some of them with states; its pattern says how many there are."""
    usual = Treatment()

    def make(
        name: str, batch: int, length: int, *, pattern: str = states.pattern, **given: Option
    ) -> list[Layer]:  # fmt: skip
        treatment = replace(usual, **_taken(given, TREATED))
        handling = _taken(given, HANDLING)
        changed: dict[str, Any] = {STATES[size]: value for size, value in _taken(given, STATES).items()}
        if states.experts is not None:
            wide_latent = LATENT in wide_named(treatment.wide)
            changed["experts"] = replace(states.experts, wide_latent=wide_latent, **handling)
        kept = replace(states, pattern=pattern, **changed)
        kept.check(name)
        run = treatment.run(name, batch, length)
        made = resized(name, shape, {**given, "layers": len(pattern)})
        return treatment.finished(name, hybrid.layers(made, kept, run), made, run, hybrid.predicting(made, kept, run))

    own: dict[str, Option] = {"attention": usual.attention, "pattern": states.pattern, **vars(usual)}
    sizes = {size: getattr(shape, size) for size in SIZES if size not in ("layers", "positions")}
    scanned = {option: getattr(states, size) for option, size in STATES.items()}
    if states.experts is not None:
        own |= {trait: getattr(states.experts, trait) for trait in HANDLING}
    return TransformerEntry(
        name, make, about, sequence=shape.sequence, options=own | sizes | scanned,
        family=TransformerFamily("hybrid", shape, states.experts),
    )  # fmt: skip


STATES = {"scan_heads": "heads", "scan_size": "size", "state": "state", "groups": "groups"}
"""Options of layers with states, and what they are called there."""


def options(shape: Transformer, style: Style) -> dict[str, Option]:
    own: dict[str, Option] = {
        "attention": style.attention, "dropout": style.dropout, "stack": DEFAULT_STACK, "lora": 0,
        "lora_on": adapters.ALL, "graphs": "",
    }  # fmt: skip
    if style.causal and "megatron" in style.stacks:
        own["loss_fusion"] = True
    return own | {size: getattr(shape, size) for size in (*SIZES, *style.traits)}


def resized(name: str, shape: Transformer, sizes: Mapping[str, Option]) -> Transformer:
    """The shape with other sizes; what followed from a size that changed follows from the new one."""
    changed = dict(sizes)
    if "heads" in changed and "kv_heads" not in changed and shape.shared_heads == shape.heads:
        changed["kv_heads"] = 0
    if "hidden" in changed and "ffn" not in changed and shape.ffn:
        # The family's ratio of neurons to width, in steps of 256 as such layers are sized.
        changed["ffn"] = -(-shape.ffn * int(changed["hidden"]) // (shape.hidden * 256)) * 256  # type: ignore[arg-type]
    made = replace(shape, **changed)  # type: ignore[arg-type]
    made.check(name)
    return made


def running(name: str, stack: str, able: tuple[str, ...], *, loss_fusion: bool = True) -> Stack:
    """The stack of this name, where it is known to run the model; its loss is one kernel, or plain."""
    chosen = STACKS.named(stack)
    if chosen.name not in able:
        raise WorkloadError(f"model {name}: stack={stack} does not run it: give {' or '.join(able)}")
    if not loss_fusion and not chosen.make.fused:
        raise WorkloadError(f"model {name}: stack={stack} has no fused loss: leave loss_fusion=false out")
    return replace(chosen.make, plain_loss=not loss_fusion)


def known(name: str, attention: str) -> str:
    if attention not in ATTENTIONS:
        raise WorkloadError(f"model {name}: attention={attention} is not known: give {' or '.join(ATTENTIONS)}")
    return attention
