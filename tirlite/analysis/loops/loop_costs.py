"""Estimates the costs of a loop at given sizes: bytes moved, multiply-adds, elementary functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import frexp, prod

from tirlite.analysis.param_uses import Use, touched
from tirlite.ir.expr import (
    Add,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Load,
    Max,
    Min,
    Mul,
    Ramp,
    Sub,
    Var,
)
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import Allocate, For, IfThenElse, Let, SeqStmt, Stmt, Store, View, While
from tirlite.ir.walk import statements, walk
from tirlite.record import record

_ARITHMETIC = (Add, Sub, Mul)
_INDEX = (Op.CHECKED, Op.MASKED)


@record
class Costs:
    """What a loop has to do.

    `read` and `written` are bytes of arrays and temporaries from outside of the loop, each element once. `operations`
    are floating additions, multiplications and fused ones, by type; `functions` the elementary functions, divisions
    and roots, by name and type. They are None where data decide how often something runs.
    """

    read: int
    written: int
    operations: Mapping[str, int] | None = None
    functions: Mapping[tuple[str, str], int] | None = None


@record
class _Range:
    """The least and the greatest value of an index, and that in the middle."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2


def costs_of(stmts: Sequence[Stmt], sizes: Mapping[Var, int]) -> Costs:
    """The cost of loops or calls together, at these values of dims and scalar parameters."""
    ranges = {var: _Range(value, value) for var, value in sizes.items()}
    for stmt in stmts:
        _note_ranges(stmt, ranges)
    own = {each.buffer for stmt in stmts for each in statements(stmt) if isinstance(each, Allocate | View)}
    boxes: dict[tuple[Buffer, bool], list[_Range]] = {}
    for buffer, use, node in (each for stmt in stmts for each in touched(stmt)):
        for is_write in (False, True):
            if buffer not in own and use & (Use.WRITE if is_write else Use.READ):
                _widen(boxes.setdefault((buffer, is_write), []), buffer, node, ranges)
    moved = Counter[bool]()
    for (buffer, is_write), box in boxes.items():
        moved[is_write] += buffer.dtype.bytes * int(prod(max(0, each.high - each.low + 1) for each in box))
    counted = _Counts(ranges)
    if not all(counted.add(stmt) for stmt in stmts):
        return Costs(moved[False], moved[True])
    return Costs(moved[False], moved[True], counted.operations, counted.functions)


def _note_ranges(stmt: Stmt, ranges: dict[Var, _Range]) -> None:
    """Adds the ranges of loops and lets inside a statement, as far as sizes decide them."""
    for each in statements(stmt):
        if isinstance(each, Let) and each.value.dtype.is_integer:
            found = _range(each.value, ranges)
            if found is not None:
                ranges[each.var] = found
        elif isinstance(each, For):
            start, stop = _range(each.start, ranges), _range(each.stop, ranges)
            if start is not None and stop is not None:
                is_up = each.step > 0
                ranges[each.var] = _Range(start.low, stop.high - 1) if is_up else _Range(stop.low + 1, start.high)


def _widen(box: list[_Range], buffer: Buffer, node: Node, ranges: Mapping[Var, _Range]) -> None:
    """Extends the box of a buffer by the elements of one more access."""
    shape = [found.high if (found := _range(extent, ranges)) is not None else 0.0 for extent in buffer.shape]
    indices = node.indices if isinstance(node, Load | Store) else (None,) * len(shape)
    for axis, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        found = _range(index, ranges) if index is not None else None
        found = _Range(max(found.low, 0.0), min(found.high, extent - 1)) if found else _Range(0.0, extent - 1)
        if axis == len(box):
            box.append(found)
        else:
            box[axis] = _Range(min(box[axis].low, found.low), max(box[axis].high, found.high))


def _range(expr: Expr, ranges: Mapping[Var, _Range], depth: int = 64) -> _Range | None:
    """The values of an index at these values of its variables; None where something else decides them."""
    if depth == 0:
        return None
    if isinstance(expr, IntImm):
        return _Range(expr.value, expr.value)
    if isinstance(expr, Var):
        return ranges.get(expr)
    if isinstance(expr, Cast | Broadcast):
        return _range(expr.value, ranges, depth - 1)
    if isinstance(expr, Call):
        return _range(expr.args[0], ranges, depth - 1) if expr.op in _INDEX else None
    if isinstance(expr, Ramp):
        base, stride = _range(expr.base, ranges, depth - 1), _range(expr.stride, ranges, depth - 1)
        if base is None or stride is None:
            return None
        ends = [0.0, stride.low * (expr.lanes - 1), stride.high * (expr.lanes - 1)]
        return _Range(base.low + min(ends), base.high + max(ends))
    if not isinstance(expr, Add | Sub | Mul | FloorDiv | FloorMod | Min | Max):
        return None
    a, b = _range(expr.a, ranges, depth - 1), _range(expr.b, ranges, depth - 1)
    return None if a is None or b is None else _of_two(expr, a, b)


