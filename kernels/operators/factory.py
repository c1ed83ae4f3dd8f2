"""A decorator for the factories of operators' functions, which gives each function dims of its own.

So the names of a caller's dims do not clash with names inside a kernel, and types that differ only in the names of dims
give equal functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import tirlite as tl
from tirlite.ir import Expr, PrimFunc, TensorType, Var, walk
from tirlite.ir.rewrite import substitute

Factory = Callable[..., PrimFunc]


def factory(function: Factory) -> Factory:
    """`function`, with the dims in types and attributes replaced by others of the same facts: dim0, dim1, and so on."""

    @wraps(function)
    def renamed(*args: object, **attrs: object) -> PrimFunc:
        own: dict[Var, Expr] = {}
        given = [_with_own(each, own) for each in args]
        return function(*given, **{name: _with_own(each, own) for name, each in attrs.items()})

    return renamed


def with_given(kernel: tl.Kernel, **types: TensorType | None) -> PrimFunc:
    """The kernel's function without the parameters whose type is None: they are absent, and nothing mentions them."""
    func = kernel.ir
    absent = {name for name, each in types.items() if each is None}
    return func.replaced(params=tuple(p for p in func.params if p.name not in absent)) if absent else func


def _with_own(value: object, own: dict[Var, Expr]) -> object:
    """A type, an expression or a tuple with the dims of `own`, which grows by those that are met first."""
    if isinstance(value, TensorType):
        return TensorType(value.dtype, _with_own(value.shape, own))
    if isinstance(value, tuple):
        return tuple(_with_own(each, own) for each in value)
    if not isinstance(value, Expr):
        return value
    for each in walk(value):
        if isinstance(each, Var) and each not in own:
            facts = each.dim
            limits = {} if facts is None else {"min": facts.min, "max": facts.max, "multiple_of": facts.multiple_of}
            own[each] = tl.dim(f"dim{len(own)}", **limits)
    return substitute(value, own)
