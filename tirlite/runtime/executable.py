"""Compiled code and a checked call in; the kernel's effect on the arrays out."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, NoReturn

from tirlite.analysis import shape_plan
from tirlite.analysis.exact_value import is_known, known_values, value_of
from tirlite.codegen import Lowered, ObjectCode
from tirlite.ir import Allocate, Buffer, Load, PrimFunc, Store, Var, View, statements, statements_of, walk
from tirlite.runtime.bind import Binding
from tirlite.runtime.load import CType, Library, scalar_type
from tirlite.runtime.signature import Signature
from tirlite.show import shown

if TYPE_CHECKING:
    from tirlite.diag import Message
    from tirlite.runtime.quick import QuickCall
    from tirlite.runtime.shape_plans import ShapePlans
    from tirlite.runtime.workspace import Workspaces


class Executable:
    """One function in native code, linked into this process. May be run by several threads at a time."""

    def __init__(
        self,
        func: PrimFunc,
        signature: Signature,
        lowered: Lowered,
        code: ObjectCode,
        plans: ShapePlans | None = None,
    ) -> None:
        """`func` is what was compiled, `signature` that of its callers, who know nothing of `plans`."""
        self._func = func
        self._plans = plans
        self._signature = signature
        self._lowered = lowered
        symbols = [symbol for symbol in (lowered.name, lowered.size_name) if symbol]
        addresses = lowered.addresses
        if lowered.needs_pool:
            from tirlite.codegen import FORK_JOIN
            from tirlite.runtime.pool import pool_address

            addresses = (*addresses, (FORK_JOIN, pool_address()))
        self._library = Library(code.data, symbols, lowered.externs, addresses)
        self._workspaces = _workspaces() if not lowered.workspace.is_empty else None
        # What the size function was last asked and what it said: most calls ask again.
        self._last_size: tuple[list[int | float] | None, int] = (None, 0)
        scalars = [scalar_type(scalar.var.dtype) for scalar in signature.scalars]
        dims: list[CType] = [ctypes.c_int64] * len(signature.dims)
        params: list[CType] = [
            ctypes.c_void_p if isinstance(param, Buffer) else scalar_type(param.dtype) for param in func.params
        ]
        has_plan = shape_plan(func) is not None
        self._plan_at = len(func.params) - 1 if has_plan else -1
        has_workspace = not lowered.workspace.is_empty
        self._kernel = self._library.function(lowered.name, [*params, *dims, *[ctypes.c_void_p] * has_workspace])
        plan: list[CType] = [ctypes.c_void_p] * has_plan
        numbers = [*scalars, *plan, *dims]
        self._size = self._library.function(lowered.size_name, numbers) if lowered.size_name else None

    @property
    def plans_kept(self) -> tuple[int, int]:
        """How many calls found a plan for their shape, and how many had to make one."""
        return (0, 0) if self._plans is None else self._plans.kept

    @property
    def quick(self) -> QuickCall | None:
        """What calls the kernel on plain arrays that fit, in a hundredth of the time; None where it needs more."""
        if not self._lowered.workspace.is_empty or self._size is not None or self._plan_at >= 0:
            return None
        from tirlite.runtime.quick import quick_call

        return quick_call(self._signature, self._library.address(self._lowered.name))

    def run(self, binding: Binding) -> None:
        """Raises the error of an assert that does not hold, and CallValueError where the temporaries have no room."""
        operands = binding.operands
        # Named, so that it outlives the call.
        planned = self._plans.of(binding) if self._plans is not None else None
        if planned is not None:
            operands = [*operands[: self._plan_at], planned.address, *operands[self._plan_at :]]
        if self._lowered.workspace.is_empty:
            fault = self._kernel(*operands)
        else:
            fault = self._run_with_workspace(binding, operands)
        if fault:
            raise self.message(fault).error()

    def message(self, fault: int) -> Message:
        """What a fault of this number, which the kernel has returned, is about."""
        if fault > 0:
            return self._lowered.faults[fault - 1]
        from tirlite.runtime.fault_record import told_by

        return told_by(-fault, self._lowered.told)

    def _run_with_workspace(self, binding: Binding, operands: list[int | float]) -> int:
        assert self._workspaces is not None
        size = self._workspace_bytes(binding, operands)
        alignment = self._lowered.alignment
        try:
            block = self._workspaces.take(size + alignment)
        except MemoryError:
            self._refuse_workspace(binding, size)
        try:
            return self._kernel(*operands, block.aligned(alignment))
        finally:
            self._workspaces.give(block)

    def _workspace_bytes(self, binding: Binding, operands: list[int | float]) -> int:
        if self._size is None:
            return self._lowered.workspace.bytes
        scalars = [operands[scalar.position] for scalar in self._signature.scalars]
        plan = [operands[self._plan_at]] if self._plan_at >= 0 else []
        numbers = [*scalars, *plan, *binding.dims]
        known, size = self._last_size
        if numbers == known:
            return size
        size = self._size(*numbers)
        if size < 0:
            self._refuse_size(binding, self._lowered.workspace.refused(size))
        # A plan out of the hands of the caller may be another one at the same address; 0.0 is equal to -0.0.
        has_zero = any(number == 0 and isinstance(number, float) for number in numbers)
        if (not plan or self._plans is not None) and not has_zero:
            self._last_size = (numbers, size)
        return size

    def _refuse_workspace(self, binding: Binding, size: int) -> NoReturn:
        """Names the largest of what is to lie there."""
        from tirlite.runtime.messages import NoWorkspace

        values = self._numbers(binding)
        stored = [
            each for stmt in statements_of(self._func.body, Allocate) for each in _sharers(self._func, stmt.buffer)
        ]
        largest = max(stored, key=lambda each: _bytes(each, values))
        body = self._func.body
        spans = {stmt.buffer: stmt.span for stmt in statements(body) if isinstance(stmt, Allocate | View)}
        raise NoWorkspace(
            self._signature.name, size, largest.name, _bytes(largest, values), span=spans[largest]
        ).error()

    def _numbers(self, binding: Binding) -> dict[Var, int]:
        """The integers that are known on entry, and what arithmetic makes of them."""
        values = dict(zip(self._signature.dims, binding.dims, strict=True))
        for scalar in self._signature.scalars:
            if scalar.var.dtype.is_integer:
                values[scalar.var] = int(binding.operands[scalar.position])
        return known_values(self._func, values)

    def _refuse_size(self, binding: Binding, buffer: Buffer) -> NoReturn:
        """Computes again, in integers that do not wrap, what the size function found impossible."""
        from tirlite.runtime.messages import NegativeTemporary, WorkspaceTooLarge

        signature = self._signature
        values = self._numbers(binding)
        sizes = ", ".join(f"{var.name} = {shown(value)}" for var, value in values.items())
        extents = _extents(buffer, values)
        if min(extents, default=0) < 0:
            raise NegativeTemporary(signature.name, buffer.name, min(extents), sizes).error()
        size = str(buffer.dtype.bytes * prod(extents)) if len(extents) == len(buffer.shape) else "too many"
        largest = max(_sharers(self._func, buffer), key=lambda each: _bytes(each, values))
        raise WorkspaceTooLarge(signature.name, size, largest.name, sizes).error()


def _extents(buffer: Buffer, values: Mapping[Var, int]) -> list[int]:
    """Those that arithmetic alone tells."""
    return [value_of(extent, values) for extent in buffer.shape if is_known(extent, values)]


def _bytes(buffer: Buffer, values: Mapping[Var, int]) -> int:
    return buffer.dtype.bytes * prod(_extents(buffer, values))


def _sharers(func: PrimFunc, storage: Buffer) -> list[Buffer]:
    """The buffers that lie in one, which is itself among them unless it was made for them alone."""
    views = [view.buffer for view in statements_of(func.body, View) if view.source is storage and view.fresh]
    touched = any(isinstance(node, Load | Store) and node.buffer is storage for node in walk(func.body))
    return [storage, *views] if touched or not views else views


def _workspaces() -> Workspaces:
    from tirlite.runtime.workspace import process_workspaces  # most small kernels need none

    return process_workspaces()
