"""What is computed again in the backward pass instead of kept: nothing, parts of blocks, whole layers, whole stages.

Korthikanti et al., Reducing activation recomputation in large transformer models (2022). Parts of blocks have the names
of Megatron-Core's `--recompute-modules`. Of a part that is a module by itself its input is kept; of others what they
make is given up, as what they read is kept anyway. `selective` is the core of attention.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ropewalk.choices import Choice, Choices
from ropewalk.errors import StrategyError
from ropewalk.strategy.meanwhile import shared_between
from ropewalk.workload.adapted import Adapted, bare
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.elementwise import Normalise
from ropewalk.workload.exchange import Exchange, Meeting, When
from ropewalk.workload.experts import Experts
from ropewalk.workload.operator import Operator, Role, Split
from ropewalk.workload.scan import Scan
from ropewalk.workload.written import Written

Operators = tuple[Operator, ...]
Places = tuple[int, ...]

RECOMPUTE_OF_LAYERS = ("none", "selective", "full")
"""Nothing, the core of attention, whole layers."""
RECOMPUTE = (*RECOMPUTE_OF_LAYERS, "stage")
"""Also: all layers of a stage before its backward pass, so that only what enters the stage is kept (GPipe, DAPPLE)."""


def is_core(operator: Operator) -> bool:
    """Do tokens meet in it?"""
    inner = bare(operator)
    return isinstance(inner, FusedAttention) or (isinstance(inner, Product) and inner.role is Role.INSIDE)


def _core(operators: Operators) -> Places:
    """From the first to the last operator in which tokens meet."""
    at = [place for place, op in enumerate(operators) if is_core(op)]
    inside = range(at[0], at[-1] + 1) if at else ()
    return tuple(place for place in inside if not isinstance(operators[place], Exchange))


def _norms(operators: Operators) -> Places:
    """Norms in front of attention, feed-forward layers and experts: no product since the one that left the last."""
    found: list[int] = []
    fresh = True
    for at, op in enumerate(operators):
        inner = bare(op)
        if isinstance(op, Exchange):
            fresh = op.meeting is Meeting.LEAVE and op.when is not When.FOLDED
        elif isinstance(inner, Linear):
            fresh = False
        elif fresh and _is_norm(inner) and not (at and isinstance(operators[at - 1], Exchange)):
            found.append(at)
            fresh = False
    return tuple(found)


def _is_norm(operator: Operator) -> bool:
    named = isinstance(operator, Written) and "norm" in operator.routine.name
    return (named or isinstance(operator, Normalise)) and getattr(operator, "role", None) is Role.OUTSIDE


def _up(operators: Operators) -> Places:
    """From compressed queries, keys and values to those of all heads, where attention has them (MLA)."""
    core = _core(operators)
    if not core or not any(map(_is_down, operators[: core[0]])):
        return ()
    enters = next(at for at, op in enumerate(operators) if isinstance(op, Exchange) and op.meeting is Meeting.ENTER)
    split = (at for at in range(enters, core[0]) if getattr(bare(operators[at]), "role", None) is not Role.OUTSIDE)
    return tuple(split)


def _is_down(operator: Operator) -> bool:
    inner = bare(operator)
    return isinstance(inner, Linear) and inner.role is Role.OUTSIDE


def _between(operators: Operators, *, experts: bool) -> Places:
    """The feed-forward layer of a block, from where tensor ranks enter it to where they leave."""
    start = None
    for at, op in enumerate(operators):
        if not isinstance(op, Exchange) or op.when is When.FOLDED:
            continue
        if op.meeting is Meeting.ENTER:
            start = at
        elif op.meeting is Meeting.LEAVE and start is not None:
            if _is_feed_forward(operators[start:at], experts=experts):
                return tuple(range(start, at + 1))
            start = None
    return ()


def _is_feed_forward(operators: Operators, *, experts: bool) -> bool:
    """Is it one, with experts or without? Heads over words have no second product, other layers let tokens meet."""
    if any(isinstance(op, Exchange) and op.meeting is Meeting.DISPATCH for op in operators):
        return experts
    inner = [bare(op) for op in operators]
    second = any(isinstance(op, Linear) and op.role is Role.ROWS for op in inner)
    return not experts and second and not any(is_core(op) or isinstance(op, Scan) for op in inner)


def _dense(operators: Operators) -> Places:
    return _between(operators, experts=False)


def _mixture(operators: Operators) -> Places:
    return _between(operators, experts=True)


def _shared(operators: Operators) -> Places:
    found = shared_between(operators)
    return tuple(range(found[0], found[1] + 1)) if found else ()


def _inside_experts(operators: Operators) -> Places:
    """Gates of experts: a part of one operator, which computes them again itself (`remade`)."""
    return ()


Find = Callable[[Operators], Places]
MODULES: Choices[Choice[Find]] = Choices(
    "recomputed-part",
    (
        Choice("core_attn", _core, "the core of attention, from queries, keys and values to the attention output"),
        Choice("mla_up_proj", _up, "from compressed queries, keys and values to those of all heads"),
        Choice("layernorm", _norms, "norms before attention, feed-forward layers and experts"),
        Choice("moe_act", _inside_experts, "gates of experts"),
        Choice("mlp", _dense, "feed-forward layers without experts"),
        Choice("moe", _mixture, "whole mixtures: routers, both exchanges of tokens, all experts"),
        Choice("shared_experts", _shared, "experts that every token goes to"),
    ),
    error=StrategyError,
)  # fmt: skip
"""Parts of a block by the names of Megatron-Core's `--recompute-modules`; `make` finds their operators."""
WHOLE_MODULES = ("mlp", "moe", "shared_experts")
"""Parts of which the input is kept and nothing else."""


