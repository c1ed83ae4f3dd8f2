"""Tells which parameters a function may write."""

from __future__ import annotations

from tirlite.analysis import ParamUses, Use
from tirlite.analysis.param_uses import only_updated
from tirlite.ir import Buffer, PrimFunc


def written_params(func: PrimFunc) -> tuple[Buffer, ...]:
    """The arrays among the parameters that are stored to, here or in callees, or whose address is handed on.

    An `access_ptr` with the mask "r" does not count.
    """
    uses = ParamUses().of(func)
    return tuple(param for param, use in uses.items() if use & Use.WRITE or param in func.outputs)


def unfit_to_omit(func: PrimFunc) -> tuple[Buffer, ...]:
    """The outputs that have no value if the caller gives them none: a function only updates them."""
    updated = only_updated(func)
    return tuple(output for output in func.outputs if output in updated)
