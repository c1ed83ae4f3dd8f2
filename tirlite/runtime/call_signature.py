"""Tells editors, as `inspect.Signature`, how a call of a kernel is written, from what it knows of its parameters."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import Parameter, Signature as PythonSignature

from tirlite.ir import Buffer, PrimFunc, Var
from tirlite.runtime.signature_text import kind_text


class _Word(str):
    """A type as kernels spell it, or what stands for a value: printed without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _default(func: PrimFunc, param: Var | Buffer) -> object:
    default = func.default_of(param)
    return Parameter.empty if default is None else default


def call_signature(func: PrimFunc, fixed: Iterable[str]) -> PythonSignature:
    """The parameters that callers give, without those of the names `fixed`; outputs may be left out.

    Where an output stands before an input, outputs are given by name: what is given by position goes to the inputs.
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
