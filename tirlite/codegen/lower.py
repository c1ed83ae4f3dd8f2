"""A PrimFunc in, the text of an LLVM module and what a caller of it must know out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tirlite.codegen.expressions import Expressions
from tirlite.codegen.memory import natural_alignment
from tirlite.codegen.refused import NotCompiled, Refused
from tirlite.codegen.statements import Statements
from tirlite.codegen.storage import Storage, assign_homes
from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import register_type
from tirlite.codegen.workspace import Workspace, range_addresses, write_size_function
from tirlite.diag import Message
from tirlite.ir import Buffer, PrimFunc, Var


@dataclass(frozen=True, slots=True)
class Lowered:
    """An LLVM module as text.

    The function `name` takes the parameters in their order, arrays as pointers, then the dims as i64, then a pointer to
    the workspace where that is not empty. It returns 0, or the number of the fault that stopped it, counted from 1.
    The function `size_name`, if not empty, takes the scalars among the parameters and the dims; see `Workspace`.
    """

    text: str
    name: str
    size_name: str
    workspace: Workspace
    alignment: int  # of the workspace, in bytes
    faults: tuple[Message, ...]
    externs: tuple[str, ...]  # the extern functions that must exist in the process
    instructions: int
    loop_depth: int


def lower(func: PrimFunc) -> Lowered:
    """The module of one function. Raises KernelError for what native code cannot do."""
    storage = assign_homes(func)
    workspace = Workspace.of(storage)
    declarations: dict[str, str] = {}
    name = "tirlite_" + re.sub(r"\W", "_", func.name, flags=re.ASCII)
    values, statements = _write_kernel(func, storage, declarations)
    out = values.out
    functions = [out.definition(f"i64 @{name}({_parameters(func, workspace, storage.line)})")]
    size_name = f"{name}_workspace" if workspace.buffers else ""
    if size_name:
        functions.append(_size_function(func, size_name, workspace, storage.line, declarations))
    lines = [f'source_filename = "{name}"', *functions, *declarations.values(), *out.metadata]
    return Lowered(
        "\n".join(lines) + "\n",
        name,
        size_name,
        workspace,
        storage.line,
        tuple(statements.faults.messages),
        tuple(values.externs),
        len(out.lines),
        statements.deepest,
    )


def _write_kernel(func: PrimFunc, storage: Storage, declarations: dict[str, str]) -> tuple[Expressions, Statements]:
    out = FunctionText(declarations)
    values = Expressions(out)
    statements = Statements(values, storage, {})
    try:
        bind_scalars(func, values)
        for number, param in enumerate(func.params):
            if isinstance(param, Buffer):
                extents = [values.value(extent) for extent in param.shape]
                statements.place(param, f"%p{number}", extents, param.alignment or natural_alignment(param.dtype))
        statements.addresses.update(range_addresses(values, storage))
        statements.write(func.body)
    except Refused as refused:
        raise NotCompiled(refused.what, refused.instead, span=statements.at or func.span).error() from None
    statements.faults.finish()
    return values, statements


def bind_scalars(func: PrimFunc, values: Expressions) -> None:
    """Lets the scalars and dims of `func` stand for the parameters of the function that is written."""
    for number, param in enumerate(func.params):
        if isinstance(param, Var):
            name = f"%p{number}"
            values.variables[param] = values.out.value(f"icmp ne i8 {name}, 0") if param.dtype.is_bool else name
    for number, dim in enumerate(func.dims):
        values.variables[dim] = f"%d{number}"


def _parameters(func: PrimFunc, workspace: Workspace, line: int) -> str:
    parameters = []
    for number, param in enumerate(func.params):
        if isinstance(param, Buffer):
            align = param.alignment or natural_alignment(param.dtype)
            parameters.append(f"ptr noalias align {align} %p{number}")
        else:
            parameters.append(_scalar(number, param))
    parameters += _dims(func)
    if not workspace.is_empty:
        parameters.append(f"ptr noalias align {line} %workspace")
    return ", ".join(parameters)


def _dims(func: PrimFunc) -> list[str]:
    """Dims with what is known of them: the caller has checked their facts."""
    texts = []
    for number, dim in enumerate(func.dims):
        least = dim.dim.min if dim.dim is not None else 0
        most = dim.dim.max if dim.dim is not None else None
        end = -(1 << 63) if most is None else most + 1
        texts.append(f"i64 range(i64 {least}, {end}) %d{number}")
    return texts


def _scalar(number: int, param: Var) -> str:
    return f"i8 %p{number}" if param.dtype.is_bool else f"{register_type(param.dtype)} %p{number}"


def _size_function(func: PrimFunc, name: str, workspace: Workspace, line: int, declarations: dict[str, str]) -> str:
    values = Expressions(FunctionText(declarations), checked=True)
    bind_scalars(func, values)
    write_size_function(values, workspace, line)
    scalars = [_scalar(number, param) for number, param in enumerate(func.params) if isinstance(param, Var)]
    return values.out.definition(f"i64 @{name}({', '.join([*scalars, *_dims(func)])})")
