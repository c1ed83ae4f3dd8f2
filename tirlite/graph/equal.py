"""Tells whether two functions compute the same in the same way, with the first difference named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

from tirlite.diag import boundary
from tirlite.graph.demand import demand_function
from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, Tuple, TupleGetItem
from tirlite.graph.op import Op
from tirlite.graph.program import Block, Program, extents_found, program
from tirlite.graph.types import Type, substituted
from tirlite.ir import Equality
from tirlite.sizes import Dim, Size
from tirlite.sizes.poly import atom_of

_Pair: TypeAlias = "tuple[FunctionNode, FunctionNode]"


class _Line(NamedTuple):
    """One expression for comparison: its kind, its data, its operands' numbers, its type and its device."""

    kind: str
    data: object
    operands: tuple[int, ...]
    type: Type | None
    device: int


def structural_equal(a: FunctionNode, b: FunctionNode) -> Equality:
    """Whether both have the same structure and so the same meaning, for use in a condition; the difference is in it.

    Names, spans and Lets do not count, nor do names of dims, which are paired where they are first met in the types of
    the parameters. What is shared, the order of computation, devices and constants, bit by bit, do. The difference
    reads `line 3: call add against call subtract`.
    """
    with boundary:
        demand_function(a)
        demand_function(b)
    paired: set[_Pair] = set()
    waiting: list[_Pair] = [(a, b)]
    while waiting:
        pair = waiting.pop()
        if pair in paired:
            continue
        paired.add(pair)
        difference = _difference(*pair, waiting)
        if difference:
            return Equality(False, difference)
    return Equality(True)


def _difference(a: FunctionNode, b: FunctionNode, waiting: list[_Pair]) -> str:
    lines = zip_longest(_lines(a, _paired_dims(a, b)), _lines(b, {}))
    for number, (left, right) in enumerate(lines):
        if left is not None and right is not None:
            if isinstance(left.data, FunctionNode) and isinstance(right.data, FunctionNode):
                waiting.append((left.data, right.data))
                left, right = left._replace(data=""), right._replace(data="")
            if left == right:
                continue
        return f"line {number}: {_told(left)} against {_told(right)}"
    return "" if (a.primitive, a.outputs) == (b.primitive, b.outputs) else "one is primitive, or names other outputs"


def _told(line: _Line | None) -> str:
    if line is None:
        return "the end"
    call = f"{line.data[0].name}({line.data[1]})" if isinstance(line.data, tuple) else ""
    device = f"@ {line.device}" if line.device else ""
    operands = f"of {', '.join(map(str, line.operands))}" if line.operands else ""
    return " ".join(filter(None, [line.kind, call, operands, f": {line.type}" if line.type else "", device]))


def _paired_dims(a: FunctionNode, b: FunctionNode) -> dict[Dim, Size]:
    """The dims of `a`, and their counterparts in `b`."""
    pairs: dict[Dim, Size] = {}
    for left, right in zip(a.extents, b.extents, strict=False):
        for dim in atom_of(left, Dim):
            others = atom_of(right, Dim)
            if dim not in pairs and others and _facts(dim) == _facts(others[0]):
                pairs[dim] = right
    return pairs


def _facts(dim: Dim) -> tuple[int, int | None, int]:
    return dim.min, dim.max, dim.multiple_of


def _lines(function: FunctionNode, dims: Mapping[Dim, Size]) -> Iterator[_Line]:
    made = program(function)
    found = extents_found(made)
    numbers: dict[Expr, int] = {param: number for number, param in enumerate(function.params)}
    known = dict(dims)

    def find(place: Expr | Block) -> None:
        for dim in found.get(place, ()):
            known[dim] = Dim(f"value {numbers[made.resolved(dim.source)]}", 0) + 0

    for param in function.params:
        find(param)
        yield _Line("parameter", "", (), substituted(param.type, dims), param.device)
    stack: list[tuple[Iterator[Expr], Block]] = [(iter(made.body.steps), made.body)]
    while stack:
        steps, block = stack[-1]
        find(block)
        step = next(steps, None)
        if step is None:
            stack.pop()
            yield _Line("result", "", (numbers[made.resolved(block.result)],), None, 0)
            continue
        if step is not made.resolved(step):
            continue
        numbers[step] = len(numbers)
        find(step)
        yield _line(made, step, numbers, known)
        if isinstance(step, If):
            then, other = made.branches[step]
            stack += [(iter(other.steps), other), (iter(then.steps), then)]


def _line(made: Program, step: Expr, numbers: Mapping[Expr, int], dims: Mapping[Dim, Size]) -> _Line:
    data: object = ""
    operands = step.operands
    if isinstance(step, Call):
        data = (step.op, step.attrs.substituted(dims).bits) if isinstance(step.op, Op) else step.op
    elif isinstance(step, Constant):
        data = step.value.tobytes()
    elif isinstance(step, TupleGetItem):
        data = step.index
    elif isinstance(step, If):
        operands = (step.condition,)
    else:
        assert isinstance(step, Tuple)
    found = tuple(numbers[made.resolved(operand)] for operand in operands)
    return _Line(type(step).__name__, data, found, substituted(step.type, dims), step.device)
