"""What a running kernel can do wrong: one message a fault, with the values that show it, however the kernel is run.

The interpreter raises them all. Compiled code raises those that it checks for.
"""

from __future__ import annotations

from tirlite.diag import CallValueError, KernelAssertionError, KernelIndexError, KernelRunError, Message


class AssertFailed(Message):
    """The condition of an Assert did not hold."""

    code = "assert-failed"
    raises = KernelAssertionError
    title = "assertion failed: {message}"
    label = "does not hold"

    message: str


class IndexOutOfBounds(Message):
    """An index lies outside of its axis."""

    code = "index-out-of-bounds"
    raises = KernelIndexError
    title = "index {index} is out of bounds for axis {axis} of `{buffer}` with extent {extent}"
    label = "out of bounds here"
    help = "an index of this axis is at least 0 and less than {extent}"

    buffer: str
    axis: int
    index: int
    extent: int


class ViewOutOfBounds(Message):
    """A view does not lie in its source. All figures are bytes."""

    code = "view-out-of-bounds"
    raises = KernelIndexError
    title = "`{buffer}` takes bytes {first} to {last} of `{source}`, which has {available}"
    label = "reaches beyond its source"
    help = "a view must lie within the bytes of its source"

    buffer: str
    source: str
    first: int
    last: int
    available: int


class NegativeExtent(Message):
    """A buffer was declared with an extent below zero."""

    code = "extent-below-zero"
    raises = KernelRunError
    title = "axis {axis} of `{buffer}` has the negative extent {extent}"
    label = "declared here"
    help = "guard the code that needs `{buffer}` by an `if`, or make the extent at least 0 with `max`"

    buffer: str
    axis: int
    extent: int


class OutOfMemory(Message):
    """There is no memory for an allocation."""

    code = "out-of-memory"
    raises = KernelRunError
    title = "no memory for the {size} bytes of `{buffer}`"
    label = "allocated here"

    buffer: str
    size: int


class UninitialisedRead(Message):
    """Something visible depends on memory that was never written."""

    code = "uninitialised-read"
    raises = KernelRunError
    title = "{use} depends on `{element}`, which was never written"
    label = "used here"
    help = "write each element of `{buffer}` before it is read: fresh memory has no value"

    use: str
    buffer: str
    element: str


class DivisionByZero(Message):
    """The divisor of an integer division or remainder was zero."""

    code = "division-by-zero"
    raises = KernelRunError
    title = "{dividend} {operator} 0"
    label = "divides by zero"

    dividend: int
    operator: str


class DivisionOverflow(Message):
    """The quotient of an integer division does not fit into its type."""

    code = "division-overflow"
    raises = KernelRunError
    title = "{dividend} {operator} -1 does not fit into {dtype}"
    label = "overflows"

    dividend: int
    operator: str
    dtype: str


class ShiftOutOfRange(Message):
    """A shift by less than zero bits, or by all bits of the type or more."""

    code = "shift-out-of-range"
    raises = KernelRunError
    title = "shift of {dtype} by {count} bits"
    label = "shifts too far"
    help = "a shift count of {dtype} is at least 0 and less than {bits}"

    dtype: str
    count: int
    bits: int


class OverlappingArguments(Message):
    """Two arrays share bytes, and the kernel writes at least one of them."""

    code = "overlapping-arguments"
    raises = CallValueError
    title = "`{written}`, which the kernel writes, overlaps `{other}`"
    label = "called with overlapping arrays"
    help = "pass a copy of one of them"

    written: str
    other: str
