"""Says which temporary of a call has an impossible size, or more bytes than there are: the slow path of a run."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NoReturn

from tirlite.analysis.integers.extents import known_values
from tirlite.diag import Span
from tirlite.ir import Allocate, Buffer, Load, PrimFunc, Store, Var, View, statements, statements_of, walk
from tirlite.ir.size import value_of
from tirlite.runtime.bind import Binding
from tirlite.runtime.messages import NegativeTemporary, NoWorkspace, WorkspaceTooLarge
from tirlite.runtime.signature import Signature
from tirlite.show import shown


def refuse_workspace(signature: Signature, binding: Binding, func: PrimFunc, size: int) -> NoReturn:
    """Names the largest buffer in the workspace."""
    values = _numbers(signature, binding, func)
    stored = [each for stmt in statements_of(func.body, Allocate) for each in _sharers(func, stmt.buffer)]
    largest = max(stored, key=lambda each: _bytes(each, values))
    span = _declared(func, largest)
    raise NoWorkspace(signature.name, size, largest.name, _bytes(largest, values), span=span).error()


def refuse_size(signature: Signature, binding: Binding, func: PrimFunc, buffer: Buffer) -> NoReturn:
    """Computes again in unbounded integers the size that the size function found impossible."""
    values = _numbers(signature, binding, func)
    strides = {stride for param in signature.arrays for stride in param.buffer.strides or ()}
    sizes = ", ".join(f"{var.name} = {shown(value)}" for var, value in values.items() if var not in strides)
    extents = _extents(buffer, values)
    if min(extents, default=0) < 0:
        raise NegativeTemporary(signature.name, buffer.name, min(extents), sizes, span=_declared(func, buffer)).error()
    size = str(buffer.dtype.bytes * prod(extents)) if len(extents) == len(buffer.shape) else "too many"
    largest = max(_sharers(func, buffer), key=lambda each: _bytes(each, values))
    raise WorkspaceTooLarge(signature.name, size, largest.name, sizes, span=_declared(func, largest)).error()


def _declared(func: PrimFunc, buffer: Buffer) -> Span | None:
    """The span of a buffer's declaration; None for a parameter."""
    declared = (stmt for stmt in statements(func.body) if isinstance(stmt, Allocate | View))
    return next((stmt.span for stmt in declared if stmt.buffer is buffer), None)


def _numbers(signature: Signature, binding: Binding, func: PrimFunc) -> dict[Var, int]:
    """The integers known on entry, and those computed from them by arithmetic."""
    values = dict(zip(signature.dims, binding.dims, strict=True))
    for scalar in signature.scalars:
        if scalar.var.dtype.is_integer:
            values[scalar.var] = int(binding.operands[scalar.position])
    return known_values(func, values)


def _extents(buffer: Buffer, values: Mapping[Var, int]) -> list[int]:
    """The extents that are known from arithmetic alone."""
    return [value for extent in buffer.shape if (value := value_of(extent, values)) is not None]


def _bytes(buffer: Buffer, values: Mapping[Var, int]) -> int:
    return buffer.dtype.bytes * prod(_extents(buffer, values))


def _sharers(func: PrimFunc, storage: Buffer) -> list[Buffer]:
    """The buffers placed in a storage buffer, and itself unless it was made only for them."""
    views = [view.buffer for view in statements_of(func.body, View) if view.source is storage and view.fresh]
    touched = any(isinstance(node, Load | Store) and node.buffer is storage for node in walk(func.body))
    return [storage, *views] if touched or not views else views
