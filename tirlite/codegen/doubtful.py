"""A function in, what it declares in the storage of others with an extent that may be negative out.

An Allocate stops the kernel where an extent is negative. What a plan has put into other storage must do so as well,
though that storage may be large enough: a maximum over several buffers knows nothing of one below zero.
"""

from __future__ import annotations

from dataclasses import replace

from tirlite.ir import Buffer, IntImm, PrimFunc, View, statements
from tirlite.sizes import Size


def doubtful_buffers(func: PrimFunc) -> tuple[Buffer, ...]:
    """Fresh views of `func` with those extents alone that are known on entry, and not proved to be 0 or more.

    These are over the dims and parameters of the function.
    """
    views = [
        stmt.buffer
        for stmt in statements(func.body)
        if isinstance(stmt, View) and stmt.fresh and not all(isinstance(e, IntImm) for e in stmt.buffer.shape)
    ]
    if not views:
        return ()
    from tirlite.analysis.extents import Extents
    from tirlite.analysis.linear import is_nonnegative

    extents = Extents(func)
    proved: dict[Size, bool] = {}
    found: list[Buffer] = []
    for view in views:
        sizes = [size for extent in view.shape if (size := extents.size(extent)) is not None]
        for size in sizes:
            if size not in proved:
                proved[size] = is_nonnegative(size)
        if doubtful := [size for size in sizes if not proved[size]]:
            found.append(replace(view, shape=tuple(map(extents.expr, doubtful))))
    return tuple(found)
