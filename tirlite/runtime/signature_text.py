"""Formats a function, a parameter or a shape for messages, and a call as an `inspect.Signature`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from inspect import Parameter, Signature as PythonSignature

from tirlite.ir import Buffer, Expr, PrimFunc, Var
from tirlite.ir.printer import text


def head_text(func: PrimFunc) -> str:
    """The name and the parameters: `scale(x: f32[n], y: out[f32[n]])`."""
    params = []
    for param in func.params:
        kind = kind_text(param)
        default = func.default_of(param)
        suffix = f" = {default}" if default is not None else ""
        params.append(f"{param.name}: {f'out[{kind}]' if param in func.outputs else kind}{suffix}")
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


class _Word(str):
    """A string that is printed without quotes: a type, or a placeholder for a value."""

    def __repr__(self) -> str:
        return str(self)


def _default(func: PrimFunc, param: Var | Buffer) -> object:
    default = func.default_of(param)
    return Parameter.empty if default is None else default


def call_signature(func: PrimFunc, fixed: Iterable[str]) -> PythonSignature:
    """The parameters that callers pass, without those named in `fixed`; outputs may be left out.

    If an output precedes an input, outputs are keyword-only, as positional arguments go to the inputs.
    """
    params = [param for param in func.params if param.name not in fixed]
    inputs = [param for param in params if param not in func.outputs]
    kind = Parameter.POSITIONAL_OR_KEYWORD if params[: len(inputs)] == inputs else Parameter.KEYWORD_ONLY
    written = [
        Parameter(
            each.name, Parameter.POSITIONAL_OR_KEYWORD, default=_default(func, each), annotation=_Word(kind_text(each))
        )
        for each in inputs
    ]
    for output in func.outputs:
        written.append(
            Parameter(output.name, kind, default=_Word("..."), annotation=_Word(f"out[{kind_text(output)}]"))
        )
    kinds = [kind_text(output) for output in func.outputs]
    returned = kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"
    return PythonSignature(written, return_annotation=_Word(returned) if kinds else None)
