"""Rewrites the function of an operator so that elementwise ones are applied to its results as they are stored.

`elements_of` gives the formula of such a call for one element of each operand.

The operator may be any: if each store into the result gives an element its final value, and no value is read back, the
formulas of that value are stored instead, with the same order of operations and roundings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from itertools import count
from typing import TypeAlias

from tirlite.graph.expr import Call
from tirlite.graph.extents import is_equal
from tirlite.graph.op import Op
from tirlite.graph.types import TensorType
from tirlite.ir.dtype import DType, i64
from tirlite.ir.expr import Add, Buffer, Expr, LetExpr, Load, Mul, Neg, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import AttrKey, AttrStmt, Let as LetStmt, Permission, SeqStmt, Stmt, Store, View
from tirlite.ir.walk import walk
from tirlite.kernels.operators.elementwise import converted, widened
from tirlite.kernels.operators.shapes import (
    BroadcastAxis,
    Extent,
    as_expr,
    broadcast,
    extents,
    is_one,
    is_same,
    product,
)
from tirlite.record import record

Formula: TypeAlias = Callable[..., Expr]


@record(eq=False)
class Elements:
    """A formula of elements, and for each operand the axis of the result of each of its axes, None for extent 1."""

    formula: Formula
    axes: tuple[tuple[int | None, ...], ...]


def elements_of(call: Call) -> Elements | None:
    """The elementwise formula of a call; None if it is not elementwise, or too little is known of its extents."""
    if not isinstance(call.op, Op) or call.is_view or not isinstance(call.type, TensorType):
        return None
    lowering = call.op.lowering
    if lowering is None or lowering.formula is None or call.attrs.symbolic_sizes():
        return None
    aligned = lowering.aligned
    first = getattr(call.attrs, aligned) if isinstance(aligned, str) else aligned
    axes = tuple(_axes(arg.tensor, call.type, first) for arg in call.args)
    found = tuple(each for each in axes if each is not None)
    if len(found) < len(axes):
        return None
    attrs = {e.name: getattr(call.attrs, e.name) for e in fields(call.attrs) if e.name not in lowering.said}
    return Elements(partial(lowering.formula, **attrs), found)


def _axes(of: TensorType, result: TensorType, aligned: int | None) -> tuple[int | None, ...] | None:
    """The axes of the result for those of an operand: the last ones, or those from `aligned` on."""
    first = result.rank - of.rank if aligned is None or of.rank >= result.rank else aligned % result.rank
    made: list[int | None] = []
    for number, extent in enumerate(of.shape, first):
        if extent == 1:
            made.append(None)
        elif is_equal(extent, result.shape[number]):
            made.append(number)
        else:
            return None
    return tuple(made)


def place(axes: Sequence[BroadcastAxis], shape: Sequence[Extent], indices: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """The indices of the axes that operand 0 has, at `indices` of a box of `shape`, which has the elements of `axes`.

    None where extents over dims do not tell.
    """
    found: list[Expr] = []
    for number, axis in enumerate(axes):
        if axis.present[0]:
            inner = product(each.extent for each in axes[number + 1 :])
            index = _along(shape, indices, inner, axis.extent)
            if index is None:
                return None
            found.append(index)
    return tuple(found)


def _along(shape: Sequence[Extent], indices: Sequence[Expr], inner: Extent, extent: Extent) -> Expr | None:
    """The index along an axis of this extent, with `inner` elements per index."""
    behind = [product(shape[axis:]) for axis in range(len(shape) + 1)]
    cut = next((axis for axis, each in enumerate(behind) if is_same(each, inner)), None)
    if cut is None:
        return _by_division(shape, behind, indices, inner, extent)
    outer = product((extent, inner))
    first = next((axis for axis in range(cut + 1) if is_same(behind[axis], outer)), None)
    if first is not None:
        return _numbered(shape[first:cut], indices[first:cut])
    return _round_again(shape[:cut], indices[:cut], extent)


def _numbered(shape: Sequence[Extent], indices: Sequence[Expr]) -> Expr:
    """The row-major number of an element in a box."""
    total: Expr | None = None
    for extent, index in zip(shape, indices, strict=True):
        if not is_one(extent):
            total = index if total is None else total * extent + index
    return const(0, i64) if total is None else total


def _round_again(shape: Sequence[Extent], indices: Sequence[Expr], period: Extent) -> Expr | None:
    """The row-major number of an element in a box modulo `period`, without terms that are multiples of the period.

    Axes that lie within a period are added outside of the modulo: vectors and tiles go along them.
    """
    if not isinstance(period, int) or not period:
        return None
    strides = [product(shape[axis + 1 :]) for axis in range(len(shape))]
    known = [stride for stride in strides if isinstance(stride, int)]
    if len(known) < len(strides):
        return None
    within = next((axis for axis, each in enumerate(known) if each and period % each == 0 and each < period), 0)
    if within + 1 < len(shape):
        outer = _round_again(shape[: within + 1], indices[: within + 1], period // known[within])
        inner = _numbered(shape[within + 1 :], indices[within + 1 :])
        return outer if outer is None else outer * known[within] + inner
    total: Expr | None = None
    for extent, index, stride in zip(shape, indices, known, strict=True):
        if stride % period and not is_one(extent):
            term = index if stride == 1 else index * stride
            total = term if total is None else total + term
    return const(0, i64) if total is None else total % period


def _by_division(
    shape: Sequence[Extent], behind: Sequence[Extent], indices: Sequence[Expr], inner: Extent, extent: Extent
) -> Expr | None:
    """The index if the axis begins or ends within an axis of the box."""
    if not (isinstance(inner, int) and isinstance(extent, int) and inner and extent):
        return None
    units = [each if isinstance(each, int) and each else 0 for each in behind]
    cut = next(axis for axis, each in enumerate(units) if each and inner % each == 0)
    steps = inner // units[cut]
    number = _round_again(shape[:cut], indices[:cut], steps * extent)
    return number if number is None or steps == 1 else number // steps


@record(eq=False)
class Operand:
    """An operand from outside: its element type, and the axis of the result of each of its axes, None for extent 1."""

    dtype: DType
    axes: tuple[int | None, ...]


@record(eq=False)
class FusedStep:
    """`formula` of values by number: 0 is what the function stores, 1 the result of the first step; ~0 is operand 0."""

    formula: Formula
    dtype: DType
    values: tuple[int, ...]


def why_not(func: PrimFunc) -> str:
    """Why the results of a function cannot be changed as it stores them; "" if they can."""
    if len(func.outputs) != 1 or func.params[-1] is not func.outputs[0]:
        return f"`{func.name}` has more than one result"
    seen = {func.outputs[0]}
    for node in walk(func.body):
        if isinstance(node, AttrStmt) and not (node.key is AttrKey.ALLOW and node.value == (Permission.CONTRACT,)):
            return f"`{func.name}` has statements with attributes"
        if not node.USES or not _uses(node) & seen:
            continue
        if isinstance(node, View) and _is_whole(node):
            seen.add(node.buffer)
        elif not isinstance(node, Store) or node.value.dtype.lanes != 1:
            return f"`{func.name}` reads what it has stored, or stores it by vectors"
    return ""


def _uses(node: Node) -> set[Buffer]:
    found: set[Buffer] = set()
    for name in node.USES:
        value = getattr(node, name)
        found.update(value if isinstance(value, tuple) else () if value is None else (value,))
    return found


def _is_whole(view: View) -> bool:
    """Whether a view begins at the first element of its source, with its type."""
    return getattr(view.byte_offset, "value", None) == 0 and view.buffer.dtype == view.source.dtype


def finished(func: PrimFunc, name: str, operands: Sequence[Operand], steps: Sequence[FusedStep]) -> PrimFunc | None:
    """`func` with the operands of the steps after its own, which stores the result of the last step.

    None if symbolic extents do not determine which element of an operand belongs to a store.
    """
    finish = _Finish(func, operands, steps)
    body = rewrite(func.body, {View: finish.view, Store: finish.store})
    if finish.is_lost:
        return None
    assert isinstance(body, SeqStmt)
    params = (*func.params[:-1], *finish.operands, finish.result)
    body = SeqStmt((*finish.front, *body.stmts))
    return func.replaced(name=name, params=params, body=body, outputs=(finish.result,))


class _Finish:
    def __init__(self, func: PrimFunc, operands: Sequence[Operand], steps: Sequence[FusedStep]) -> None:
        (old,) = func.outputs
        self.steps = steps
        self.result = Buffer(old.name, steps[-1].dtype, old.shape)
        self.seen = {old: self.result}
        self.is_lost = False
        self.front: list[Stmt] = []
        shape = extents(old)
        self.operands: list[Buffer] = []
        self.axes: list[tuple[BroadcastAxis, ...]] = []
        self.shown: list[dict[Buffer, Buffer]] = []
        taken = {param.name for param in func.params}
        names = (name for name in map("e{}".format, count()) if name not in taken)
        for each in operands:
            own = tuple(1 if axis is None else shape[axis] for axis in each.axes)
            buffer = Buffer(next(names), each.dtype, tuple(map(as_expr, own)))
            spread = [shape[axis] if axis in each.axes else 1 for axis in range(len(shape))]
            axes = broadcast([spread, shape], shape)
            self.operands.append(buffer)
            self.axes.append(axes)
            self.shown.append({})
            if all(axis.present[0] for axis in axes):
                # Seen as the kernel sees the result, and read where it stores.
                self.front += self._show(-1, old)
            else:
                box = tuple(axis.extent for axis in axes if axis.present[0])
                self.front += self._view(buffer, box, self.shown[-1], buffer)

    def _view(self, buffer: Buffer, shape: Sequence[Extent], shown: dict[Buffer, Buffer], key: Buffer) -> list[Stmt]:
        own = extents(buffer)
        if len(own) == len(shape) and all(map(is_same, own, shape)):
            shown[key] = buffer
            return []
        shown[key] = Buffer(f"{buffer.name}_", buffer.dtype, tuple(map(as_expr, shape)))
        return [View(shown[key], buffer, const(0, i64))]

    def _show(self, number: int, seen: Buffer) -> list[Stmt]:
        return self._view(self.operands[number], extents(seen), self.shown[number], seen)

    def view(self, stmt: View) -> Stmt | tuple[Stmt, ...]:
        """A view of the result, and the same views of operands."""
        if stmt.source not in self.seen:
            return stmt
        made = Buffer(stmt.buffer.name, self.result.dtype, stmt.buffer.shape)
        self.seen[stmt.buffer] = made
        along: list[Stmt] = []
        for number, axes in enumerate(self.axes):
            if all(axis.present[0] for axis in axes):
                along += self._show(number, stmt.buffer)
        return (stmt.replaced(buffer=made, source=self.seen[stmt.source]), *along)

    def store(self, stmt: Store) -> Stmt | tuple[Stmt, ...]:
        """The store of the steps' result in the place of the stored value."""
        if stmt.buffer not in self.seen:
            return stmt
        lets: list[Stmt] = []
        loads = [self._load(number, stmt, lets) for number, _ in enumerate(self.operands)]
        values = [_let("made", stmt.value, lets)]
        for number, step in enumerate(self.steps):
            given = [values[each] if each >= 0 else loads[~each] for each in step.values]
            value = converted(_apart(step.formula(*map(widened, given)), lets), step.dtype)
            values.append(value if number == len(self.steps) - 1 else _let("made", value, lets))
        return (*lets, Store(self.seen[stmt.buffer], stmt.indices, values[-1], span=stmt.span))

    def _load(self, number: int, stmt: Store, lets: list[Stmt]) -> Expr:
        shown, axes = self.shown[number], self.axes[number]
        if stmt.buffer in shown:
            return _let("beside", Load(shown[stmt.buffer], stmt.indices), lets)
        indices = place(axes, extents(stmt.buffer), stmt.indices)
        self.is_lost = self.is_lost or indices is None
        return _let("beside", Load(shown[self.operands[number]], indices or ()), lets)


def _apart(value: Expr, lets: list[Stmt]) -> Expr:
    """A value with names for products that are added: the kernel's permission to contract does not apply to them."""
    is_open = not any(isinstance(each, LetExpr) for each in walk(value))

    def named(node: Add | Sub) -> Expr:
        products = {side: each for side, each in (("a", node.a), ("b", node.b)) if isinstance(each, Mul | Neg)}
        names = {side: Var("product", each.dtype) for side, each in products.items() if each.dtype.is_float}
        made: Expr = node.replaced(**names) if names else node
        for side, var in names.items():
            if is_open:
                lets.append(LetStmt(var, products[side]))
            else:
                made = LetExpr(var, products[side], made)
        return made

    found = rewrite(value, {Add: named, Sub: named})
    assert isinstance(found, Expr)
    return found


def _let(name: str, value: Expr, lets: list[Stmt]) -> Expr:
    var = Var(name, value.dtype)
    lets.append(LetStmt(var, value))
    return var
