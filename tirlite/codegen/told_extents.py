"""The extents that a buffer on the heap cannot have in, the message that tells them out."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.codegen.told import Number
from tirlite.diag import KernelRunError, Message, Span
from tirlite.ir import Buffer, DType, i64
from tirlite.record import record


class ExtentOutOfRange(Message):
    """A buffer whose size is known only inside of the kernel has an impossible one.

    Example: `t = tl.alloc(tl.f32[count - 10])` in a loop that changes `count`, which falls below 10.
    Fix: Keep the extent at 0 or above with `max`, or put the code that needs the buffer under an `if`.
    """

    code = "extent-out-of-range"
    raises = KernelRunError
    title = "`{buffer}` has {found}"
    label = "allocated here"

    buffer: str
    found: str = "a negative extent, or more than 2**62 bytes"


@record
class ExtentsTold:
    """A buffer of an impossible size; its values are whether an extent wrapped around, and the extents."""

    buffer: Buffer
    span: Span | None

    @property
    def types(self) -> tuple[DType, ...]:
        return (i64,) * (1 + len(self.buffer.shape))

    def message(self, values: Sequence[Number]) -> Message:
        wrapped, *extents = values
        axis = next((axis for axis, extent in enumerate(extents) if extent < 0), None)
        if wrapped:
            found = "an extent that does not fit into 64 bits"
        elif axis is not None:
            found = f"the negative extent {extents[axis]}" + (f" along axis {axis}" if len(extents) > 1 else "")
        else:
            found = f"the shape [{', '.join(map(str, extents))}], which is more than 2**62 bytes"
        return ExtentOutOfRange(self.buffer.name, found, span=self.span)

    def bare(self) -> Message:
        return ExtentOutOfRange(self.buffer.name, span=self.span)
