"""The extents of a function as sizes.

A size is known on entry to a function if it is made of constants, dims, i64 scalar parameters, and lets of these;
then its storage can be allocated before anything runs. It is a value in the integers: where i64 arithmetic would wrap
around on the way, that storage is refused. What is not an extent may wrap around and be right, so `IndexSpace` looks at
that.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tirlite.analysis.integers.array_bounds import ArrayBounds, array_bounds
from tirlite.ir import Allocate, AttrStmt, Buffer, Expr, IntImm, Let, PrimFunc, SeqStmt, Stmt, Var, i64, statements_of
from tirlite.ir.shapes import constant_bytes
from tirlite.ir.size import Combination, expr_of, size_of_expr, value_of
from tirlite.record import cached_property
from tirlite.sizes import Dim, Scalar, Size, is_at_most, maximum
from tirlite.sizes.terms import Origin


class Extents:
    """What each variable that is known on entry stands for, as a size, and back.

    `origin` numbers the parameters that are not dims, and what else sizes are made of in this function.
    """

    def __init__(self, func: PrimFunc) -> None:
        self.sizes: dict[Var, Size] = {}
        self.given: dict[Var, Dim] = {}  # what does not come from a let
        self.variables: dict[Dim, Var] = {}
        self._combined: dict[Combination, Size | None] = {}
        self._met: dict[Expr, Size | None] = {}  # the extents of a buffer are asked for at each access
        self._bytes: dict[tuple[int, tuple[Size, ...]], Size] = {}
        self._func = func
        self.origin = Origin()
        self._enter_all()
        self._enter_lets()

    def _enter_all(self) -> None:
        """Enter what the caller gives."""
        for var in self._func.dims:
            # A shape is never negative; that a dim is positive is known only where its facts say so.
            self._enter(var, var.dim or Scalar(var.name, min=0, origin=self.origin))
        for param in self._func.params:
            if isinstance(param, Var) and param.dtype == i64:
                self._enter(param, param.dim or Scalar(param.name, i64.min, i64.max, origin=self.origin))

    def _enter_lets(self) -> None:
        for node in statements_of(self._func.body, Let):
            if node.var.dtype.lanes == 1 and (size := size_of_expr(node.value, self.sizes, self._combined)) is not None:
                self.sizes[node.var] = size

    def _enter(self, var: Var, dim: Dim) -> None:
        self.sizes[var] = dim + 0
        self.given[var] = dim
        self.variables[dim] = var

    def size(self, expr: Expr) -> Size | None:
        """The value of an i64 expression as a size; None where it is not known on entry."""
        if type(expr) is IntImm and expr.dtype == i64:  # the usual case
            return expr.value
        if expr not in self._met:
            self._met[expr] = size_of_expr(expr, self.sizes, self._combined)
        return self._met[expr]

    def bytes(self, buffer: Buffer) -> Size | None:
        """The bytes of a buffer; None where they are not known on entry. An extent below zero counts as zero."""
        constant = constant_bytes(buffer)
        if constant is not None:
            return constant
        sizes = []
        for extent in buffer.shape:
            size = self.size(extent)
            if size is None:
                return None
            sizes.append(size)
        key = buffer.dtype.bytes, tuple(sizes)
        if key not in self._bytes:
            self._bytes[key] = prod(map(_at_least_zero, sizes), start=buffer.dtype.bytes)
        return self._bytes[key]

    @cached_property
    def arrays(self) -> ArrayBounds:
        """What the arrays tell of their extents that no run of the function can do without."""
        buffers = [*self._func.arrays]
        todo: list[Stmt] = [self._func.body]
        while todo:
            stmt = todo.pop()
            if isinstance(stmt, Allocate):
                buffers.append(stmt.buffer)
            elif isinstance(stmt, SeqStmt):
                todo += stmt.stmts
            elif isinstance(stmt, AttrStmt):
                todo.append(stmt.body)
        return array_bounds(dict.fromkeys(size for each in buffers if (size := self.bytes(each)) is not None))

    def expr(self, size: Size) -> Expr:
        """The i64 expression with the value of `size`, over this function's dims and parameters."""
        return expr_of(size, self.variables)


def known_values(func: PrimFunc, given: Mapping[Var, int]) -> dict[Var, int]:
    """What is given on entry to a function, and what arithmetic makes of it in the lets of the function."""
    values = dict(given)
    for let in statements_of(func.body, Let):
        value = value_of(let.value, values)
        if value is not None:
            values[let.var] = value
    return values


def _at_least_zero(size: Size) -> Size:
    if isinstance(size, int):
        return max(size, 0)
    return size if is_at_most(0, size) else maximum(0, size)
