"""A PrimFunc in, the text of an LLVM module and what a caller of it must know out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tirlite.analysis import shape_plan
from tirlite.codegen.aliases import Aliases
from tirlite.codegen.doubtful import doubtful_buffers
from tirlite.codegen.entry import define_entry
from tirlite.codegen.environment import Environment
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.kernel_calls import Calls, Versions, alignment_of, dim_parameters
from tirlite.codegen.memory import Place, natural_alignment
from tirlite.codegen.pieces import Weights
from tirlite.codegen.refused import NotCompiled, Refused
from tirlite.codegen.statements import Extent, Statements
from tirlite.codegen.storage import Home, Storage, assign_homes
from tirlite.codegen.text import FunctionText, ModuleText
from tirlite.codegen.types import is_half, register_type
from tirlite.codegen.workspace import Workspace
from tirlite.diag import Message
from tirlite.ir import Buffer, DType, PrimFunc, Var, f32
from tirlite.record import record

if TYPE_CHECKING:
    from tirlite.codegen.told import Told


@record
class Lowered:
    """An LLVM module as text.

    The function `name` takes the parameters in their order, arrays as pointers, then the dims as i64, then a pointer to
    the workspace where that is not empty. It returns 0, or the number of the fault that stopped it, counted from 1, or
    the address, negated, of a record from malloc with that number and what belongs to it.
    The function `size_name`, if not empty, takes the scalars among the parameters, the plan if the function has one
    (see `analysis.shape_plan`), and the dims; see `Workspace`. A function with more than `MOST_PARAMETERS` takes a
    pointer to a record of them instead, see `codegen.entry`.
    """

    text: str
    name: str
    size_name: str
    workspace: Workspace
    alignment: int  # of the workspace, in bytes
    faults: tuple[Message, ...]
    told: Mapping[int, Told]  # the faults whose numbers come in a record of i64, before the values that they tell
    externs: tuple[str, ...]  # the extern functions that must exist in the process
    addresses: tuple[tuple[str, int], ...]  # symbols of extern functions that are known by their addresses
    extent: Extent
    needs_pool: bool  # the module calls the pool of workers, see `codegen.pool`


def lower(func: PrimFunc, workers: int = 1, *, debug: bool = False) -> Lowered:
    """The module of one function, whose parallel loops are run by so many workers at most.

    With `debug` the code checks itself, and parallel loops run in order. Raises KernelError for what native code cannot
    do.
    """
    storage = assign_homes(func).on_heap() if debug else assign_homes(func, workers)
    workspace = Workspace.of(storage, () if debug else doubtful_buffers(func))
    module = ModuleText()
    name = "tirlite_" + _legal(func.name)
    versions = Versions(func, name)
    statements = _statements(func, name, storage, module, versions, debug)
    values = statements.values
    try:
        _write_kernel(func, statements)
        if debug:
            from tirlite.codegen.debug.callee import write_checked_callees
            from tirlite.codegen.debug.statements import CheckedStatements

            assert isinstance(statements, CheckedStatements)
            write_checked_callees(versions, statements)
        elif versions.pending:
            from tirlite.codegen.callee import write_callees

            write_callees(versions, statements, workers)
    except Refused as refused:
        raise NotCompiled(refused.what, refused.instead, span=statements.at or func.span).error() from None
    define_entry(values.out, name, _parameters(func, workspace, storage.line))
    size_name = "" if workspace.is_constant else f"{name}_workspace"
    if size_name:
        _write_size_function(func, size_name, workspace, storage.line, module)
    return Lowered(
        text=module.text(name),
        name=name,
        size_name=size_name,
        workspace=workspace,
        alignment=storage.line,
        faults=tuple(statements.messages),
        told=statements.told,
        externs=tuple(values.externs),
        addresses=tuple(values.addresses.items()),
        extent=statements.extent,
        needs_pool=statements.tasks > 0,
    )


def _legal(name: str) -> str:
    """`name` in letters that LLVM takes."""
    return name if name.isascii() and name.isidentifier() else re.sub(r"\W", "_", name, flags=re.ASCII)


def _statements(
    func: PrimFunc, name: str, storage: Storage, module: ModuleText, versions: Versions, debug: bool
) -> Statements:
    out, weights = FunctionText(module), Weights(func.body)
    if debug:
        from tirlite.codegen.debug.kernel_calls import CheckedCalls
        from tirlite.codegen.debug.statements import CheckedStatements

        heap = storage.of(Home.HEAP)
        aliases = (Aliases(func, heap, module), Aliases(func, heap, module))
        return CheckedStatements(out, func.span, name, storage, weights, aliases, CheckedCalls(func, versions))
    ranges = Aliases(func, storage.of(Home.WORKSPACE), module)
    return Statements(Expressions(out, Environment()), name, storage, weights, ranges, Calls(func, versions))


def _write_kernel(func: PrimFunc, statements: Statements) -> None:
    values = statements.values
    bind_scalars(func, values)
    for number, param in enumerate(func.params):
        if isinstance(param, Buffer):
            extents = [values.value(extent) for extent in param.shape]
            align = alignment_of(param)
            statements.place(param, f"%p{number}", extents, align, f"%p{number}")
    if any(statements.storage.ranges.values()):
        _write_layout(statements)
    statements.write(func.body)


def _write_layout(statements: Statements) -> None:
    """The addresses of all that lies in the workspace."""
    from tirlite.codegen.workspace_layout import workspace_layout

    layout = workspace_layout(statements.values, statements.storage)
    environment = statements.environment
    for address in layout.addresses.values():
        environment.lead(address, address)
    for part in layout.parts.values():
        environment.lead(part.start, part.start)
        environment.keep(part.bytes, "i64")
    statements.addresses, statements.parts = layout.addresses, layout.parts


def bind_scalars(func: PrimFunc, values: Expressions) -> None:
    """Lets the scalars and dims of `func` stand for the parameters of the function that is written."""
    for number, param in enumerate(func.params):
        if isinstance(param, Var):
            name = f"%p{number}"
            values.environment.bind(param, _received(param.dtype, name, values.out))
    for number, (dim, parameter) in enumerate(zip(func.dims, dim_parameters(func), strict=True)):
        fact = parameter.removeprefix("i64").removesuffix(f" %d{number}")
        values.environment.bind(dim, f"%d{number}", fact)


def _received(dtype: DType, name: str, out: FunctionText) -> str:
    """A scalar parameter as a value; a bool comes as a byte, a float of 16 bits as f32."""
    if is_half(dtype):
        from tirlite.codegen.halves import narrow

        return narrow(out, name, f32, dtype)
    return out.value(f"icmp ne i8 {name}, 0") if dtype.is_bool else name


def _parameters(func: PrimFunc, workspace: Workspace, line: int) -> list[str]:
    parameters = []
    for number, param in enumerate(func.params):
        if isinstance(param, Buffer):
            align = alignment_of(param)
            parameters.append(f"ptr noalias align {align} %p{number}")
        else:
            parameters.append(_scalar(number, param))
    parameters += dim_parameters(func)
    if not workspace.is_empty:
        parameters.append(f"ptr noalias align {line} %workspace")
    return parameters


def _scalar(number: int, param: Var) -> str:
    kind = "i8" if param.dtype.is_bool else register_type(f32 if is_half(param.dtype) else param.dtype)
    return f"{kind} %p{number}"


def _write_size_function(func: PrimFunc, name: str, workspace: Workspace, line: int, module: ModuleText) -> None:
    from tirlite.codegen.workspace_layout import write_size_function

    values = Expressions(FunctionText(module), Environment(), checked=True)
    bind_scalars(func, values)
    parameters = [_scalar(number, param) for number, param in enumerate(func.params) if isinstance(param, Var)]
    plan = shape_plan(func)
    if plan is not None:
        pointer = f"%p{len(func.params) - 1}"
        align = natural_alignment(plan.buffer.dtype)
        extents = tuple(values.value(extent) for extent in plan.buffer.shape)
        values.environment.put(Place(plan.buffer, pointer, ("1",), align, extents), pointer)
        parameters.append(f"ptr noalias align {align} {pointer}")
    write_size_function(values, workspace, line)
    define_entry(values.out, name, [*parameters, *dim_parameters(func)])
