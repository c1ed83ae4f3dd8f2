"""The functions that a checked kernel calls in, their LLVM functions with checks out."""

from __future__ import annotations

from dataclasses import replace

from tirlite.codegen.aliases import Aliases
from tirlite.codegen.callee import SHARED
from tirlite.codegen.debug.kernel_calls import CheckedCalls, CheckedVersion
from tirlite.codegen.debug.marks import Flag, Mark, Read
from tirlite.codegen.debug.shadows import Window
from tirlite.codegen.debug.statements import CheckedStatements
from tirlite.codegen.kernel_calls import Versions, alignment_of, dim_parameters
from tirlite.codegen.pieces import Weights
from tirlite.codegen.storage import assign_homes
from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import register_type
from tirlite.ir import Buffer, Var

# The allocation that the shadows of all parameters lead into: they may share bytes.
_SHADOWS = "%shadows"


def write_checked_callees(versions: Versions, kernel: CheckedStatements) -> None:
    """Writes all functions that are pending, and those that they call, into the module of `kernel`."""
    while versions.pending:
        version = versions.pending.popleft()
        assert isinstance(version, CheckedVersion)
        func, name, module = version.func, versions.name(version), kernel.out.module
        out, weights, aliases = FunctionText(module), Weights(func.body), Aliases(func, (), module)
        storage, calls = assign_homes(func).on_heap(), CheckedCalls(func, versions)
        callee = CheckedStatements(out, func.span, name, storage, weights, (aliases, aliases), calls)
        kernel.adopt(callee)
        callee.checks.follow(kernel.checks, callee.faults)
        kernel.at = func.span
        callee.environment.owners = kernel.environment.owners
        parameters = [*_parameters(version, callee), *dim_parameters(func)]
        callee.write(func.body)
        out.define(f"internal fastcc i64 @{name}({', '.join(parameters)}){versions.attributes(version)}")
        kernel.environment.owners = callee.environment.owners
        kernel.count(callee)


def _parameters(version: CheckedVersion, callee: CheckedStatements) -> list[str]:
    """The parameters of a function as text; it then knows them."""
    environment, texts = callee.environment, []
    for number, dim in enumerate(version.func.dims):
        environment.bind(dim, f"%d{number}")
    for number, param in enumerate(version.func.params):
        if isinstance(param, Var):
            texts += _scalar(param, number, version.ranks[number], callee)
        else:
            texts.append(f"ptr{' noalias' if version.apart[number] else ''} %p{number}")
            texts += [f"ptr %s{number}", f"i8 %o{number}"] if version.shadowed[number] else []
    # Their extents may be computed from any scalar.
    for number, param in enumerate(version.func.params):
        if isinstance(param, Buffer):
            _place(param, number, version, callee)
    return texts


def _scalar(param: Var, number: int, rank: int | None, callee: CheckedStatements) -> list[str]:
    name, texts = f"%p{number}", [f"{register_type(param.dtype)} %p{number}"]
    if rank is not None:
        flag, read = Flag(f"%f{number}", 1), [f"%r{number}_{k}" for k in range(1 + rank)]
        callee.values.marks[name] = Mark(flag, Read(flag, read[0], tuple(read[1:])))
        texts += [f"i1 %f{number}", *(f"i64 {each}" for each in read)]
    callee.values.bind(param, name)
    return texts


def _place(param: Buffer, number: int, version: CheckedVersion, callee: CheckedStatements) -> None:
    values, pointer = callee.values, f"%p{number}"
    extents = [values.value(extent) for extent in param.shape]
    align = alignment_of(param) if version.aligned[number] else 1
    callee.place(param, pointer, extents, align, pointer if version.apart[number] else SHARED)
    if version.shadowed[number]:
        place, window = callee.environment.places[param], callee.environment.windows[param]
        shadow, size = replace(place, pointer=f"%s{number}"), callee.bytes_of(param, window)
        callee.environment.open(param, Window(window.extents, size, shadow, f"%o{number}"), _SHADOWS)
