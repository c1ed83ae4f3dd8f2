"""The functions that a kernel calls in, their LLVM functions out, each once for each set of promises of its callers."""

from __future__ import annotations

from tirlite.codegen.aliases import Aliases
from tirlite.codegen.environment import Environment
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.kernel_calls import Calls, Version, Versions, alignment_of, dim_parameters
from tirlite.codegen.pieces import Weights
from tirlite.codegen.statements import Statements
from tirlite.codegen.storage import assign_homes
from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import register_type
from tirlite.ir import Buffer, Var

# The allocation that all parameters lead into that may share bytes.
SHARED = "%shared"


def write_callees(versions: Versions, kernel: Statements, workers: int) -> None:
    """Writes all functions that are pending, and those that they call, into the module of `kernel`.

    Faults and extern functions are counted with those of `kernel`, and so is the extent. Their temporaries lie on the
    stack or on the heap: a function may run several times at once.
    """
    while versions.pending:
        version = versions.pending.popleft()
        func, name = version.func, versions.name(version)
        values = Expressions(FunctionText(kernel.out.module), Environment())
        storage = assign_homes(func, workers).on_heap()
        weights, aliases = Weights(func.body), Aliases(func, (), kernel.out.module)
        callee = Statements(values, name, storage, weights, aliases, Calls(func, versions))
        kernel.adopt(callee)
        kernel.at = func.span
        _place_params(version, callee)
        callee.write(func.body)
        values.out.define(f"internal fastcc i64 @{name}({_parameters(version)}){versions.attributes(version)}")
        kernel.count(callee)


def _place_params(version: Version, callee: Statements) -> None:
    values, environment = callee.values, callee.environment
    func = version.func
    for number, param in enumerate(func.params):
        if isinstance(param, Var):
            environment.bind(param, f"%p{number}")
    for number, dim in enumerate(func.dims):
        environment.bind(dim, f"%d{number}")
    for number, param in enumerate(func.params):
        if isinstance(param, Buffer):
            pointer = f"%p{number}"
            extents = [values.value(extent) for extent in param.shape]
            align = alignment_of(param) if version.aligned[number] else 1
            callee.place(param, pointer, extents, align, pointer if version.apart[number] else SHARED)


def _parameters(version: Version) -> str:
    parameters = []
    for number, param in enumerate(version.func.params):
        if isinstance(param, Buffer):
            noalias = " noalias" if version.apart[number] else ""
            align = f" align {alignment_of(param)}" if version.aligned[number] else ""
            parameters.append(f"ptr{noalias}{align} %p{number}")
        else:
            parameters.append(f"{register_type(param.dtype)} %p{number}")
    return ", ".join([*parameters, *dim_parameters(version.func)])
