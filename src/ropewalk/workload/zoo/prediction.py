"""Layers that predict tokens behind the next one while a model is trained (multi-token prediction).

DeepSeek-V3 Technical Report (2024), section 2.2: each takes what the layers before it made of a token and the word that
follows, joins the two by a linear layer, runs one block of the model, and shares table of words and head with it.
"""

from __future__ import annotations

from dataclasses import replace

from ropewalk.errors import WorkloadError
from ropewalk.workload.adapted import Adapted
from ropewalk.workload.dense import Linear
from ropewalk.workload.operator import Operator, Role
from ropewalk.workload.table import Embedding
from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo.gpt import causal_loss
from ropewalk.workload.zoo.llama import norm
from ropewalk.workload.zoo.parts import Operators, Run, as_run, fan_in, leave
from ropewalk.workload.zoo.shape import Transformer
from ropewalk.workload.zoo.trail import joined


def added(
    name: str, layers: list[Layer], shape: Transformer, run: Run, depth: int, block: Operators = ()
) -> list[Layer]:
    """The model with `depth` such layers behind its last block, and a loss for each in its head.

    Each runs a block like the last one unless another is given.
    """
    if not depth:
        return layers
    if shape.tied:
        raise WorkloadError(f"model {name}: mtp={depth} needs a head that is not the table of words: give tied=false")
    *before, last, head = layers
    operators = as_run(run, _entrance(shape, run)) + (as_run(run, block) or last.operators)
    # What every layer before has made goes along to the head.
    further = [
        Layer(f"prediction {number}", operators, (number + 2) * last.output_elements, kind="prediction block")
        for number in range(depth)
    ]
    losses = as_run(run, _loss(shape, run)) * depth
    return [*before, last, *further, replace(head, operators=head.operators + losses)]


def _entrance(shape: Transformer, run: Run) -> Operators:
    """The word behind a token and what was made of the token, each normalised, joined and narrowed to the width."""
    elements = run.tokens * shape.hidden
    return (
        fan_in(elements, 2),
        Embedding(run.tokens, shape.vocabulary, shape.hidden, Role.COLUMNS, tied=True, borrowed=True),
        leave(elements),
        norm(run, shape.hidden),
        norm(run, shape.hidden),
        replace(joined(2 * elements), role=Role.OUTSIDE),
        Linear(run.tokens, 2 * shape.hidden, shape.hidden, bias=False, role=Role.OUTSIDE),
    )


def _loss(shape: Transformer, run: Run) -> Operators:
    """A norm of its own, and the head that is there already."""
    return (norm(run, shape.hidden), *(_without_weights(one) for one in causal_loss(shape, run)))


def _without_weights(operator: Operator) -> Operator:
    return Adapted(operator, 0, 0, operator.saved_elements()) if isinstance(operator, Linear) else operator