def modules_of(recompute: str) -> tuple[str, ...]:
    """The parts of a block that are computed again.

    >>> modules_of("selective"), modules_of("layernorm,moe_act"), modules_of("full")
    (('core_attn',), ('layernorm', 'moe_act'), ())
    """
    if recompute == "selective":
        return ("core_attn",)
    return () if recompute in RECOMPUTE else tuple(recompute.split(","))


def unknown(recompute: str) -> str:
    """What is wrong with the name of a recomputation; empty where nothing is.

    >>> unknown("mlp,mla_up_proj"), unknown("none")
    ('', '')
    """
    if recompute in RECOMPUTE or all(name in MODULES for name in recompute.split(",")):
        return ""
    return (
        f"there is no recompute {recompute!r}: use one of {', '.join(RECOMPUTE)}, or parts of blocks with commas "
        f"between them, of {', '.join(MODULES)}"
    )


def again_in(operators: Operators, modules: tuple[str, ...]) -> Places:
    """Places of the operators that run once more, ascending."""
    return tuple(sorted({place for name in modules for place in MODULES[name].make(operators)}))


def has_module(operators: Operators, name: str) -> bool:
    """Does a layer of these operators have such a part?"""
    if name == "moe_act":
        return any(isinstance(op, Experts) and op.apart for op in map(bare, operators))
    return bool(MODULES[name].make(operators))


def with_gates_remade(operators: Operators) -> Operators:
    """The operators with experts that compute their gates again."""
    return tuple(map(_remade, operators))


def _remade(operator: Operator) -> Operator:
    if isinstance(operator, Adapted):
        return replace(operator, operator=_remade(operator.operator))
    return replace(operator, remade=True) if isinstance(operator, Experts) else operator


def given_up(operators: Operators, modules: tuple[str, ...], split: Split) -> tuple[set[int], float]:
    """Places of operators that keep nothing, and elements that are kept instead.

    What a norm makes is kept by the first product that reads it, and is the input of the module behind it.
    """
    gone: set[int] = set()
    kept = 0.0
    if not modules:
        return gone, kept
    core = tuple(operators[place] for place in _core(operators))
    if "core_attn" in modules and core:
        gone |= set(_core(operators))
        kept += _core_inputs(core)
    if "mla_up_proj" in modules and _up(operators):
        kept -= _queries_keys_values(core)
    ways = split.tensor if split.sequence else 1
    for name in WHOLE_MODULES:
        places = MODULES[name].make(operators) if name in modules else ()
        if places and not gone.issuperset(places):
            gone |= set(places)
            entered = operators[places[0]]
            assert isinstance(entered, Exchange)
            kept += 0 if "layernorm" in modules else entered.elements / ways
    if "layernorm" in modules:
        gone |= {reader for norm in _norms(operators) for reader in _readers(operators, norm)}
    return gone, kept


def _readers(operators: Operators, norm: int) -> Places:
    """The first product behind a norm that keeps what it reads."""
    for at in range(norm + 1, len(operators)):
        linear = bare(operators[at])
        if isinstance(linear, Linear) and operators[at].saved_elements():
            return (at,) if linear.inputs == getattr(bare(operators[norm]), "width", 0) else ()
    return ()


def _core_inputs(core: Operators) -> float:
    """Elements of the queries, keys and values that enter a core, with its result where the next product needs it."""
    first, last = bare(core[0]), bare(core[-1])
    if isinstance(first, FusedAttention):
        return first.met_elements()
    values = last.count * last.columns * last.inner if isinstance(last, Product) and last is not first else 0.0
    return first.saved_elements() + values


def _queries_keys_values(core: Operators) -> float:
    """The same without the result."""
    first = bare(core[0])
    if isinstance(first, FusedAttention):
        return first.met_elements() - first.batch * first.heads * first.queries * first.size
    return _core_inputs(core)
