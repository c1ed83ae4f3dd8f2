"""Faults of running kernels: one message per fault, the same for interpreted and compiled kernels.

The interpreter raises all of them, compiled code those that it checks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, TypeAlias

from tirlite.diag import (
    CallValueError,
    KernelAssertionError,
    KernelIndexError,
    KernelRunError,
    Message,
    Span,
    TirliteError,
)
from tirlite.ir.dtype import DType
from tirlite.ir.expr import Binary, Buffer, FloorDiv, FloorMod, ShiftLeft, ShiftRight, TruncDiv, TruncMod


class AssertFailed(Message):
    """The condition of an Assert did not hold.

    Example: `assert n % 8 == 0, "n must be a multiple of 8"` at a call with 7 rows.
    Fix: Call the kernel with what its assert asks for, or correct the assert.
    """

    raises = KernelAssertionError
    title = "assertion failed: {message}{values}"
    label = "does not hold"

    message: str
    values: str = ""


class IndexOutOfBounds(Message):
    """An index lies outside of its axis.

    Example: `x[i + 1]` in `for i in range(n):`, where `x` has `n` elements.
    Fix: Shorten the loop, or bound the index: `x[min(i + 1, n - 1)]`.
    """

    raises = KernelIndexError
    title = "index {index} is out of bounds for axis {axis} of `{buffer}` with extent {extent}{at}"
    label = "out of bounds here"
    help = "an index of this axis is at least 0 and less than {extent}"

    buffer: str
    axis: int
    index: int
    extent: int
    at: str = ""


class ViewOutOfBounds(Message):
    """A view does not lie in its source. All figures are bytes.

    Example: `tl.view(x, tl.f32[n], byte_offset=8)`, where `x` has `n` elements of 4 bytes.
    Fix: Take a smaller shape or offset: the bytes of a view lie within its source.
    """

    raises = KernelIndexError
    title = "`{buffer}` takes bytes {first} to {last} of `{source}`, which has {available}{at}"
    label = "reaches beyond its source"
    help = "a view must lie within the bytes of its source"

    buffer: str
    source: str
    first: int
    last: int
    available: int
    at: str = ""


class NegativeExtent(Message):
    """A buffer was declared with an extent below zero.

    Example: `t = tl.alloc(tl.f32[n - 10])` at a call with 3 rows.
    Fix: Put the code under an `if`, or write `max(n - 10, 0)`.
    """

    code = "extent-below-zero"
    raises = KernelRunError
    title = "axis {axis} of `{buffer}` has the negative extent {extent}"
    label = "declared here"
    help = "guard the code that needs `{buffer}` by an `if`, or make the extent at least 0 with `max`"

    buffer: str
    axis: int
    extent: int


class OutOfMemory(Message):
    """There is no memory for an allocation.

    Example: `t = tl.alloc(tl.f64[n, n])` at a call with a million rows.
    Fix: Call with less, or process the data in pieces.
    """

    raises = KernelRunError
    title = "no memory for the {size} bytes of `{buffer}`"
    label = "allocated here"


class UninitialisedRead(Message):
    """Something visible depends on memory that was never written.

    Example: `t = tl.alloc(tl.f32[n])`, and then `y[i] = t[i]` with no store to `t` before.
    Fix: Write each element before it is read.
    """

    raises = KernelRunError
    title = "{use} depends on `{element}`, which was never written"
    label = "used here"
    help = "write each element of `{buffer}` before it is read: fresh memory has no value{barrier}"


def never_written(use: str, buffer: Buffer, index: Iterable[int], span: Span | None) -> UninitialisedRead:
    """The message for a use of a value read at `index` of a buffer."""
    element = f"{buffer.name}[{', '.join(map(str, index)) or '()'}]"
    is_shared = buffer.scope.partition(".")[0] == "shared"
    barrier = '; what another thread writes is there behind a `tl.barrier("shared")`' if is_shared else ""
    return UninitialisedRead(use, element, buffer.name, barrier, span=span)


class DivisionByZero(Message):
    """The divisor of an integer division or remainder was zero.

    Example: `i // k`, where `k` is 0.
    Fix: Guard the division by an `if`, or make sure of the divisor with an assert.
    """

    raises = KernelRunError
    title = "{dividend} {operator} 0"
    label = "divides by zero"


class DivisionOverflow(Message):
    """The quotient of an integer division does not fit into its type.

    Example: `a // b` of i32, where `a` is -2147483648 and `b` is -1.
    Fix: Compute in a wider type: `tl.i64(a) // tl.i64(b)`.
    """

    raises = KernelRunError
    title = "{dividend} {operator} -1 does not fit into {dtype}"
    label = "overflows"


class ShiftOutOfRange(Message):
    """A shift by less than zero bits, or by all bits of the type or more.

    Example: `a << 32` of i32.
    Fix: Keep the count below the number of bits, or cast to a wider type first.
    """

    raises = KernelRunError
    title = "shift of {dtype} by {count} bits"
    label = "shifts too far"
    help = "a shift count of {dtype} is at least 0 and less than {bits}"


class IterationConflict(Message):
    """Two iterations of a parallel or vectorized loop touched one element, and one of them wrote it.

    Example: `y[index[i]] += x[i]` in `for i in tl.parallel(n):`, where two elements of `index` are equal.
    """

    raises: ClassVar[type[TirliteError]] = KernelRunError
    title = "`{element}` is {use} by iteration {loop} = {first} and {other_use} by {loop} = {second}, in any order"
    label = "{use} here by one iteration"
    related_label = "{other_use} here by another one"
    help = (
        "declare by `tl.reduce` that iterations combine values, give each iteration elements of its own, "
        "or make the loop serial with `range`"
    )

    element: str
    loop: str
    use: str
    first: int
    other_use: str
    second: int


class OverlappingArguments(Message):
    """Two arrays share bytes, and the kernel writes at least one of them.

    Example: `smooth(x, x)`, where the kernel writes its second parameter.
    """

    raises = CallValueError
    title = "`{written}`, which the kernel writes, overlaps `{other}`"
    label = "called with overlapping arrays"
    help = "pass a copy of one of them"


class CallExtent(Message):
    """A kernel is called by another one with an array whose shape it does not take.

    Example: `tl.call(add, x, y, z)`, where `add` takes three arrays of one length, at a call with 4, 5 and 4 elements.
    Fix: Call the outer kernel with shapes that fit, or give the inner one a temporary of the right shape.
    """

    raises = KernelRunError
    title = "{problem}"
    label = "called here"


Trap: TypeAlias = Callable[[int, int, Span | None], Message | None]

SHIFTS = (ShiftLeft, ShiftRight)
QUOTIENTS = (FloorDiv, TruncDiv)
_SPELLING = {FloorDiv: "//", FloorMod: "%", TruncDiv: "truncdiv", TruncMod: "truncmod"}


def trap_of(kind: type[Binary], dtype: DType) -> Trap | None:
    """A function that returns the fault of an operation on two integer lanes, or None; None if it never has one."""
    if not dtype.is_integer:
        return None
    if kind in SHIFTS:
        return lambda _, count, span: (
            None if 0 <= count < dtype.bits else ShiftOutOfRange(dtype.scalar.name, count, dtype.bits, span=span)
        )
    if kind not in _SPELLING:
        return None
    operator, divides = _SPELLING[kind], kind in QUOTIENTS

    def division(a: int, b: int, span: Span | None) -> Message | None:
        if b == 0:
            return DivisionByZero(a, operator, span=span)
        if divides and b == -1 and a == dtype.min:
            return DivisionOverflow(a, operator, dtype.scalar.name, span=span)
        return None

    return division
