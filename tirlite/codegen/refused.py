"""IR that codegen cannot compile: an exception inside this package, a message with a span outside of it."""

from __future__ import annotations

from tirlite.diag import InternalError, Message


class Refused(Exception):
    """Codegen cannot compile `what`; `instead` says what to write. The code that catches it knows the span."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(what, instead)
        self.what = what
        self.instead = instead


class NotCompiled(Message):
    """A part of valid IR cannot be compiled to native code.

    Example: A kernel that calls `tl.access_ptr`, which has a meaning for devices only.
    Fix: Write what the help line says instead; the reference interpreter, `kernel.interpret(...)`, may run it as it is.
    """

    title = "{what} cannot be compiled"
    label = "used here"
    help = "{instead}"


class BufferTooLarge(Message):
    """A buffer of constant size is larger than any memory.

    Example: `t = tl.alloc(tl.f64[1 << 62])`.
    Fix: Correct the shape: sizes are counted in bytes, and the most is 2**62.
    """

    title = "`{buffer}` takes {size} bytes; the most is 2**62"
    label = "allocated here"


class BadModule(Message):
    """The code that was made for LLVM is not well formed.

    Example: None is known: this is a fault of tirlite.
    Fix: Report it, with the function as it prints. `schedule=None`, or the reference interpreter, may run it meanwhile.
    """

    raises = InternalError
    title = "LLVM refuses the code that was made for it: {reason}"
    help = "this is a fault of tirlite; please report it with the function, `print(kernel.ir)`"
