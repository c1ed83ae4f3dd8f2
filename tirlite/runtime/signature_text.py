"""Writes a function, a parameter or a shape as messages and `inspect` show it."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.ir import Buffer, Expr, PrimFunc, Var
from tirlite.ir.printer import text


def head_text(func: PrimFunc) -> str:
    """The name and the parameters: `scale(x: f32[n], y: out[f32[n]])`."""
    params = []
    for param in func.params:
        kind = kind_text(param)
        default = func.default_of(param)
        told = f" = {default}" if default is not None else ""
        params.append(f"{param.name}: {f'out[{kind}]' if param in func.outputs else kind}{told}")
    return f"{func.name}({', '.join(params)})"


def kind_text(param: Var | Buffer) -> str:
    """The type of a parameter: `f32[n, m + 1]`, `i64`, `f32[n] with strides (2,)`."""
    if isinstance(param, Var):
        return str(param.dtype)
    strides = f" with strides {shape_text(param.strides)}" if param.strides else ""
    return f"{param.dtype}[{', '.join(text(extent) for extent in param.shape) or '()'}]{strides}"


def shape_text(shape: Sequence[Expr | int]) -> str:
    """A declared shape: `(n, m + 1)`."""
    extents = [text(extent) if isinstance(extent, Expr) else str(extent) for extent in shape]
    return f"({extents[0]},)" if len(extents) == 1 else f"({', '.join(extents)})"
