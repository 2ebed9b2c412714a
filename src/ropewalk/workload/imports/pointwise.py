"""Element-wise operations by name: what they keep, what their gradients cost, which call launches them.

Only what differs from the rule is listed. The rule: a function keeps its inputs, and each input that needs a gradient
costs one pass over the gradient and what was kept.
"""

from __future__ import annotations

from ropewalk.workload.imports import works
from ropewalk.workload.imports.graph import UsedOperator, Value

SUMS = {"add"}
DIFFERENCES = {"sub", "rsub", "subtract"}
PRODUCTS = {"mul", "div", "multiply", "divide", "true_divide"}
KEEP_RESULT = {"relu", "sigmoid", "tanh", "exp", "expm1", "sqrt", "rsqrt", "reciprocal", "elu", "leaky_relu"}
KEEP_NOTHING = {"neg", "clone", "positive", "floor", "ceil", "round", "sign"}
CALLS = {"gelu": "gelu", "silu": "silu"}


def elementwise(name: str, reads: tuple[Value, ...], out: Value) -> list[UsedOperator]:
    """The work of the element-wise operation `name`."""
    needing = [value for value in reads if value.gradient]
    if name in SUMS:
        return works.elementwise(reads, out, saves=(), passes_back=0, call="add")
    if name in DIFFERENCES:
        negated = len(reads) > 1 and reads[-1].gradient
        return works.elementwise(reads, out, saves=(), passes_back=int(negated), backward_reads=1, call="add")
    if name in PRODUCTS:
        if len(reads) == 1:
            return works.elementwise(reads, out, saves=(), backward_reads=1, call="scale")
        # The gradient of one factor needs the other.
        saves = tuple(value for value in reads if len(needing) > 1 or value is not needing[0]) if needing else ()
        return works.elementwise(reads, out, saves=saves, call="multiply")
    if name in KEEP_RESULT:
        return works.elementwise(reads, out, saves=(out,))
    if name in KEEP_NOTHING:
        return works.elementwise(reads, out, saves=(), backward_reads=1)
    if name == "pow" and len(reads) == 1:  # the gradient is a power, a scale and a product
        return works.elementwise(reads, out, saves=reads, passes_back=3 * len(needing), call="power")
    form = "gelu" if name == "gelu" else "map"
    return works.elementwise(reads, out, saves=reads, form=form, call=CALLS.get(name, "relu"))
