"""Tells what the caller must provide for the buffers of a workspace.

The workspace holds the ranges of the function's own buffers, and then, for each loop that is handed to workers, one
part for each of these with the ranges of the buffers inside the loop.
"""

from __future__ import annotations

from collections.abc import Iterable

from tirlite.codegen.storage import Storage, padded_bytes
from tirlite.ir import Buffer, Expr, For
from tirlite.record import record


@record
class Workspace:
    """What the caller must provide: `bytes`, and where `buffers` is not empty, as much more as the size function says.

    `buffers` are those of symbolic size, `shapes` their extents, and `copies` says how many workers have one each. The
    size function returns the total, or -(k + 1) where buffer k has a negative extent or makes the total larger than
    2^62 bytes. The buffers that are `doubtful` lie in others, and count on after these: their extents may be negative.
    """

    bytes: int
    buffers: tuple[Buffer, ...]
    shapes: tuple[tuple[Expr, ...], ...]
    copies: tuple[int, ...]
    doubtful: tuple[Buffer, ...] = ()

    @classmethod
    def of(cls, storage: Storage, doubtful: tuple[Buffer, ...] = ()) -> Workspace:
        constant = 0
        symbolic: list[tuple[Buffer, int]] = []
        for loop, copies in parts_of(storage):
            for buffer in storage.ranges[loop]:
                if buffer in storage.sizes:
                    constant += copies * padded_bytes(storage.sizes[buffer], storage.line)
                else:
                    symbolic.append((buffer, copies))
        buffers = tuple(buffer for buffer, _ in symbolic)
        shapes = tuple(storage.shapes[buffer] for buffer in buffers)
        return cls(constant, buffers, shapes, tuple(copies for _, copies in symbolic), doubtful)

    @property
    def is_empty(self) -> bool:
        return not (self.bytes or self.buffers or self.doubtful)

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to compute."""
        return not (self.buffers or self.doubtful)

    def refused(self, size: int) -> Buffer:
        """The buffer because of which the size function returned a negative number."""
        return (*self.buffers, *self.doubtful)[-size - 1]


def parts_of(storage: Storage) -> Iterable[tuple[For | None, int]]:
    """The function itself, and each loop that is handed to workers, with how often its buffers exist."""
    return (None, 1), *storage.workers.items()
