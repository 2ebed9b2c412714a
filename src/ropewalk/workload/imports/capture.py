"""From an exported program to values and operations, each with what it costs and the layer it belongs to."""

from __future__ import annotations

import operator
import re
from typing import Any

from ropewalk.errors import WorkloadError
from ropewalk.workload.imports import works
from ropewalk.workload.imports.aten import WORKS, Call, is_value
from ropewalk.workload.imports.exporting import STATIC
from ropewalk.workload.imports.graph import GraphEvent, UsedOperator, Value, result, view
from ropewalk.workload.imports.pointwise import elementwise
from ropewalk.workload.imports.views import is_swapped, is_view, undone

WRAPPERS = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4, "tag_activation_checkpoint": 0}
"""Operations around a graph of their own, and how many settings stand before that graph in their arguments."""


class Walk:
    """Goes through an exported graph and writes down every operation as an event."""

    def __init__(
        self, program: Any, owners: dict[str, str], kinds: dict[str, str], inside: str, causal_masks: bool, subject: str
    ) -> None:
        self.causal_masks = causal_masks
        self.program = program
        self.inside = inside
        """Where the user's module stands in what was exported."""
        self.owners = owners
        """The one name of the parameter behind each of its names."""
        self.kinds = kinds
        self.subject = subject
        self.events: list[GraphEvent] = []
        self.unknown: dict[Any, str] = {}
        """Operations without an entry in the table, and where they stand."""
        self.half = _is_half(program)

    def run(self) -> tuple[Value, ...]:
        """Walk through the whole program; the values it returns."""
        signature = self.program.graph_signature
        names = {**signature.inputs_to_parameters}
        start = {
            node: self._input(node, names.get(node.name), node.name in signature.inputs_to_buffers)
            for node in self.program.graph.nodes
            if node.op == "placeholder"
        }
        returned = self._graph(self.program.graph_module, start, grad=True)
        changed = {*signature.buffers_to_mutate, *signature.user_inputs_to_mutate}
        outputs = next(node for node in self.program.graph.nodes if node.op == "output").args[0]
        kept = [
            value for node, value in zip(outputs, returned, strict=True) if getattr(node, "name", "") not in changed
        ]
        return tuple(value for value in kept if is_value(value))

    def _input(self, node: Any, parameter: str | None, buffer: bool) -> Any:
        meta = node.meta.get("val")
        if not hasattr(meta, "shape"):
            return meta
        if parameter is not None:
            return Value(self._shape(meta, node), True, (self.owners[parameter],), data=False)
        return Value(self._shape(meta, node), data=not buffer)

    def _graph(self, module: Any, values: dict[Any, Any], grad: bool) -> list[Any]:
        for node in module.graph.nodes:
            if node.op == "get_attr":
                values[node] = self._constant(module, node)
            elif node.op == "call_function":
                values[node] = self._function(module, node, values, grad)
            elif node.op == "output":
                listed = node.args[0] if isinstance(node.args[0], list | tuple) else [node.args[0]]
                return [values.get(item) if hasattr(item, "op") else item for item in listed]
        raise AssertionError("a graph ends with its output")

    def _constant(self, module: Any, node: Any) -> Any:
        held = module
        for name in node.target.split("."):
            held = getattr(held, name)
        return Value(tuple(held.shape), data=False) if hasattr(held, "shape") else held

    def _function(self, module: Any, node: Any, values: dict[Any, Any], grad: bool) -> Any:
        name = getattr(node.target, "__name__", str(node.target))
        if node.target is operator.getitem:
            return values[node.args[0]][node.args[1]]
        if name in WRAPPERS:
            return self._wrapped(name, node, values, grad)
        if not hasattr(node.target, "_schema"):
            raise WorkloadError(f"{self.subject}: {name} in {self._where(node)} works on sizes, not tensors: {STATIC}")
        arguments = self._arguments(node, values)
        reads = Call(arguments, ()).tensors()
        outs = self._results(node, reads, grad)
        self._event(node, arguments, reads, outs)
        return outs if isinstance(node.meta.get("val"), list | tuple) else outs[0] if outs else None

    def _wrapped(self, name: str, node: Any, values: dict[Any, Any], grad: bool) -> list[Any]:
        settings = node.args[: WRAPPERS[name]]
        inner, *operands = node.args[WRAPPERS[name] :]
        graph = values[inner]
        starts = [entry for entry in graph.graph.nodes if entry.op == "placeholder"]
        given = dict(zip(starts, (values[operand] for operand in operands), strict=True))
        enabled = grad and (bool(settings[0]) if name == "wrap_with_set_grad_enabled" else True)
        return self._graph(graph, given, enabled)

    def _arguments(self, node: Any, values: dict[Any, Any]) -> dict[str, Any]:
        def held(argument: Any) -> Any:
            if isinstance(argument, list | tuple):
                return [held(item) for item in argument]
            return values[argument] if hasattr(argument, "op") else argument

        schema = node.target._schema.arguments
        found = {entry.name: entry.default_value for entry in schema}
        found |= {entry.name: held(given) for entry, given in zip(schema, node.args, strict=False)}
        return found | {key: held(given) for key, given in node.kwargs.items()}

    def _results(self, node: Any, reads: tuple[Value, ...], grad: bool) -> tuple[Value, ...]:
        meta = node.meta.get("val")
        metas = meta if isinstance(meta, list | tuple) else [meta]
        shown = reads[0] if reads and is_view(node) else None
        values = []
        for one in metas:
            if not hasattr(one, "shape"):
                continue
            shape = self._shape(one, node)
            value = view(shape, shown) if shown else result(shape, reads)
            value.gradient = value.gradient and grad and one.is_floating_point() and not _detaches(node)
            value.swapped = is_swapped(one)
            value.wide = self.half and str(one.dtype) == "torch.float32"
            values.append(value)
        return tuple(values)

    def _shape(self, meta: Any, node: Any) -> tuple[int, ...]:
        if not all(isinstance(size, int) for size in meta.shape):
            raise WorkloadError(
                f"{self.subject}: the shape of the result of {node.target} in {self._where(node)} depends on data: "
                f"{STATIC}"
            )
        return tuple(int(size) for size in meta.shape)

    def _event(self, node: Any, arguments: dict[str, Any], reads: tuple[Value, ...], outs: tuple[Value, ...]) -> None:
        name = node.target._schema.name.partition("::")[2]
        event = GraphEvent(str(node.target), self._place(node), reads, outs)
        self.events.append(event)
        if outs and outs[0].base is not None:
            event.works = undone(reads[0], outs)
        else:
            event.works = self._works(node, name.removesuffix("_"), arguments, reads, outs)
        if not any(out.gradient for out in outs):
            event.works = [works.forward_only(work) for work in event.works if work.operator.forward()]

    def _works(
        self, node: Any, name: str, arguments: dict[str, Any], reads: tuple[Value, ...], outs: tuple[Value, ...]
    ) -> list[UsedOperator]:
        import torch

        if name in WORKS:
            made = WORKS[name](Call(arguments, outs, self.causal_masks))
            if made is not None:
                return made
        elif torch.Tag.pointwise in node.target.tags or name in POINTWISE_TOO:
            return elementwise(name, reads, outs[0])
        self.unknown.setdefault(node.target, self._where(node))
        return []

    def _place(self, node: Any) -> str | None:
        """The layer in whose module the operation stands, with a number where that module runs again."""
        for key, path in self._stack(node):
            if path in self.kinds:
                again = re.search(r"@([0-9]{1,9})$", key)
                return f"{path or 'model'}#{int(again[1]) + 1}" if again else path or "model"
        return None

    def _stack(self, node: Any) -> list[tuple[str, str]]:
        """The user's modules around the operation, outermost first, as (key of this call, path)."""
        entries = [(key, path) for key, (path, _) in (node.meta.get("nn_module_stack") or {}).items()]
        if not self.inside:
            return entries
        inner = [(key, path) for key, path in entries if path.partition(".")[0] == self.inside]
        return [(key, path.removeprefix(self.inside).removeprefix(".")) for key, path in inner]

    def _where(self, node: Any) -> str:
        """The module and the line of source in which an operation stands."""
        kinds = [kind for _, kind in (node.meta.get("nn_module_stack") or {}).values()]
        stack = self._stack(node)
        kind = getattr(kinds[-1], "__name__", str(kinds[-1])).rpartition(".")[2] if kinds and stack else ""
        path = stack[-1][1] if stack else ""
        module = f"module {path!r} of class {kind}" if path else f"the module itself, of class {kind}"
        module = module if stack else "the loss"
        lines = re.findall(r'File "([^"]+)", line ([0-9]+)', node.meta.get("stack_trace") or "")
        return module + (f" ({lines[-1][0].rpartition('/')[2]}, line {lines[-1][1]})" if lines else "")


POINTWISE_TOO = {
    "hardswish", "prelu", "log_sigmoid", "rsub", "multiply", "divide", "floor_divide", "__and__", "__or__", "__xor__",
    "__invert__", "subtract", "not_equal", "greater", "less", "silu", "softplus", "_prelu_kernel",
}  # fmt: skip
"""Element-wise operations that PyTorch does not mark as such."""


def _detaches(node: Any) -> bool:
    return node.target._schema.name in ("aten::detach", "aten::detach_")


def _is_half(program: Any) -> bool:
    """Are most of its parameters of 16 bits?"""
    sizes = [(tensor.numel(), tensor.element_size()) for _, tensor in program.named_parameters()]
    return bool(sum(n for n, width in sizes if width == 2) * 2 > sum(n for n, _ in sizes))
