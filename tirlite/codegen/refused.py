"""What codegen does not take: an exception inside, a message with its place outside."""

from __future__ import annotations

from tirlite.diag import KernelError, Message


class Refused(Exception):
    """Codegen does not take `what`; `instead` is what to write. Where it stands is known to whoever catches this."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(what, instead)
        self.what = what
        self.instead = instead


class NotCompiled(Message):
    """Something is right IR, and cannot be compiled to native code."""

    code = "not-compiled"
    raises = KernelError
    title = "{what} cannot be compiled"
    label = "used here"
    help = "{instead}"

    what: str
    instead: str


class BufferTooLarge(Message):
    """A buffer of constant size is larger than any memory."""

    code = "buffer-too-large"
    raises = KernelError
    title = "`{buffer}` takes {size} bytes; the most is 2**62"
    label = "allocated here"

    buffer: str
    size: int
