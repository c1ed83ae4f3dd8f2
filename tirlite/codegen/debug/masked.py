"""Emits accesses of the lanes that are on with checks: of all these lanes first, then one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from tirlite.codegen import memory
from tirlite.codegen.arithmetic.operators import to_index
from tirlite.codegen.debug import shadows
from tirlite.codegen.debug.poison import Checks, Mark, Read, chosen
from tirlite.codegen.debug.shadows import ShadowEnvironment
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import FALSE, Value, undefined, zero
from tirlite.codegen.masked import demand_plain
from tirlite.codegen.memory import Place
from tirlite.ir import Buffer, DType, Expr, Load, Store, bool_
from tirlite.ir.masked import mask_of, unmasked


class Values(Protocol):
    """What writes the expressions of an access, with their checks."""

    out: FunctionText
    environment: ShadowEnvironment
    checks: Checks
    marks: dict[Value, Mark]

    def value(self, expr: Expr) -> Value: ...

    def good(self, expr: Expr, use: str) -> Value: ...

    def marked(self, value: Value, mark: Mark | None) -> Value: ...

    def checked_indices(self, place: Place, exprs: tuple[Expr, ...], given: list[Value]) -> list[Value]: ...


def load(values: Values, expr: Load) -> Value:
    """The elements of the lanes that are on, 0 in the others, with the poison of what was read."""
    access = _Access(values, expr.buffer, expr.indices)
    access.check()
    result, flags = undefined(expr.dtype), zero(bool_.with_lanes(access.lanes))
    for lane in range(access.lanes):
        value, flag = access.loaded(lane, expr.dtype.scalar)
        result = access.out.insert(result, value, lane)
        flags = flags if flag is None else access.out.insert(flags, flag, lane)
    if access.window.shadow is None:
        return result
    buffer = values.checks.shadows.number(expr.buffer)
    return values.marked(result, Mark(flags, Read(flags, buffer, access.first())))


def store(values: Values, stmt: Store) -> None:
    """Stores the lanes that are on, the first one first."""
    access = _Access(values, stmt.buffer, stmt.indices)
    value = values.value(stmt.value)
    access.check()
    mark = chosen(access.out, access.on, values.marks.get(value), None, access.lanes)
    if access.window.shadow is None:
        values.checks.good(mark, f"the value stored into `{stmt.buffer.name}`")
    for lane in range(access.lanes):
        access.stored(lane, value, None if mark is None else mark.flag)


class _Access:
    """An access whose indices and mask are computed."""

    def __init__(self, values: Values, buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        self.values, self.out, self.exprs = values, values.out, indices
        self.place, self.window = values.environment.places[buffer], values.environment.windows[buffer]
        demand_plain(self.place)
        mask = mask_of(indices)
        assert mask is not None
        self.given = [values.value(unmasked(index)) for index in indices]
        self.on = values.good(mask, f"the mask of `{buffer.name}`")
        self.lanes = self.on.dtype.lanes

    @contextmanager
    def where_on(self, lane: int) -> Iterator[str]:
        """What is written inside runs where a lane is on. Gives the block before."""
        out, before = self.out, self.out.block
        on, done = out.label("on"), out.label("off")
        out.branch_if(out.extract(self.on, lane), on, done)
        out.start(on)
        yield before
        out.branch(done)
        out.start(done)

    def check(self) -> None:
        """Stops at the first lane that is on and may not be accessed."""
        for lane in range(self.lanes):
            with self.where_on(lane):
                self.indices(lane)

    def indices(self, lane: int) -> list[Value]:
        """The indices of a lane, checked."""
        *row, last = self.given
        mine, mark = self.out.extract(last, lane), self.values.marks.get(last)
        if mark is not None:
            mine = self.values.marked(mine, Mark(self.out.extract(mark.flag, lane), mark.origin))
        return self.values.checked_indices(self.place, self.exprs, [*row, mine])

    def first(self) -> tuple[Value, ...]:
        """The indices of the first lane that is on, for messages."""
        *row, last = self.given
        return tuple(to_index(self.out, each) for each in (*row, self.out.first_lane(self.on, last)))

    def loaded(self, lane: int, dtype: DType) -> tuple[Value, Value | None]:
        """The element of a lane, 0 where that is off, and whether it is poison if it may be."""
        out, window, flag = self.out, self.window, None
        with self.where_on(lane) as before:
            indices = self.indices(lane)
            offset = memory.offset_in(out, self.place, indices)
            value = memory.load(out, self.place, memory.address(out, self.place, offset), dtype)
            if window.shadow is not None:
                flag = shadows.read(out, window, shadows.element(out, window, offset), dtype)
            inside = out.block
        value = out.phi(dtype, (zero(dtype), before), (value, inside))
        return value, None if flag is None else out.phi(bool_, (FALSE, before), (flag, inside))

    def stored(self, lane: int, value: Value, poisoned: Value | None) -> None:
        out, window = self.out, self.window
        with self.where_on(lane):
            offset = memory.offset_in(out, self.place, self.indices(lane))
            memory.store(out, self.place, memory.address(out, self.place, offset), out.extract(value, lane))
            if window.shadow is not None:
                flag = None if poisoned is None else out.extract(poisoned, lane)
                shadows.write(out, window, shadows.element(out, window, offset), value.dtype.scalar, flag)
