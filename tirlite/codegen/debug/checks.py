"""Something that must hold in, the branch to a fault that tells why it does not out."""

from __future__ import annotations

from collections.abc import Callable

from tirlite.codegen.debug.marks import Mark, first_read
from tirlite.codegen.debug.reports import AxisReport, IndexReport, PoisonReport, TrapReport
from tirlite.codegen.debug.shadows import Shadows
from tirlite.codegen.faults import KernelFunction, any_of, as_bits
from tirlite.codegen.memory import Place
from tirlite.codegen.told import Told
from tirlite.codegen.values import FALSE, Value, constant, zero
from tirlite.diag import Span
from tirlite.ir import Binary
from tirlite.ir.traps import QUOTIENTS, SHIFTS


class Checks:
    """Writes checks to `out`. Their faults are told at `span`."""

    def __init__(self, out: KernelFunction, shadows: Shadows, span: Span | None) -> None:
        self.out = out
        self.shadows = shadows
        self.span = span

    def stop_if(self, wrong: Value, told: Told, values: Callable[[], list[Value]]) -> None:
        """Stops where `wrong` holds; `values` writes what it takes to tell, which runs only then."""
        out = self.out
        failed, passed = out.label("failed"), out.label("passed")
        out.branch_if(wrong, failed, passed)
        out.start(failed)
        out.tell(told, values())
        out.start(passed)

    def good(self, mark: Mark | None, use: str) -> None:
        """Stops where a value has poison that it must not have."""
        if mark is None:
            return
        out = self.out
        failed, passed = out.label("poisoned"), out.label("good")
        out.branch_if(out.any_lane(mark.flag), failed, passed)
        out.start(failed)
        buffer, indices = first_read(out, mark.origin)
        out.tell(PoisonReport(self.span, use, self.shadows.buffers, len(indices)), [buffer, *indices])
        out.start(passed)

    def inside(self, place: Place, indices: list[Value], given: list[Value]) -> None:
        """Stops where an index of an access is outside of its axis. `indices` are `given` as i64."""
        if not indices:
            return
        out, extents = self.out, place.extents
        flags = [self._outside(index, extent) for index, extent in zip(indices, extents, strict=True)]

        def values() -> list[Value]:
            lanes = [self._lane(value, flag) for value, flag in zip(given, flags, strict=True)]
            return [each for pair in zip(lanes, extents, strict=True) for each in pair]

        wrong = any_of(out, [out.any_lane(flag) for flag in flags])
        self.stop_if(wrong, IndexReport(self.span, place.buffer.name, tuple(each.dtype for each in given)), values)

    def axis_inside(self, place: Place, axis: int, index: Value, given: Value) -> None:
        """The same of one axis alone."""
        flag = self._outside(index, place.extents[axis])
        report = AxisReport(self.span, place.buffer.name, (given.dtype,), axis)
        self.stop_if(self.out.any_lane(flag), report, lambda: [self._lane(given, flag), place.extents[axis]])

    def _outside(self, index: Value, extent: Value) -> Value:
        """Which lanes of an index are outside; a negative one is above all extents, which are not negative."""
        return self.out.compare("icmp uge", index, self.out.splat(extent, index.dtype.lanes))

    def _lane(self, value: Value, flag: Value) -> Value:
        """The first flagged lane of a value, as bits; of a value without lanes, itself."""
        return as_bits(self.out, self.out.first_lane(flag, value) if value.dtype.lanes > 1 else value)

    def trap(self, kind: type[Binary], a: Value, b: Value, mark: Mark | None) -> None:
        """Stops where an integer operation has no value for its operands. What is poisoned has none that is wrong."""
        out, dtype = self.out, a.dtype
        if kind in SHIFTS:
            wrong = out.compare("icmp uge", b, constant(dtype.bits, dtype))
        else:
            wrong = out.compare("icmp eq", b, constant(0, dtype))
        if kind in QUOTIENTS and dtype.is_signed:
            least = out.compare("icmp eq", a, constant(dtype.min, dtype))
            minus_one = out.compare("icmp eq", b, constant(-1, dtype))
            wrong = out.op("or", wrong, out.op("and", least, minus_one))
        if mark is not None:
            none = FALSE if dtype.lanes == 1 else zero(wrong.dtype)
            wrong = out.select(mark.flag, none, wrong)
        report = TrapReport(self.span, kind, dtype)
        self.stop_if(out.any_lane(wrong), report, lambda: [self._lane(each, wrong) for each in (a, b)])