def _of_two(expr: Expr, a: _Range, b: _Range) -> _Range | None:
    if isinstance(expr, Add):
        return _Range(a.low + b.low, a.high + b.high)
    if isinstance(expr, Sub):
        return _Range(a.low - b.high, a.high - b.low)
    if isinstance(expr, Mul):
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return _Range(min(ends), max(ends))
    if isinstance(expr, Min):
        return _Range(min(a.low, b.low), min(a.high, b.high))
    if isinstance(expr, Max):
        return _Range(max(a.low, b.low), max(a.high, b.high))
    if b.low <= 0:
        return None
    if isinstance(expr, FloorDiv):
        ends = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
        return _Range(min(ends), max(ends))
    # A remainder stays as it is where nothing is taken off.
    return a if a.low >= 0 and a.high < b.low else _Range(0, b.high - 1)


class _Counts:
    """Counts operations, each as often as it runs; bounds that vary are taken at their middle."""

    def __init__(self, ranges: Mapping[Var, _Range]) -> None:
        self._ranges = ranges
        self._middle = {var: _Range(found.middle, found.middle) for var, found in ranges.items()}
        self.operations: Counter[str] = Counter()
        self.functions: Counter[tuple[str, str]] = Counter()

    def add(self, stmt: Stmt) -> bool:
        """Whether sizes alone decide how often each statement in `stmt` runs. Of two branches that with more counts."""
        stack: list[tuple[Stmt, float]] = [(stmt, 1.0)]
        while stack:
            each, times = stack.pop()
            if isinstance(each, While):
                return False
            if isinstance(each, KernelCall):
                if not self._add_called(each, times):
                    return False
                continue
            if isinstance(each, For):
                start, stop = _range(each.start, self._middle), _range(each.stop, self._middle)
                if start is None or stop is None:
                    return False
                # Of a range, the middle: right in the mean for bounds that vary with the loops around.
                inside = times * max(0.0, (stop.middle - start.middle) / each.step)
                stack += ((inner, inside) for inner in each.body.stmts)
                continue
            if isinstance(each, IfThenElse) and each.else_body.stmts:
                if not self._add_branches((each.then_body, each.else_body), times):
                    return False
                continue
            for child in each.children():
                if isinstance(child, SeqStmt):
                    stack += ((inner, times) for inner in child.stmts)
                elif isinstance(child, Expr) and not isinstance(each, IfThenElse):
                    self._add(child, times)
        return True

    def _add_branches(self, branches: tuple[SeqStmt, SeqStmt], times: float) -> bool:
        """The same of what one of two branches does, so often."""
        found = [_Counts(self._ranges) for _ in branches]
        for counts, branch in zip(found, branches, strict=True):
            if not all(counts.add(stmt) for stmt in branch.stmts):
                return False
        one, other = found
        self._update(one.operations | other.operations, one.functions | other.functions, times)
        return True

    def _update(self, operations: Mapping[str, int], functions: Mapping[tuple[str, str], int], times: float) -> None:
        self.operations.update({kind: round(times * count) for kind, count in operations.items()})
        self.functions.update({named: round(times * count) for named, count in functions.items()})

    def _add_called(self, call: KernelCall, times: float) -> bool:
        """The same of a function that is called, with its dims and numbers as the call has them."""
        callee, ranges = call.callee, dict[Var, _Range]()
        for param, arg in call.scalars():
            if (found := _range(arg, self._middle)) is not None:
                ranges[param] = found
        for dim, value in callee.dims_at(dict(call.buffers())).items():
            if (found := _range(value, self._middle)) is not None:
                ranges[dim] = found
        for stmt in callee.body.stmts:
            _note_ranges(stmt, ranges)
        inside = _Counts(ranges)
        if not all(inside.add(stmt) for stmt in callee.body.stmts):
            return False
        self._update(inside.operations, inside.functions, times)
        return True

    def _add(self, expr: Expr, times: float) -> None:
        for node in walk(expr):
            if not isinstance(node, Expr) or not node.dtype.is_float:
                continue
            kind, count = node.dtype.scalar.name, round(times * node.dtype.lanes)
            if _adds_product(node):
                continue
            if isinstance(node, _ARITHMETIC) or _is_multiplication(node):
                self.operations[kind] += count
            elif isinstance(node, Div):
                self.functions["/", kind] += count
            elif isinstance(node, Call) and (node.op.takes_fast or node.op is Op.SQRT):
                self.functions[node.op.label + ("!" if node.op.is_fast else ""), kind] += count


def _adds_product(node: Expr) -> bool:
    """Whether a sum has a product as an operand: a multiply-add does both, which counts once."""
    return isinstance(node, Add | Sub) and any(isinstance(each, Mul) for each in (node.a, node.b))


def _is_multiplication(node: Expr) -> bool:
    """Whether a value costs what a product does: also one over a power of two."""
    if isinstance(node, Div):
        by = node.b.value if isinstance(node.b, Broadcast) else node.b
        return isinstance(by, FloatImm) and abs(frexp(by.value)[0]) == 0.5
    return isinstance(node, Call) and node.op is Op.FMA
