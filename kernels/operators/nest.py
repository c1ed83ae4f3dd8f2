"""Makes the loops over the elements of a box of given extents: for kernels whose rank varies, which a Builder makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tirlite.ir import Buffer, Builder, IntImm, TensorType, Var
from tirlite.kernels.operators.shapes import Extent, is_same


@contextmanager
def nest(b: Builder, box: Sequence[Extent], *, serial: bool = False) -> Iterator[tuple[Var, ...]]:
    """A block for each element of a box; `with` gives its indices. The loops are parallel, or `serial`."""
    kind = b.for_ if serial else b.parallel
    with ExitStack() as loops:
        yield tuple(loops.enter_context(kind(f"i{level}", 0, extent)) for level, extent in enumerate(box))


def seen(b: Builder, buffer: Buffer, shape: Sequence[Extent]) -> Buffer:
    """The elements of a buffer under another shape; itself if that is its own."""
    own = [extent.value if isinstance(extent, IntImm) else extent for extent in buffer.shape]
    if len(own) == len(shape) and all(map(is_same, own, shape)):
        return buffer
    return b.view(f"{buffer.name}_", buffer, TensorType(buffer.dtype, tuple(shape)))
