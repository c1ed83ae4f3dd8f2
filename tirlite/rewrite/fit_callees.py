"""Makes the version of a function in which dims may be 0, and has callers call it where an extent may be 0.

A dim is at least 1 unless declared otherwise, and storage is planned on that assumption. A caller that may pass 0 for
such a dim calls a second version, made without the assumption. Other facts of dims are checked at the call.
"""

from __future__ import annotations

from tirlite.analysis import Extents
from tirlite.analysis.in_bounds.call_demands import may_be_empty
from tirlite.ir.expr import Buffer, Expr, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import Function, KernelCall, calls_in
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.trampoline import Steps, run
from tirlite.record import replace
from tirlite.sizes import Dim


def fit_callees(func: PrimFunc) -> PrimFunc:
    """`func` and its callees, calling versions for empty arrays where an extent may be 0."""
    # Up to two of each callee, by whether extents may be 0.
    versions: dict[tuple[Function, bool], PrimFunc] = {}

    def fitted(func: PrimFunc) -> Steps[PrimFunc]:
        if not (calls := calls_in(func.body)):
            return func
        extents = Extents(func)
        instead: dict[KernelCall, PrimFunc] = {}
        for call in dict.fromkeys(calls):
            key = call.callee, may_be_empty(call, extents)
            if key not in versions:
                assert isinstance(call.callee, PrimFunc)
                versions[key] = yield fitted(allowing_zero(call.callee) if key[1] else call.callee)
            instead[call] = versions[key]
        return rewrite(func, {KernelCall: lambda call: _calling(call, instead[call])})

    return run(fitted(func))


def _calling(call: KernelCall, callee: PrimFunc) -> KernelCall:
    return call if callee is call.callee else call.replaced(callee=callee)


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
