"""Element-wise operators: types of operands in, a loop over the elements out, with NumPy's broadcasting.

Operands of the shape of the result are read at the index that is written, so that any of them may lend it its bytes.
"""

from __future__ import annotations

from contextlib import ExitStack

from tirlite.ir import NE, Buffer, Builder, Cast, DType, Expr, PrimFunc, TensorType, f32
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.formulas import FORMULAS, Formula, number
from tirlite.kernels.operators.shapes import Axis, broadcast, extents


@factory
def elementwise(op: str, *types: TensorType, **attrs: object) -> PrimFunc:
    """The operator called `op` in `FORMULAS`, on operands and a result of these types; `attrs` are its attributes."""
    formula = FORMULAS[op]
    return spread(op, types, lambda *values: formula(*values, **attrs))


@factory
def cast(x: TensorType, y: TensorType) -> PrimFunc:
    """The elements of `x` in the type of `y`: integers wrap, floats saturate to integers, to bool is `!= 0`."""
    return spread("cast", (x, y), lambda value: value)


def spread(name: str, types: tuple[TensorType, ...], formula: Formula) -> PrimFunc:
    """A function that gives `formula` of the operands, all of `types` but the last, at each element of the last."""
    b = Builder(name)
    *given, result = types
    operands = [b.param(f"x{number}", each) for number, each in enumerate(given)]
    output = b.param("y", result, out=True)
    axes = broadcast([extents(each) for each in (*given, result)], extents(result))
    seen = [_seen(b, each, [axis for axis in axes if axis.present[n]]) for n, each in enumerate((*operands, output))]
    with ExitStack() as nest:
        loops = [(b.for_ if level else b.parallel)(f"i{level}", 0, axis.extent) for level, axis in enumerate(axes)]
        variables = [nest.enter_context(loop) for loop in loops]
        values = [b.let(f"v{n}", _widened(each[_index(axes, n, variables)])) for n, each in enumerate(seen[:-1])]
        b.store(seen[-1], tuple(variables), converted(formula(*values), output.dtype))
    return b.build()


def _seen(b: Builder, buffer: Buffer, axes: list[Axis]) -> Buffer:
    """A buffer over the joined axes that it has."""
    if len(axes) == len(buffer.shape):
        return buffer
    return b.view(f"{buffer.name}_", buffer, TensorType(buffer.dtype, tuple(axis.extent for axis in axes)))


def _index(axes: tuple[Axis, ...], operand: int, variables: list[Expr]) -> tuple[Expr, ...]:
    return tuple(var for axis, var in zip(axes, variables, strict=True) if axis.present[operand])


def computed_in(dtype: DType) -> DType:
    """The type in which elements of `dtype` are computed and summed: f32 for those of 16 bits."""
    return f32 if dtype.is_float and dtype.bits == 16 else dtype


def _widened(value: Expr) -> Expr:
    return value.astype(computed_in(value.dtype))


def converted(value: Expr, dtype: DType) -> Expr:
    """A value in another type, as `cast` has it."""
    if dtype.is_bool and not value.dtype.is_bool:
        return NE(value, number(0, value))
    return value if value.dtype == dtype else Cast(dtype, value)
