"""Small slips that a source file could have: where they can be, and the file with one of them in it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One slip: what stands at which characters of a file instead of what."""

    kind: str
    line: int
    start: int
    end: int
    was: str
    now: str

    def applied(self, source: str) -> str:
        return source[: self.start] + self.now + source[self.end :]


def mutants(source: str) -> list[Mutant]:
    """Every slip that this source can have, in the order of the text.

    >>> [(one.was, one.now) for one in mutants("x = a + 1 if a < b else True")]
    [('a + 1', '(a - 1)'), ('1', '2'), ('a < b', '(a <= b)'), ('a < b', '(not a < b)'), ('True', 'False')]
    """
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def offset(line: int, column: int) -> int:
        """Python counts columns in bytes."""
        text = source[lines[line - 1] : lines[line]]
        return lines[line - 1] + len(text.encode()[:column].decode())

    found = []
    for node, kind, now in _slips(ast.parse(source)):
        start = offset(node.lineno, node.col_offset)
        end = offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        found.append(Mutant(kind, node.lineno, start, end, source[start:end], now))
    return sorted(found, key=lambda one: (one.start, one.end, one.now))


Slip = tuple[ast.expr | ast.stmt, str, str]


def _slips(node: ast.AST) -> Iterator[Slip]:
    for child in _code_in(node):
        for way in WAYS:
            yield from way(child)
        yield from _slips(child)


def _code_in(node: ast.AST) -> Iterator[ast.AST]:
    """What is run of a node: no annotations, no decorators, no text, nothing that only a type checker reads."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment") or isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


def _comparison(node: ast.AST) -> Iterator[Slip]:
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            ops = [*node.ops[:number], COMPARED[type(operator)](), *node.ops[number + 1 :]]
            yield node, "comparison", _text(ast.Compare(node.left, ops, node.comparators))


def _arithmetic(node: ast.AST) -> Iterator[Slip]:
    if isinstance(node, ast.BinOp) and type(node.op) in CALCULATED:
        yield node, "arithmetic", _text(ast.BinOp(node.left, CALCULATED[type(node.op)](), node.right))
    if isinstance(node, ast.AugAssign) and type(node.op) in CALCULATED:
        other = ast.AugAssign(node.target, CALCULATED[type(node.op)](), node.value)
        yield node, "arithmetic", ast.unparse(other)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node, "sign", _text(node.operand)


def _constant(node: ast.AST) -> Iterator[Slip]:
    if not isinstance(node, ast.Constant):
        return
    if isinstance(node.value, bool):
        yield node, "constant", str(not node.value)
    elif isinstance(node.value, int):
        yield node, "constant", str(node.value + 1)
    elif isinstance(node.value, float):
        yield node, "constant", repr(2 * node.value + 1)


def _condition(node: ast.AST) -> Iterator[Slip]:
    if isinstance(node, ast.BoolOp):
        other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield node, "condition", _text(ast.BoolOp(other, node.values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, "condition", _text(node.operand)
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield node.test, "condition", _text(ast.UnaryOp(ast.Not(), node.test))


def _result(node: ast.AST) -> Iterator[Slip]:
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield node, "result", "return None"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


WAYS: tuple[Callable[[ast.AST], Iterator[Slip]], ...] = (_comparison, _arithmetic, _constant, _condition, _result)
