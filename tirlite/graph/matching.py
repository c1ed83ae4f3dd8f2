"""Infers the type of a call from the types of the function's parameters and of the call's arguments."""

from __future__ import annotations

from tirlite.graph.extents import is_equal
from tirlite.graph.op import OperandCount, Site
from tirlite.graph.types import TensorType, Type, substituted, tensors
from tirlite.sizes import Dim, Size, substitute
from tirlite.sizes.poly import atom_of


def matched(site: Site, params: tuple[Type, ...], result: Type) -> Type:
    """`result` with the function's dims as the call gives them: a parameter `f32[n, 3]` takes `f32[2*m, 3]`."""
    if len(site.args) != len(params):
        raise OperandCount(str(site), site.op, str(len(params)), len(site.args), span=site.span).error()
    sizes: dict[Dim, Size] = {}
    pairs = []
    for number, (param, arg) in enumerate(zip(params, site.args, strict=True)):
        wanted, given = tensors(param), tensors(arg)
        if isinstance(param, TensorType) != isinstance(arg, TensorType) or len(wanted) != len(given):
            raise site.wrong_type(f"parameter {number} is {param}")
        for a, b in zip(wanted, given, strict=True):
            if a.dtype != b.dtype:
                raise site.wrong_type(f"parameter {number} is {param}")
            if a.rank != b.rank:
                raise site.mismatch(f"parameter {number} is {param}")
            pairs += [(number, param, extent, value) for extent, value in zip(a.shape, b.shape, strict=True)]
    for _, _, extent, value in pairs:
        for dim in atom_of(extent, Dim):
            sizes.setdefault(dim, value)
    for number, param, extent, value in pairs:
        if not is_equal(substitute(extent, sizes), value):
            raise site.mismatch(f"parameter {number} is {param}; {extent} is not proved to be {value}")
    return substituted(result, sizes)
