"""Converts expressions to sizes and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TypeAlias

from tirlite.diag import KernelError
from tirlite.ir.dtype import i64
from tirlite.ir.expr import (
    Add,
    Binary,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Neg,
    ShiftLeft,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    const,
)
from tirlite.ir.walk import variables_in, walk
from tirlite.sizes import Dim, Scalar, Size, SizeLike, as_size, dims_of, is_at_most, maximum, minimum
from tirlite.sizes.extrema import Maximum, Minimum
from tirlite.sizes.poly import Atom, Poly, Quotient, Remainder, Terms, inside_out, is_of_sympy, terms_of
from tirlite.sizes.terms import Origin

# An operation and its operands; the second one is 0 for a negation and for a cast.
Combination: TypeAlias = tuple[type[Expr], Size, Size]
# Constants up to this can be added to and multiplied with an extent without overflow of i64.
_LARGE = 1 << 30


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b) if b else 0
    return quotient if (a < 0) == (b < 0) else -quotient


# The results of operations on integers, before wrapping to the type.
ARITHMETIC: Mapping[type[Expr], Callable[[int, int], int]] = {
    Cast: lambda a, _: a,
    Neg: lambda a, _: -a,
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
    FloorDiv: lambda a, b: a // b if b else 0,
    FloorMod: lambda a, b: a % b if b else 0,
    TruncDiv: _truncated,
    TruncMod: lambda a, b: a - b * _truncated(a, b) if b else 0,
    Min: min,
    Max: max,
    ShiftLeft: lambda a, b: a << b if 0 <= b < i64.bits else 0,
}


def expr_of(size: Size, variables: Mapping[Dim, Expr]) -> Expr:
    """The i64 expression with the value of `size`; `variables` stand for its dims."""
    if isinstance(size, int):
        return const(size, i64)
    images: dict[Atom, Expr] = {}
    for atom in inside_out(size):
        if isinstance(atom, Dim):
            images[atom] = variables[atom]
        else:
            images[atom] = _apply(atom, [sum_expr(terms_of(operand), images) for operand in atom.operands])
    return sum_expr(terms_of(size), images)


def expr_over_dims(size: SizeLike) -> Expr:
    """The i64 expression with the value of `size`, over new variables, which `with_one_dim_each` unifies."""
    return expr_of(as_size(size), {dim: Var(dim.name, i64, dim) for dim in dims_of(size)})


def expr_of_size(value: object, beside: Expr | None) -> Expr:
    """A size or sympy expression as an i64 expression; symbols are the dims of those names in `beside`.

    Raises TypeError for other values, KernelError for sympy functions that sizes lack.
    """
    met = walk(beside) if beside is not None else ()
    variables = {var.dim: var for var in met if isinstance(var, Var) and var.dim is not None}
    if is_of_sympy(value):
        dims = {dim.name: dim for dim in variables}
        value = import_module("tirlite.sizes.exchange").from_sympy(value, dims)
    size = as_size(value)
    return expr_of(size, {dim: Var(dim.name, i64, dim) for dim in dims_of(size)} | variables)


def size_over_dims(expr: Expr) -> Size | None:
    """An i64 expression as a size; None if it contains more than integers and dims."""
    known = {var: var.dim + 0 for var in variables_in(expr) if var.dim is not None}
    return size_of_expr(expr, known, {})


def value_of(expr: Expr, values: Mapping[Var, int]) -> int | None:
    """The value of an integer expression; None if it is more than arithmetic on variables with `values`.
    Sums in i64 do not wrap, unlike in the kernel: no array fits a shape that overflows. Casts and narrower types do
    wrap: `tl.i64(tl.u8(n))` is 44 for n = 300.
    """
    found = size_of_expr(expr, values, {})
    assert not isinstance(found, Poly)
    return found


def times_and_plus(extent: Expr, dims: Sequence[Var]) -> tuple[Var, int, int] | None:
    """A dim, a factor and a constant such that the extent is `factor * dim + constant`; None for other extents.

    The factor is positive, so that the extent determines the dim, and both numbers are too small to overflow.
    """
    origin = Origin()
    atoms = {Scalar(var.name, origin=origin): var for var in dims}
    size = size_of_expr(extent, {var: atom + 0 for atom, var in atoms.items()}, {})
    if size is None or isinstance(size, int):
        return None
    terms = dict(terms_of(size))
    added = terms.pop((), 0)
    ((product, factor),) = terms.items() if len(terms) == 1 else [((), 0)]
    if len(product) != 1 or not 1 <= factor <= _LARGE or abs(added) > _LARGE:
        return None
    var = next((var for atom, var in atoms.items() if atom == product[0]), None)
    return None if var is None else (var, factor, added)


def size_of_expr(expr: Expr, known: Mapping[Var, Size], combined: dict[Combination, Size | None]) -> Size | None:
    """An i64 expression over `known` variables as a size; None if it contains more than these.

    `combined`: a cache of earlier results, as extents are often alike.
    """
    sizes: list[Size] = []  # the stack of evaluated operands
    todo: list[Expr | tuple[Expr]] = [expr]
    while todo:
        node = todo.pop()
        size: Size | None = None
        if isinstance(node, tuple):
            operation = node[0]
            b = sizes.pop() if isinstance(operation, Binary) else 0
            a = sizes.pop()
            if isinstance(a, int) and isinstance(b, int):
                size = _number(operation, a, b)
            elif operation.dtype == i64:
                key = type(operation), a, b
                if key not in combined:
                    try:
                        combined[key] = _combined(operation, a, b)
                    except KernelError:  # the polynomial would be too long
                        combined[key] = None
                size = combined[key]
        elif isinstance(node, Var):
            size = known.get(node)
        elif not (node.dtype is i64 or node.dtype.is_integer):
            return None
        elif isinstance(node, IntImm):
            size = node.value
        elif isinstance(node, Binary):
            todo += ((node,), node.b, node.a)
            continue
        elif isinstance(node, Neg | Cast):
            todo += ((node,), node.a if isinstance(node, Neg) else node.value)
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
        # A division by zero has a value in the IR, but not as a size.
        case FloorDiv() if is_at_most(1, b):
            return a // b
        case FloorMod() if is_at_most(1, b):
            return a % b
    return None


def _number(expr: Expr, a: int, b: int) -> int | None:
    compute = ARITHMETIC.get(type(expr))
    if compute is None:
        return None
    value, dtype = compute(a, b), expr.dtype
    is_whole = dtype == i64 and not isinstance(expr, Cast)
    return value if is_whole else (value - dtype.min) % (1 << dtype.bits) + dtype.min


def _apply(atom: Atom, operands: list[Expr]) -> Expr:
    kinds: dict[type[Atom], type[Binary]] = {Quotient: FloorDiv, Remainder: FloorMod, Maximum: Max, Minimum: Min}
    kind = kinds[type(atom)]
    result = operands[0]
    for operand in operands[1:]:
        result = kind(result, operand)
    return result


def sum_expr(terms: Terms, images: Mapping[Atom, Expr]) -> Expr:
    """A sum in conventional order: added terms before subtracted ones, higher degrees first, the constant last."""
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
