"""Makes of a function on dense arrays the same function for arrays of any strides."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tirlite.ir import Buffer, Expr, PrimFunc, Var, const, i64, substitute


def with_strides(func: PrimFunc, params: Mapping[Buffer, bool]) -> PrimFunc:
    """`func` with parameters of type i64 in front: the strides of these `params`, in elements, axis after axis.

    Where a parameter maps to True, its last axis is known to have stride 1, and has no parameter.
    """
    strides: list[Var] = []
    buffers: dict[Buffer, Buffer] = {}
    taken = {param.name for param in func.params} | {dim.name for dim in func.dims}
    for param, is_unit in params.items():
        own: list[Expr] = []
        for axis in range(len(param.shape) - is_unit):
            var = Var(_fresh(f"{param.name}_stride{axis}", taken))
            strides.append(var)
            own.append(var)
        if own:  # a row is dense
            buffers[param] = replace(param, strides=(*own, *[const(1, i64)] * is_unit))
    known = [buffers.get(param, param) if isinstance(param, Buffer) else param for param in func.params]
    return func.replaced(
        params=(*strides, *known),
        body=substitute(func.body, {}, buffers),
        outputs=tuple(buffers.get(output, output) for output in func.outputs),
    )


def _fresh(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
