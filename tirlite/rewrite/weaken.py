"""Makes of a function whose dims are at least 1 the same function for dims that may be 0."""

from __future__ import annotations

from dataclasses import replace

from tirlite.ir import Buffer, Expr, PrimFunc, Var, substitute
from tirlite.sizes import Dim


def allowing_zero(func: PrimFunc) -> PrimFunc:
    """`func` with each dim whose minimum is 1 replaced by one whose minimum is 0, in the same order."""
    dims: dict[Var, Expr] = {}
    for var in func.dims:
        facts = var.dim
        if facts is not None and facts.min == 1:
            weaker = Dim(facts.name, min=0, max=facts.max, multiple_of=facts.multiple_of)
            dims[var] = Var(var.name, var.dtype, weaker)
    buffers: dict[Buffer, Buffer] = {}
    for param in func.params:
        if isinstance(param, Buffer):
            buffers[param] = replace(param, shape=tuple(substitute(extent, dims) for extent in param.shape))
    return func.replaced(
        params=tuple(buffers[param] if isinstance(param, Buffer) else param for param in func.params),
        body=substitute(func.body, dims, buffers),
        outputs=tuple(buffers[output] for output in func.outputs),
    )
