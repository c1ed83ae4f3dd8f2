"""Makes elementwise kernels for operands of given types: a loop over the elements, with NumPy's broadcasting.

Operands of the result's shape are read at the index that is written, so that the result may share memory with one.
"""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.ir import NE, Builder, Cast, DType, Expr, PrimFunc, TensorType, f32
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.formulas import Formula, number
from tirlite.kernels.operators.shapes import BroadcastAxis, Extent, broadcast, extents, nest, seen


@factory
def elementwise(name: str, formula: Formula, *types: TensorType, **attrs: object) -> PrimFunc:
    """Applies `formula`, with these attributes, to the operands' elements; the last of `types` is the result's."""
    return spread(name, types, lambda *values: formula(*values, **attrs))


@factory
def cast(x: TensorType, y: TensorType) -> PrimFunc:
    """Converts x to the type of y: integers wrap, floats saturate to integers, and bool is `!= 0`."""
    return spread("cast", (x, y), lambda value: value)


@factory
def bitcast(x: TensorType, y: TensorType) -> PrimFunc:
    """The bits of x as elements of the type of y, which has the same width."""
    b = Builder("bitcast")
    given, result = b.param("x0", x), b.param("y", y, out=True)
    bits = b.view("bits", given, TensorType(y.dtype, x.shape))
    with nest(b, extents(y)) as indices:
        b.store(result, indices, bits[indices])
    return b.build()


def spread(
    name: str, types: tuple[TensorType, ...], formula: Formula, shapes: Sequence[Sequence[Extent]] | None = None
) -> PrimFunc:
    """A kernel that applies `formula` to broadcast operands; the last of `types` is the result's.

    `shapes` may give other shapes as which operands and result are viewed.
    """
    b = Builder(name)
    *given, result = types
    buffers = [*(b.param(f"x{number}", each) for number, each in enumerate(given)), b.param("y", result, out=True)]
    shapes = shapes or [extents(each) for each in types]
    axes = broadcast(shapes, shapes[-1])
    *operands, output = [
        seen(b, each, [axis.extent for axis in axes if axis.present[number]]) for number, each in enumerate(buffers)
    ]
    with nest(b, [axis.extent for axis in axes]) as indices:
        values = [b.let(f"v{n}", widened(each[_index(axes, n, indices)])) for n, each in enumerate(operands)]
        b.store(output, indices, converted(formula(*values), output.dtype))
    return b.build()


def _index(axes: Sequence[BroadcastAxis], operand: int, variables: Sequence[Expr]) -> tuple[Expr, ...]:
    return tuple(var for axis, var in zip(axes, variables, strict=True) if axis.present[operand])


def computed_in(dtype: DType) -> DType:
    """The type in which elements of `dtype` are computed and summed: f32 for 16-bit floats, else `dtype`."""
    return f32 if dtype.is_float and dtype.bits == 16 else dtype


def widened(value: Expr) -> Expr:
    """An element converted to the type that it is computed in."""
    return value.astype(computed_in(value.dtype))


def converted(value: Expr, dtype: DType) -> Expr:
    """A value converted to another type, as by `cast`."""
    if dtype.is_bool and not value.dtype.is_bool:
        return NE(value, number(0, value))
    return value if value.dtype == dtype else Cast(dtype, value)
