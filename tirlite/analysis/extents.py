"""Extents of a function as sizes, and sizes as expressions: the bridge between the IR and `sizes`.

A size is known on entry to a function if it is made of constants, dims, i64 scalar parameters, and lets of these;
then its storage can be had before anything runs. It is a value in the integers: where i64 arithmetic would wrap around
on the way, that storage is refused. What is no extent may wrap around and be right, so `IndexSpace` looks at that.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import prod
from typing import TypeAlias

from tirlite.analysis.array_bounds import ArrayBounds, array_bounds
from tirlite.diag import KernelError
from tirlite.ir import (
    Add,
    Allocate,
    AttrStmt,
    Binary,
    Buffer,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mul,
    Neg,
    PrimFunc,
    SeqStmt,
    Stmt,
    Sub,
    Var,
    const,
    i64,
    statements_of,
    walk,
)
from tirlite.sizes import Dim, Proof, Scalar, Size, maximum, minimum, prove_le
from tirlite.sizes.extrema import Maximum, Minimum
from tirlite.sizes.poly import Atom, Quotient, Remainder, Terms, inside_out, terms_of

# An operation, and its operands; the second one of a negation is 0.
_Combination: TypeAlias = tuple[type[Expr], Size, Size]


class Extents:
    """What each variable that is known on entry stands for, as a size, and back."""

    def __init__(self, func: PrimFunc) -> None:
        self.sizes: dict[Var, Size] = {}
        self.given: dict[Var, Dim] = {}  # what does not come from a let
        self.variables: dict[Dim, Var] = {}
        self._combined: dict[_Combination, Size | None] = {}
        self._bytes: dict[tuple[int, tuple[Size, ...]], Size] = {}
        self._func = func
        for var in func.dims:
            # A shape is never negative; that a dim is positive is known only where its facts say so.
            self._enter(var, var.dim or Scalar(var.name, min=0))
        for param in func.params:
            if isinstance(param, Var) and param.dtype == i64:
                self._enter(param, param.dim or Scalar(param.name, min=i64.min, max=i64.max))
        for node in statements_of(func.body, Let):
            if (size := self.size(node.value)) is not None:
                self.sizes[node.var] = size

    def _enter(self, var: Var, dim: Dim) -> None:
        self.sizes[var] = dim + 0
        self.given[var] = dim
        self.variables[dim] = var

    def size(self, expr: Expr) -> Size | None:
        """The value of an i64 expression as a size; None where it is not known on entry."""
        if type(expr) is IntImm and expr.dtype == i64:  # the usual case
            return expr.value
        return _size(expr, self.sizes, self._combined)

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
        buffers = [param for param in self._func.params if isinstance(param, Buffer)]
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


def constant_bytes(buffer: Buffer) -> int | None:
    """The bytes of a buffer whose extents are constants, else None. An extent below zero counts as zero."""
    total = buffer.dtype.bytes
    for extent in buffer.shape:
        if type(extent) is not IntImm or extent.dtype is not i64:
            return None
        total *= max(extent.value, 0)
    return total


def _at_least_zero(size: Size) -> Size:
    if isinstance(size, int):
        return max(size, 0)
    return size if prove_le(0, size) is Proof.YES else maximum(0, size)


def expr_of(size: Size, variables: Mapping[Dim, Var]) -> Expr:
    """The i64 expression with the value of `size`, where `variables` stand for its dims."""
    if isinstance(size, int):
        return const(size, i64)
    images: dict[Atom, Expr] = {}
    for atom in inside_out(size):
        if isinstance(atom, Dim):
            images[atom] = variables[atom]
        else:
            images[atom] = _apply(atom, [_sum(terms_of(operand), images) for operand in atom.operands])
    return _sum(terms_of(size), images)


def size_over_dims(expr: Expr) -> Size | None:
    """The value of an i64 expression as a size; None where it is made of more than integers and dims."""
    known = {var: var.dim + 0 for var in walk(expr) if isinstance(var, Var) and var.dim is not None}
    return _size(expr, known, {})


def _size(expr: Expr, known: Mapping[Var, Size], combined: dict[_Combination, Size | None]) -> Size | None:
    """`combined` keeps what was worked out before: extents are often alike."""
    sizes: list[Size] = []  # of the operands that were met, each behind its own operands
    todo: list[Expr | tuple[Expr]] = [expr]
    while todo:
        node = todo.pop()
        size: Size | None = None
        if isinstance(node, tuple):
            operation = node[0]
            b = 0 if isinstance(operation, Neg) else sizes.pop()
            key = type(operation), sizes.pop(), b
            if key not in combined:
                try:
                    combined[key] = _combined(operation, *key[1:])
                except KernelError:  # it would be too long
                    combined[key] = None
            size = combined[key]
        elif isinstance(node, Var):
            size = known.get(node)
        elif node.dtype is not i64 and node.dtype != i64:
            return None
        elif isinstance(node, IntImm):
            size = node.value
        elif isinstance(node, Neg):
            todo += ((node,), node.a)
            continue
        elif isinstance(node, Binary):
            todo += ((node,), node.b, node.a)
            continue
        if size is None:
            return None
        sizes.append(size)
    return sizes.pop()


def _combined(expr: Expr, a: Size, b: Size) -> Size | None:
    """The size of an expression with these operands."""
    match expr:
        case Neg():
            return -a
        case Add():
            return a + b
        case Sub():
            return a - b
        case Mul():
            return a * b
        case Min():
            return minimum(a, b)
        case Max():
            return maximum(a, b)
        # The IR gives a division by zero a value; a size has none.
        case FloorDiv() if prove_le(1, b) is Proof.YES:
            return a // b
        case FloorMod() if prove_le(1, b) is Proof.YES:
            return a % b
    return None


def _apply(atom: Atom, operands: list[Expr]) -> Expr:
    kinds: dict[type[Atom], type[Binary]] = {Quotient: FloorDiv, Remainder: FloorMod, Maximum: Max, Minimum: Min}
    kind = kinds[type(atom)]
    result = operands[0]
    for operand in operands[1:]:
        result = kind(result, operand)
    return result


def _sum(terms: Terms, images: Mapping[Atom, Expr]) -> Expr:
    """A sum as people write it: what is subtracted after what is added, higher degrees first, the constant last."""
    ordered = sorted(terms.items(), key=lambda term: (term[1] < 0, not term[0], -len(term[0])))
    total: Expr | None = None
    for product, coefficient in ordered:
        part = _product(product, abs(coefficient), images)
        if total is None:
            total = part if coefficient > 0 else Neg(part)
        else:
            total = Add(total, part) if coefficient > 0 else Sub(total, part)
    return total if total is not None else const(0, i64)


def _product(product: tuple[Atom, ...], coefficient: int, images: Mapping[Atom, Expr]) -> Expr:
    factors = [images[atom] for atom in product]
    if coefficient != 1 or not factors:
        factors.insert(0, const(coefficient, i64))
    result = factors[0]
    for factor in factors[1:]:
        result = Mul(result, factor)
    return result
