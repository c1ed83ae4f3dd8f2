"""Describes the parameters of a function for its callers."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tirlite.ir import Buffer, Expr, IntImm, PrimFunc, Var
from tirlite.record import record

if TYPE_CHECKING:
    import numpy as np


@record
class ArrayParam:
    """An array parameter.

    Its axes are sorted by kind of extent: `bare` (axis, number of the dim), `fixed` (axis, integer), `computed` (axis,
    expression). The lanes of a vector element type are a last axis.
    """

    buffer: Buffer
    position: int
    dtype: np.dtype[np.generic]
    rank: int
    align: int  # bytes
    is_written: bool
    is_output: bool
    bare: tuple[tuple[int, int], ...]
    fixed: tuple[tuple[int, int], ...]
    computed: tuple[tuple[int, Expr], ...]

    @property
    def name(self) -> str:
        return self.buffer.name

    @property
    def extents(self) -> tuple[Expr | int, ...]:
        lanes = self.buffer.dtype.lanes
        return (*self.buffer.shape, lanes) if lanes > 1 else self.buffer.shape


@record
class ScalarParam:
    """A scalar parameter."""

    var: Var
    position: int
    default: bool | int | float | None = None

    @property
    def name(self) -> str:
        return self.var.name


@record
class Signature:
    """The parameters of a function, and its dims in the order in which the kernel takes them."""

    func: PrimFunc
    names: tuple[str, ...]
    arrays: tuple[ArrayParam, ...]
    scalars: tuple[ScalarParam, ...]
    dims: tuple[Var, ...]

    @property
    def name(self) -> str:
        return self.func.name

    @property
    def text(self) -> str:
        """The function's head: `add(x: f32[n], y: f32[n])`."""
        # A lazy import: printing is needed only for messages and for display.
        from tirlite.runtime.signature_text import head_text

        return head_text(self.func)


def signature_of(func: PrimFunc, written: Collection[Var | Buffer] | None = None) -> Signature:
    """The signature of a function; `written` are the arrays that it writes, if the body is not there to tell.

    Raises KernelError for a shape that no array can be checked against.
    """
    dims = func.dims
    if written is None:
        from tirlite.analysis.param_uses import written_params  # looks at the whole body

        written = written_params(func)
    arrays: list[ArrayParam] = []
    scalars: list[ScalarParam] = []
    for position, param in enumerate(func.params):
        if isinstance(param, Var):
            scalars.append(ScalarParam(param, position, func.default_of(param)))
            continue
        if not all(isinstance(extent, Var | IntImm) for extent in param.shape):
            from tirlite.runtime.extents import check_extent

            for extent in param.shape:
                check_extent(extent, param.name, func.span)
        arrays.append(_array(param, position, dims, is_written=param in written, is_output=param in func.outputs))
    names = tuple(param.name for param in func.params)
    return Signature(func, names, tuple(arrays), tuple(scalars), dims)


def _array(buffer: Buffer, position: int, dims: tuple[Var, ...], *, is_written: bool, is_output: bool) -> ArrayParam:
    bare: list[tuple[int, int]] = []
    fixed: list[tuple[int, int]] = []
    computed: list[tuple[int, Expr]] = []
    for axis, extent in enumerate(buffer.shape):
        if isinstance(extent, Var) and extent in dims:
            bare.append((axis, dims.index(extent)))
        elif isinstance(extent, IntImm):
            fixed.append((axis, extent.value))
        else:
            computed.append((axis, extent))
    rank = len(buffer.shape)
    if buffer.dtype.lanes > 1:
        fixed.append((rank, buffer.dtype.lanes))
        rank += 1
    align = max(buffer.alignment, buffer.dtype.scalar.bytes)
    dtype = buffer.dtype.stored
    return ArrayParam(
        buffer, position, dtype, rank, align, is_written, is_output, tuple(bare), tuple(fixed), tuple(computed)
    )
