"""From operations in the order in which they run to layers with their data flow.

A layer is a stretch of operations that run one after the other, so edges between layers always point forward. What
this file adds to the operators of the single operations are the facts that only the whole graph shows: which use of a
tied weight is the first and therefore has its parameters, which operator keeps a tensor that several need in the
backward pass, and where gradients from several readers are added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ropewalk.workload.adapted import Weights, adapt
from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Pointwise
from ropewalk.workload.imports.graph import GraphEvent, UsedOperator, Value
from ropewalk.workload.operator import Operator, Role
from ropewalk.workload.workload import Layer


@dataclass
class LayerStretch:
    """The operations of one layer."""

    name: str
    events: list[GraphEvent] = field(default_factory=list)


def layers_of(
    events: list[GraphEvent], parameters: Mapping[str, int], results: tuple[Value, ...], kinds: Mapping[str, str]
) -> tuple[Layer, ...]:
    """Layers with operators, edges and what they hand on.

    `parameters` are the elements of every parameter by name, `results` the values that the model returns, `kinds` the
    kind of a layer by its name, where it has one.
    """
    stretches = _stretches(events)
    counted: set[str] = set()
    kept: set[int] = set()
    gradients = [_gradients(stretch.events) for stretch in stretches]
    readers = Counter(key for within in gradients for key in within)
    readers.update({id(value) for value in results if value.gradient})
    operators = [
        _operators(stretch, parameters, counted, kept, within, readers)
        for stretch, within in zip(stretches, gradients, strict=True)
    ]
    unread = [elements for name, elements in parameters.items() if name not in counted]
    if unread:
        operators[-1].append(Weights(sum(unread), len(unread)))
    inputs, handed = _flow(stretches, results)
    return tuple(
        Layer(stretch.name, tuple(ops), handed[at], inputs[at], kinds.get(stretch.name.partition("#")[0], "layer"))
        for at, (stretch, ops) in enumerate(zip(stretches, operators, strict=True))
    )


def _stretches(events: list[GraphEvent]) -> list[LayerStretch]:
    """Operations without a layer of their own stay with those before them; the first ones go with those behind."""
    stretches: list[LayerStretch] = []
    ahead: list[GraphEvent] = []
    for event in events:
        if event.place is None and not stretches:
            ahead.append(event)
        elif event.place is None or (stretches and stretches[-1].name == event.place):
            stretches[-1].events.append(event)
        else:
            stretches.append(LayerStretch(event.place, [*ahead, event]))
            ahead = []
    if ahead:
        stretches.append(LayerStretch("model", ahead))
    return [replace(stretch, name=name) for stretch, name in zip(stretches, _unique(stretches), strict=True)]


def _unique(stretches: list[LayerStretch]) -> list[str]:
    """A module that runs again later is a layer again, with a number behind its name."""
    seen: Counter[str] = Counter()
    names = []
    for stretch in stretches:
        seen[stretch.name] += 1
        names.append(stretch.name if seen[stretch.name] == 1 else f"{stretch.name}#{seen[stretch.name]}")
    return names


def _gradients(events: list[GraphEvent]) -> Counter[int]:
    """How many gradients these operations send back to each value."""
    count: Counter[int] = Counter()
    for event in events:
        # An operation whose result needs no gradient (a comparison, an argmax, a detached value) sends none back.
        if any(value.gradient for value in event.writes):
            count.update(id(value) for value in event.reads if value.gradient and not value.parameters)
    return count


def _operators(
    stretch: LayerStretch, parameters: Mapping[str, int], counted: set[str], kept: set[int], within: Counter[int],
    readers: Counter[int],
) -> list[Operator]:  # fmt: skip
    """Operators of one layer. The gradients that its own operations send back to a value are added where the first of
    them reads it; the sums of several layers are added where the value was made."""
    operators: list[Operator] = []
    met: set[int] = set()
    for event in stretch.events:
        for value in event.reads:
            if id(value) not in met and within[id(value)] > 1:
                operators.append(_accumulation(value, within[id(value)] - 1))
            met.add(id(value))
        fresh = [name for value in event.reads for name in value.parameters if name not in counted]
        fresh = list(dict.fromkeys(fresh)) if event.works else []
        counted.update(fresh)
        for work in event.works:
            mine, fresh = _claim(work, [(name, parameters[name]) for name in fresh])
            operators.append(_own(work, mine, kept))
        if fresh:
            operators.append(Weights(sum(parameters[name] for name in fresh), len(fresh)))
        operators.extend(
            _accumulation(value, readers[id(value)] - 1) for value in event.writes if readers[id(value)] > 1
        )
    return operators


def _claim(work: UsedOperator, fresh: list[tuple[str, int]]) -> tuple[list[int], list[str]]:
    """The new parameters that are this operator's own, and the names of those that are not.

    An operator with parameters takes as many tensors as its sizes speak of; one without takes none.
    """
    room = work.operator.parameter_tensors()
    return [elements for _, elements in fresh[:room]], [name for name, _ in fresh[room:]]


def _own(work: UsedOperator, weights: list[int], kept: set[int]) -> Operator:
    """The operator with the parameters and the kept tensors that are its own."""
    operator = work.operator
    saved = 0
    for root in (value.root for value in work.saves):
        if id(root) not in kept and not root.parameters:  # a view keeps all of the memory it shows
            kept.add(id(root))
            saved += root.elements * (2 if root.wide else 1)
    if isinstance(operator, Pointwise):
        operator = replace(operator, saved=saved / operator.elements)
    if isinstance(operator, Linear) and len(weights) < operator.parameter_tensors():
        operator = replace(operator, tied=True)
    return adapt(operator, sum(weights), len(weights), operator.saved_elements() if isinstance(operator, Pointwise)
                 else float(saved), work.skips)  # fmt: skip


def _accumulation(value: Value, times: int) -> Operator:
    """Gradients from several readers are added, pair by pair."""
    return Pointwise(
        value.elements, passes=0, backward_passes=times, saved=0.0, role=Role.WHOLE, call="add", widened=value.wide
    )


def _flow(stretches: list[LayerStretch], results: tuple[Value, ...]) -> tuple[list[tuple[int, ...]], list[int]]:
    """The layers each layer reads, and the elements each hands to the reader that takes most.

    Values that no gradient flows through (masks, positions) can be made anew from the batch by whoever needs them;
    they count only for a layer that reads nothing else.
    """
    made: dict[int, int] = {}
    inputs: list[tuple[int, ...]] = []
    handed = [0] * len(stretches)
    for at, stretch in enumerate(stretches):
        crossing: dict[int, dict[int, Value]] = {}
        for event in stretch.events:
            for value in event.reads:
                source = made.get(id(value), at)
                if source != at:
                    crossing.setdefault(source, {})[id(value)] = value
            made.update((id(value), at) for value in event.writes)
        trained = {
            source: values for source, values in crossing.items() if any(value.gradient for value in values.values())
        }
        chosen = trained or crossing
        inputs.append(tuple(sorted(chosen)))
        for source, values in chosen.items():
            passed = [value for value in values.values() if value.gradient or source not in trained]
            handed[source] = max(handed[source], _elements(passed))
    returned: dict[int, list[Value]] = {}
    for value in results:
        if id(value) in made:
            returned.setdefault(made[id(value)], []).append(value)
    for source, made_there in returned.items():
        handed[source] = max(handed[source], _elements(made_there))
    return inputs, handed


def _elements(values: list[Value]) -> int:
    """Elements of these values together; several views of one tensor are never more than the tensor."""
    shown: Counter[int] = Counter()
    roots: dict[int, Value] = {}
    for value in values:
        shown[id(value.root)] += value.elements
        roots[id(value.root)] = value.root
    return sum(min(count, roots[key].elements) for key, count in shown.items())
