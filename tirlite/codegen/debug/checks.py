"""Something that must hold in, the branch to a fault that tells why it does not out."""

from __future__ import annotations

from collections.abc import Callable

from tirlite.codegen.debug.marks import Flag, Mark, any_lane, first_read
from tirlite.codegen.debug.reports import AxisReport, IndexReport, PoisonReport, TrapReport
from tirlite.codegen.debug.shadows import Window
from tirlite.codegen.faults import Faults, any_of, as_bits
from tirlite.codegen.text import FunctionText
from tirlite.codegen.told import Told
from tirlite.codegen.types import constant, register_type
from tirlite.diag import Span
from tirlite.ir import Binary, Buffer, DType, bool_, i64
from tirlite.ir.traps import QUOTIENTS, SHIFTS


class Checks:
    """Writes checks to `out`. Their faults are told at `span`."""

    def __init__(self, out: FunctionText, faults: Faults, span: Span | None) -> None:
        self.out = out
        self.faults = faults
        self.span = span
        self.buffers: list[Buffer] = []  # that poison may come from; their numbers are the places here
        self._numbers: dict[Buffer, int] = {}

    def follow(self, kernel: Checks, faults: Faults) -> None:
        """Makes these the checks of a function that `kernel` calls."""
        self.faults, self.buffers, self._numbers = faults, kernel.buffers, kernel._numbers

    def number(self, buffer: Buffer) -> str:
        if buffer not in self._numbers:
            self._numbers[buffer] = len(self.buffers)
            self.buffers.append(buffer)
        return str(self._numbers[buffer])

    def stop_if(self, wrong: str, told: Told, values: Callable[[], list[str]]) -> None:
        """Stops where `wrong` holds; `values` writes what it takes to tell, which runs only then."""
        out = self.out
        failed, passed = out.label("failed"), out.label("passed")
        out.branch_if(wrong, failed, passed)
        out.start(failed)
        self.faults.tell(told, values())
        out.start(passed)

    def good(self, mark: Mark | None, use: str) -> None:
        """Stops where a value has poison that it must not have."""
        if mark is None:
            return
        out = self.out
        failed, passed = out.label("poisoned"), out.label("good")
        out.branch_if(any_lane(out, mark.flag), failed, passed)
        out.start(failed)
        buffer, indices = first_read(out, mark.origin)
        self.faults.tell(PoisonReport(self.span, use, self.buffers, len(indices)), [buffer, *indices])
        out.start(passed)

    def inside(self, buffer: Buffer, window: Window, indices: list[str], types: list[DType], given: list[str]) -> None:
        """Stops where an index of an access is outside of its axis. `indices` are `given` as i64."""
        if not indices:
            return
        out = self.out
        flags = [self._outside(i, t, extent) for i, t, extent in zip(indices, types, window.extents, strict=True)]

        def values() -> list[str]:
            lanes = [self._lane(v, t, f) for v, t, f in zip(given, types, flags, strict=True)]
            return [each for pair in zip(lanes, window.extents, strict=True) for each in pair]

        wrong = any_of(out, [any_lane(out, Flag(flag, dtype.lanes)) for flag, dtype in zip(flags, types, strict=True)])
        self.stop_if(wrong, IndexReport(self.span, buffer.name, tuple(types)), values)

    def axis_inside(self, buffer: Buffer, axis: int, extent: str, index: str, dtype: DType, given: str) -> None:
        """The same of one axis alone."""
        flag = self._outside(index, dtype, extent)
        report = AxisReport(self.span, buffer.name, (dtype,), axis)
        self.stop_if(
            any_lane(self.out, Flag(flag, dtype.lanes)), report, lambda: [self._lane(given, dtype, flag), extent]
        )

    def _outside(self, index: str, dtype: DType, extent: str) -> str:
        """Which lanes of an index are outside; a negative one is above all extents, which are not negative."""
        wide = i64.with_lanes(dtype.lanes)
        return self.out.value(f"icmp uge {register_type(wide)} {index}, {splat(self.out, extent, wide)}")

    def _lane(self, value: str, dtype: DType, flag: str) -> str:
        """The first flagged lane of a value, as bits; of a value without lanes, itself."""
        out = self.out
        if dtype.lanes > 1:
            bits = out.value(f"bitcast <{dtype.lanes} x i1> {flag} to i{dtype.lanes}")
            first = out.call(f"i{dtype.lanes}", f"llvm.cttz.i{dtype.lanes}", f"i{dtype.lanes} {bits}", "i1 false")
            # Where none is flagged, the first one will do.
            lane = out.value(f"urem i{dtype.lanes} {first}, {dtype.lanes}")
            value = out.value(f"extractelement {register_type(dtype)} {value}, i{dtype.lanes} {lane}")
        return as_bits(out, value, dtype.scalar)

    def trap(self, kind: type[Binary], dtype: DType, a: str, b: str, mark: Mark | None) -> None:
        """Stops where an integer operation has no value for its operands. What is poisoned has none that is wrong."""
        out, name, flags = self.out, register_type(dtype), register_type(bool_.with_lanes(dtype.lanes))
        if kind in SHIFTS:
            wrong = out.value(f"icmp uge {name} {b}, {constant(dtype.bits, dtype)}")
        else:
            wrong = out.value(f"icmp eq {name} {b}, {constant(0, dtype)}")
        if kind in QUOTIENTS and dtype.is_signed:
            least = out.value(f"icmp eq {name} {a}, {constant(dtype.min, dtype)}")
            minus_one = out.value(f"icmp eq {name} {b}, {constant(-1, dtype)}")
            wrong = out.value(f"or {flags} {wrong}, {out.value(f'and {flags} {least}, {minus_one}')}")
        if mark is not None:
            none = "false" if dtype.lanes == 1 else "zeroinitializer"
            wrong = out.value(f"select {flags} {mark.flag.operand}, {flags} {none}, {flags} {wrong}")
        report = TrapReport(self.span, kind, dtype)
        values = (a, b)
        self.stop_if(
            any_lane(out, Flag(wrong, dtype.lanes)), report, lambda: [self._lane(each, dtype, wrong) for each in values]
        )


def splat(out: FunctionText, value: str, dtype: DType) -> str:
    """A scalar in every lane of a type."""
    if dtype.lanes == 1:
        return value
    kind, scalar = register_type(dtype), register_type(dtype.scalar)
    if not value.startswith("%"):
        return f"splat ({scalar} {value})"
    first = out.value(f"insertelement {kind} poison, {scalar} {value}, i64 0")
    return out.value(f"shufflevector {kind} {first}, {kind} poison, <{dtype.lanes} x i32> zeroinitializer")
