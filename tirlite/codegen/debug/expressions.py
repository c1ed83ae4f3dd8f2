"""Emits expressions, loads and stores with the checks that they need, and the poison mark of each value.

Evaluation follows the interpreter's order, so that the first fault is the same. Adjacent lanes share one check; of a
masked access, all active lanes are checked before any is accessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tirlite.codegen import memory
from tirlite.codegen.arithmetic import binary, to_index
from tirlite.codegen.debug import shadows
from tirlite.codegen.debug.conflicts import Watched
from tirlite.codegen.debug.poison import Checks, Poisoned, Read, chosen, filled, joined, resolved, spread_mark
from tirlite.codegen.debug.shadows import ShadowEnvironment
from tirlite.codegen.expressions import Expressions, Side, are_neighbours
from tirlite.codegen.faults import require_inside
from tirlite.codegen.llvm.values import FALSE, Value, flags_of, integer, undefined, zero
from tirlite.codegen.memory import demand_plain
from tirlite.ir.checked import bare, is_checked, mask_of, unmasked
from tirlite.ir.dtype import DType, bool_, i64
from tirlite.ir.expr import Binary, Buffer, Call, Expr, FloorDiv, FloorMod, Load, TruncDiv, TruncMod, Var
from tirlite.ir.faults import SHIFTS
from tirlite.ir.op import Op
from tirlite.ir.stmt import Store
from tirlite.ir.trampoline import Steps
from tirlite.record import replace


class CheckedAccesses(Expressions):
    """Emits loads and stores with checks. `marks`: the poison of values; a value without an entry has none."""

    environment: ShadowEnvironment

    def __init__(self, checks: Checks, environment: ShadowEnvironment) -> None:
        super().__init__(checks.out, environment)
        self.joins_rows = False  # each axis is checked by itself
        self.checks = checks
        self.marks: dict[Value, Poisoned] = {}
        self.watched: tuple[Watched, ...] = ()  # the enclosing loops whose iterations may conflict

    def demand_good(self, value: Value, use: str) -> None:
        self.checks.good(self.marks.get(value), use)

    def marked(self, value: Value, mark: Poisoned | None) -> Value:
        """The value with a mark: a copy if it has another mark, as the same value may be in use without it."""
        if mark is None or self.marks.get(value) is mark:
            return value
        value = value.of(value.dtype)
        self.marks[value] = mark
        return value

    def load(self, expr: Load) -> Steps[Value]:
        masked = mask_of(expr.indices) is not None
        given = []
        for index in expr.indices:
            inner = unmasked(index) if masked else bare(index)
            given.append(self._leaf(inner) or (yield self.steps(inner)))
        return _Masked(self, expr, given).loaded() if masked else _Access(self, expr, given).loaded()

    def store(self, stmt: Store) -> None:
        """Evaluates the indices and the value, then checks, then stores."""
        masked = mask_of(stmt.indices) is not None
        given = [self.value(unmasked(index) if masked else bare(index)) for index in stmt.indices]
        access = _Masked(self, stmt, given) if masked else _Access(self, stmt, given)
        value = self.value(stmt.value)
        access.store(value, self.marks.get(value))


class _Access:
    """A load or store, with the values of its indices."""

    def __init__(self, values: CheckedAccesses, node: Load | Store, given: list[Value]) -> None:
        self.values, self.out, self.exprs, self.given = values, values.out, node.indices, given
        self.buffer, self.is_write = node.buffer, isinstance(node, Store)
        self.place, self.tracked = values.environment.places[self.buffer], values.environment.tracked[self.buffer]
        self.dtype = node.value.dtype if isinstance(node, Store) else node.dtype
        self.lanes = node.indices[-1].dtype.lanes if node.indices else 1

    def loaded(self) -> Value:
        """The loaded value, marked if it may be poison."""
        indices = self.checked(self.given)
        self.note(indices)
        if self.is_whole:
            first = self._first(indices)
            return self._marked(*self.read(memory.offset_in(self.out, self.place, first), self.dtype), first)
        return self._joined([self.read(offset, self.dtype.scalar) for offset in self._offsets(indices)], indices)

    def store(self, value: Value, mark: Poisoned | None) -> None:
        indices = self.checked(self.given)
        self.note(indices)
        self._demand_good(mark)
        flag = None if mark is None else mark.flag
        if self.is_whole:
            self.write(memory.offset_in(self.out, self.place, self._first(indices)), value, flag)
            return
        for lane, offset in enumerate(self._offsets(indices)):
            self.write_lane(lane, offset, value, flag)

    @property
    def is_whole(self) -> bool:
        """Whether the access is to one element or to adjacent elements."""
        return self.lanes == 1 or are_neighbours(self.place, bare(self.exprs[-1]))

    def note(self, indices: list[Value]) -> None:
        """Stops if another iteration of an enclosing loop accessed the same element, and one of the two writes it."""
        for watched in self.values.watched:
            if self.buffer in watched.shared:
                current = watched.iteration(self.values.environment.variables)
                *row, last = indices or [integer(0)]
                lanes = last.dtype.lanes
                for lane in range(lanes):
                    at = [*row, self.out.extract(last, lane) if lanes > 1 else last] if indices else []
                    watched.note(self.values.checks, self.place, at, current, is_write=self.is_write)

    def _demand_good(self, mark: Poisoned | None) -> None:
        if self.tracked.shadow is None:
            self.values.checks.good(mark, f"the value stored into `{self.buffer.name}`")

    def checked(self, given: list[Value]) -> list[Value]:
        """The indices as i64: stops if one is poison, or if one that is marked for a check is outside of its axis."""
        checked = [axis for axis, expr in enumerate(self.exprs) if is_checked(expr)]
        marks = self.values.marks
        if not any(each in marks for each in given):
            indices = [to_index(self.out, each) for each in given]
            self._inside(checked, indices, given)
            return indices
        indices = []
        for axis, each in enumerate(given):
            self.values.checks.good(marks.get(each), f"index {axis} of `{self.buffer.name}`")
            indices.append(to_index(self.out, each))
            self._inside([axis] if axis in checked else [], indices, given)
        return indices

    def _inside(self, axes: list[int], indices: list[Value], given: list[Value]) -> None:
        if axes:
            checked = {axis: (indices[axis], given[axis]) for axis in axes}
            require_inside(self.out, self.place, checked, self.values.environment.counted())

    def _first(self, indices: list[Value]) -> list[Value]:
        """The indices of the first lane, which messages report."""
        return [*indices[:-1], self.out.extract(indices[-1], 0)] if self.lanes > 1 else indices

    def _offsets(self, indices: list[Value]) -> list[Value]:
        """The element offset of each lane."""
        row = memory.offset_in(self.out, self.place, [*indices[:-1], integer(0)])
        found = [self.out.extract(indices[-1], lane) for lane in range(self.lanes)]
        inner = replace(self.place, strides=self.place.strides[-1:])
        return [self.out.op("add nsw", row, memory.offset_in(self.out, inner, [lane])) for lane in found]

    def read(self, offset: Value, dtype: DType) -> tuple[Value, Value | None]:
        """The value at an offset, and the flags of its poisoned lanes; None if the buffer has no shadow."""
        out, place, environment = self.out, self.place, self.values.environment
        notes = environment.notes if self.is_whole else {}
        value = memory.load(out, place, memory.address(out, place, offset), dtype, notes.get(self.buffer, ""))
        if self.tracked.shadow is None:
            return value, None
        note = environment.shadow_notes.get(self.buffer, "") if self.is_whole else ""
        return value, shadows.read(out, self.tracked, shadows.element(out, self.tracked, offset), dtype, note)

    def write(self, offset: Value, value: Value, flag: Value | None) -> None:
        out, place, environment = self.out, self.place, self.values.environment
        notes = environment.notes if self.is_whole else {}
        memory.store(out, place, memory.address(out, place, offset), value, notes.get(self.buffer, ""))
        if self.tracked.shadow is not None:
            note = environment.shadow_notes.get(self.buffer, "") if self.is_whole else ""
            shadow = shadows.element(out, self.tracked, offset)
            shadows.write(out, self.tracked, shadow, value.dtype, flag, note)

    def write_lane(self, lane: int, offset: Value, value: Value, flag: Value | None) -> None:
        self.write(offset, self.out.extract(value, lane), None if flag is None else self.out.extract(flag, lane))

    def _joined(self, found: list[tuple[Value, Value | None]], indices: list[Value]) -> Value:
        """The vector of the loaded lanes."""
        result, flags = undefined(self.dtype), zero(bool_.with_lanes(self.lanes))
        for lane, (value, flag) in enumerate(found):
            result = self.out.insert(result, value, lane)
            flags = flags if flag is None else self.out.insert(flags, flag, lane)
        return result if self.tracked.shadow is None else self._marked(result, flags, self._first(indices))

    def _marked(self, value: Value, flag: Value | None, first: list[Value]) -> Value:
        if flag is None:
            return value
        number = self.values.checks.shadows.number(self.buffer)
        return self.values.marked(value, Poisoned(flag, Read(flag, number, tuple(first))))


class _Masked(_Access):
    """An access under a mask: lanes that are off load 0 and store nothing."""

    is_whole = False

    def __init__(self, values: CheckedAccesses, node: Load | Store, given: list[Value]) -> None:
        super().__init__(values, node, given)
        demand_plain(self.place)
        mask = mask_of(node.indices)
        assert mask is not None
        self.on = values.good(mask, f"the mask of `{self.buffer.name}`")
        self.lanes = self.on.dtype.lanes

    def loaded(self) -> Value:
        self._check()
        return self._joined([self._lane_loaded(lane) for lane in range(self.lanes)], self.given)

    def _first(self, indices: list[Value]) -> list[Value]:
        *row, last = indices
        return [to_index(self.out, each) for each in (*row, self.out.first_lane(self.on, last))]

    def store(self, value: Value, mark: Poisoned | None) -> None:
        self._check()
        mark = chosen(self.out, self.on, mark, None, self.lanes)
        self._demand_good(mark)
        for lane in range(self.lanes):
            with self._where_on(lane):
                offset = memory.offset_in(self.out, self.place, self._lane_indices(lane))
                self.write_lane(lane, offset, value, None if mark is None else mark.flag)

    @contextmanager
    def _where_on(self, lane: int) -> Iterator[str]:
        """Emits the code inside so that it runs only if the lane is on; yields the block before it."""
        out, before = self.out, self.out.block
        on, done = out.label("on"), out.label("off")
        out.branch_if(out.extract(self.on, lane), on, done)
        out.start(on)
        yield before
        out.branch(done)
        out.start(done)

    def _check(self) -> None:
        """Stops at the first active lane that may not be accessed."""
        for lane in range(self.lanes):
            with self._where_on(lane):
                self.note(self._lane_indices(lane))

    def _lane_indices(self, lane: int) -> list[Value]:
        """The checked indices of a lane."""
        *row, last = self.given
        mine, mark = self.out.extract(last, lane), self.values.marks.get(last)
        if mark is not None:
            mine = self.values.marked(mine, Poisoned(self.out.extract(mark.flag, lane), mark.origin))
        return self.checked([*row, mine])

    def _lane_loaded(self, lane: int) -> tuple[Value, Value | None]:
        """The element of a lane, 0 if it is off, and its poison flag if it may have one."""
        out, dtype = self.out, self.dtype.scalar
        with self._where_on(lane) as before:
            value, flag = self.read(memory.offset_in(out, self.place, self._lane_indices(lane)), dtype)
            inside = out.block
        value = out.phi(dtype, (zero(dtype), before), (value, inside))
        return value, None if flag is None else out.phi(bool_, (FALSE, before), (flag, inside))


_TRAPPING = (*SHIFTS, FloorDiv, FloorMod, TruncDiv, TruncMod)


class CheckedExpressions(CheckedAccesses):
    """Emits expressions with checks."""

    def computed(self, value: Value, *operands: Value) -> Value:
        mark = joined(self.out, *map(self.marks.get, operands))
        return self.marked(value, spread_mark(self.out, mark, value.dtype.lanes))

    def bind(self, var: Var, value: Value) -> None:
        """Binds a variable; settles its mark, so that it can be used as long as the value itself."""
        super().bind(var, self.marked(value, self.fact_of(value)))

    def exposed(self, buffer: Buffer) -> None:
        """Marks all bytes of the buffer as written: unknown code may write them from here on."""
        tracked = self.environment.tracked[buffer]
        if tracked.shadow is not None:
            shadows.fill(self.out, tracked.shadow.pointer, tracked.bytes, tracked.owner)

    def _may_be_speculated(self, expr: Expr) -> bool:
        return False

    def binary(self, expr: Binary) -> Steps[Value]:
        may_trap = isinstance(expr, _TRAPPING) and expr.dtype.is_integer
        return self._trapping(expr) if may_trap else super().binary(expr)

    def _trapping(self, expr: Binary) -> Steps[Value]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        mark = joined(self.out, self.marks.get(a), self.marks.get(b))
        if not _is_tame(expr, b):
            if mark is not None:  # LLVM may take another value for unwritten memory at each use
                a, b = self.out.unary("freeze", a), self.out.unary("freeze", b)
            self.checks.trap(type(expr), a, b, mark)
        return self.marked(binary(self.out, type(expr), a, b), mark)

    def fact_of(self, value: Value) -> Poisoned | None:
        mark = self.marks.get(value)
        return None if mark is None else resolved(self.out, mark)

    def merged(self, dtype: DType, *sides: Side) -> Value:
        out = self.out
        value = super().merged(dtype, *sides)
        marks = [side.fact for side in sides if isinstance(side.fact, Poisoned)]
        rank = max((len(mark.origin.indices) for mark in marks if isinstance(mark.origin, Read)), default=None)
        if rank is None:
            return value
        flags, numbers, kind = [], [], flags_of(dtype)
        for side in sides:
            if isinstance(side.fact, Poisoned):
                assert isinstance(side.fact.origin, Read)
                flags.append((side.fact.flag, side.block))
                numbers.append((filled(side.fact.origin, rank), side.block))
            else:
                flags.append((FALSE if dtype.lanes == 1 else zero(kind), side.block))
                numbers.append(([integer(0)] * (1 + rank), side.block))
        flag = out.phi(kind, *flags)
        found = [out.phi(i64, *((each[k], label) for each, label in numbers)) for k in range(1 + rank)]
        self.marks[value] = Poisoned(flag, Read(flag, found[0], tuple(found[1:])))
        return value

    def picked(self, condition: Value, yes: Value, no: Value) -> Value:
        lanes = yes.dtype.lanes
        by = spread_mark(self.out, self.marks.get(condition), lanes)
        sides = chosen(self.out, condition, self.marks.get(yes), self.marks.get(no), lanes)
        return self.marked(super().picked(condition, yes, no), joined(self.out, by, sides))

    def any_lane(self, expr: Call) -> Steps[Value]:
        flags = self._leaf(expr.args[0]) or (yield self.steps(expr.args[0]))
        mark = self.marks.get(flags)
        value = self.out.any_lane(flags)
        return self.marked(value, None if mark is None else Poisoned(self.out.any_lane(mark.flag), mark.origin))

    def interleave(self, expr: Call) -> Steps[Value]:
        out, is_high = self.out, expr.op is Op.INTERLEAVE_HIGH
        a = self._leaf(expr.args[0]) or (yield self.steps(expr.args[0]))
        b = self._leaf(expr.args[1]) or (yield self.steps(expr.args[1]))
        value, mark = out.interleaved(a, b, is_high=is_high), joined(out, self.marks.get(a), self.marks.get(b))
        if mark is None:
            return value
        none = zero(flags_of(a.dtype))
        flags = [none if each is None else each.flag for each in (self.marks.get(a), self.marks.get(b))]
        return self.marked(value, resolved(out, Poisoned(out.interleaved(*flags, is_high=is_high), mark.origin)))

    def dot(self, expr: Call) -> Steps[Value]:
        from tirlite.codegen.arithmetic.dots import any_of_group, dot

        out, lanes, marks = self.out, expr.dtype.lanes, list[Poisoned]()
        operands, group = list[Value](), expr.args[2].dtype.lanes // expr.dtype.lanes
        for arg in expr.args:
            value = self._leaf(arg) or (yield self.steps(arg))
            if (mark := self.marks.get(value)) is not None:
                flag = any_of_group(out, mark.flag, lanes, group if operands else 1)
                marks.append(Poisoned(flag, resolved(out, mark).origin))
            operands.append(value)
        return self.marked(dot(out, *operands), joined(out, *marks))


def _is_tame(expr: Binary, b: Value) -> bool:
    """Whether the second operand is a constant for which the operation cannot fail."""
    if b.number is None:
        return False
    return 0 <= b.number < expr.dtype.bits if isinstance(expr, SHIFTS) else b.number not in (0, -1)
