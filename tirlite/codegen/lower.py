"""Lowers a PrimFunc to the text of an LLVM module, with the facts that its callers need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from tirlite.analysis import shape_plan
from tirlite.analysis.facts import Facts
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.functions.callees import Callees, legal, offered_ahead, write_versions
from tirlite.codegen.functions.kernel_calls import Versions, dim_parameters
from tirlite.codegen.functions.parts import ModulePart, parts
from tirlite.codegen.functions.pieces import StatementCosts, are_only_calls
from tirlite.codegen.llvm.text import Extent, FunctionText, ModuleText, define_entry
from tirlite.codegen.llvm.values import Value, constant, integer, is_half
from tirlite.codegen.loops.aliases import Aliases
from tirlite.codegen.memory import Environment, Place, alignment_of, natural_alignment
from tirlite.codegen.refused import NotCompiled, Refused
from tirlite.codegen.statements import Statements
from tirlite.codegen.storage import HeapNeed, Storage, Workspace, assign_homes, heap_need, stack_shares
from tirlite.diag import Message
from tirlite.ir import Allocate, AttrStmt, Buffer, DType, For, PrimFunc, Var, View, f32, handle, statements_of, u8
from tirlite.record import record
from tirlite.target.processor import HOST, processor_called

if TYPE_CHECKING:
    from tirlite.codegen.doubtful import OnEntry
    from tirlite.codegen.reports import FaultReport

_Maker: TypeAlias = Callable[[PrimFunc, str, Storage], Statements]

# Size functions with at least this many lines are not optimised.
_LONG_SIZES = 1000


@record
class Lowered:
    """An LLVM module as text.
    The function `name` takes the parameters in their order, arrays as pointers, then the dims as i64, then a pointer to
    the workspace unless that is empty. It returns 0, or the number of the fault that stopped it, counted from 1, or the
    negated address of a malloc'ed record with that number and the fault's values. The function `size_name`, if not
    empty, takes the scalars among the parameters, the plan if the function has one (see `analysis.shape_plan`), and the
    dims; see `Workspace`. A function with more than `MOST_PARAMETERS` parameters takes a pointer to a record of them
    instead, see `codegen.llvm.text`.
    """

    text: str
    parts: tuple[ModulePart, ...]  # the module split into modules that LLVM may compile in parallel
    name: str
    size_name: str
    workspace: Workspace
    alignment: int  # of the workspace, in bytes
    faults: tuple[Message, ...]
    reports: Mapping[int, FaultReport]  # the faults with values, by their numbers
    externs: tuple[str, ...]  # the extern functions that must exist in the process
    addresses: tuple[tuple[str, int], ...]  # symbols and addresses of extern functions given by address
    extent: Extent
    keeps_scalars: bool  # LLVM's SLP vectorizer must not run
    needs_pool: bool  # the module calls the pool of workers, see `codegen.llvm.pool`
    polls: bool  # the module polls for signals, see `codegen.llvm.signals`
    asks_caches: bool  # the module asks what the caches hold, see `codegen.llvm.held`
    heap: HeapNeed

    @property
    def joins_scalars(self) -> bool:
        """Whether to run LLVM's SLP vectorizer: a tenth of its time, wasted on code that is vectorized already."""
        return not (self.keeps_scalars or self.extent.by_vectors)

    @property
    def works_over_addresses(self) -> bool:
        """Whether LLVM runs loop strength reduction on the module, as it does for each part that needs it."""
        return any(part.works_over_addresses for part in self.parts)


def lower(
    func: PrimFunc,
    workers: int = 1,
    *,
    debug: bool = False,
    exported: bool = False,
    target: str = HOST,
    lines: bool = False,
    ahead: Callees | None = None,
) -> Lowered:
    """Lowers a function, with its callees, to an LLVM module.
    `workers`: the most threads that run a parallel loop. `debug`: emit checks, and run parallel loops sequentially.
    `exported`: faults are numbers only, and memory comes from the surrounding program, see `runtime.export.wrapper`.
    `target`: the processor's name. `lines`: emit debug line information. `ahead`: callees that are emitted already;
    they do not change the result. Raises KernelError for what native code cannot do.
    """
    facts = Facts(func)
    shares, runners = stack_shares(func), 1 if debug else workers
    on_entry, doubtful = _on_entry(facts)
    storage = assign_homes(func, runners, shares[func], on_entry)
    storage = storage.on_heap() if debug else storage
    workspace = Workspace.of(storage, () if debug else doubtful)
    name, own = legal(func.name), () if debug or exported or lines else offered_ahead(func)
    is_written = ahead is not None and (*ahead.offered,) == own
    if ahead is None or not is_written:
        ahead = Callees(ModuleText(processor_called(target), exported=exported, lines=lines), name, runners)
    module, versions, storages = ahead.module, ahead.versions, ahead.storages
    module.span = func.span
    versions.receive(facts)
    maker = _checked_statements(func, versions, module) if debug else ahead.statements

    def storage_of(callee: PrimFunc) -> Storage:
        # A function may run several times at once: its temporaries lie on the stack or on the heap.
        if callee not in storages:
            storages[callee] = assign_homes(callee, runners, shares[callee]).on_heap()
        return storages[callee]

    try:
        for callee in () if is_written else own:
            ahead.write(callee)
        storages[func] = storage
        statements = maker(func, name, storage)
        _write_kernel(func, statements, workspace)
        kernel = statements.out
        write_versions(versions, module, lambda each, name: maker(each, name, storage_of(each)))
    except Refused as refused:
        raise NotCompiled(refused.what, refused.instead, span=module.span).error() from None
    define_entry(kernel, name)
    size_name = "" if workspace.is_constant else f"{name}_workspace"
    if size_name:
        _write_size_function(func, size_name, workspace, storage.line, module)
    return _finished(func, name, size_name, workspace, storage.line, ahead)


def _on_entry(facts: Facts) -> tuple[OnEntry | None, tuple[Buffer, ...]]:
    """The extents known on entry, and the buffers with doubtful ones; None and () if the function allocates nothing."""
    if not any(True for _ in statements_of(facts.func.body, Allocate, View)):
        return None, ()
    from tirlite.codegen.doubtful import OnEntry, doubtful_buffers

    on_entry = OnEntry(facts)
    return on_entry, doubtful_buffers(facts, on_entry)


def _finished(func: PrimFunc, name: str, size_name: str, workspace: Workspace, line: int, own: Callees) -> Lowered:
    """The finished module as a Lowered."""
    module, units = own.module, own.units()
    return Lowered(
        text=module.text(name),
        parts=parts(module, name, units),
        name=name,
        size_name=size_name,
        workspace=workspace,
        alignment=line,
        faults=tuple(module.messages),
        reports=module.reports,
        externs=tuple(module.externs),
        addresses=tuple(module.addresses.items()),
        extent=module.extent,
        keeps_scalars=module.keeps_scalars,
        needs_pool=module.tasks > 0,
        polls=module.polls,
        asks_caches=module.asks_caches,
        heap=heap_need(func, own.storages, bounded=module.exported),
    )


def _checked_statements(kernel: PrimFunc, versions: Versions, module: ModuleText) -> _Maker:
    from tirlite.codegen.debug.shadows import Shadows
    from tirlite.codegen.debug.statements import CheckedCalls, CheckedStatements

    shadows = Shadows()

    def statements(func: PrimFunc, name: str, storage: Storage) -> Statements:
        out = KernelFunction(module, storage.line)
        heap = storage.of("heap") if func is kernel else ()
        ranges = versions.ranges_in(func, heap)
        aliases = (Aliases(ranges, module), Aliases(ranges, module))
        calls = CheckedCalls(func, versions)
        return CheckedStatements(out, shadows, name, storage, StatementCosts(func.body), aliases, calls)

    return statements


def _write_kernel(func: PrimFunc, statements: Statements, workspace: Workspace) -> None:
    out, values = statements.out, statements.values
    given = {param: _parameter(out, number, param) for number, param in enumerate(func.params)}
    _bind_scalars(given, dict(zip(func.dims, dim_parameters(func, out), strict=True)), values)
    for param in func.params:
        if isinstance(param, Buffer):
            extents = [values.value(extent) for extent in param.shape]
            statements.place(param, given[param], extents, alignment_of(param))
    if not workspace.is_empty:
        pointer = out.parameter(handle, "%workspace", f" noalias align {statements.storage.line}")
        if any(statements.storage.ranges.values()):
            from tirlite.codegen.workspace_layout import workspace_layout

            layout = workspace_layout(values, statements.storage, pointer)
            statements.addresses, statements.parts = layout.addresses, layout.parts
    if any(loop.step > 1 for loop in statements_of(func.body, For)) or next(statements_of(func.body, AttrStmt), None):
        from tirlite.codegen.loops.streaming import streamed_stores

        statements.streamed = streamed_stores(func, out, values.environment.places)
    out.as_written = are_only_calls(func.body.stmts)
    statements.write(func.body)


def _parameter(out: FunctionText, number: int, param: Var | Buffer) -> Value:
    """A parameter with the type of the C interface: a bool is a byte, a 16-bit float an f32."""
    if isinstance(param, Buffer):
        return out.parameter(handle, f"%p{number}", f" noalias align {alignment_of(param)}")
    return out.parameter(u8 if param.dtype.is_bool else f32 if is_half(param.dtype) else param.dtype, f"%p{number}")


def _bind_scalars(given: Mapping[Var | Buffer, Value], dims: Mapping[Var, Value], values: Expressions) -> None:
    """Binds the scalar parameters and the dims to their values."""
    variables = values.environment.variables
    for param, value in given.items():
        if isinstance(param, Var):
            variables[param] = _received(param.dtype, value, values.out)
    variables |= dims


def _received(dtype: DType, value: Value, out: FunctionText) -> Value:
    if is_half(dtype):
        from tirlite.codegen.arithmetic.halves import narrow

        return narrow(out, value, dtype)
    return out.compare("icmp ne", value, constant(0, u8)) if dtype.is_bool else value


def _write_size_function(func: PrimFunc, name: str, workspace: Workspace, line: int, module: ModuleText) -> None:
    from tirlite.codegen.workspace_layout import ExactExpressions, write_size_function

    out = FunctionText(module)
    values = ExactExpressions(out, Environment())
    given: dict[Var | Buffer, Value] = {
        param: _parameter(out, number, param) for number, param in enumerate(func.params) if isinstance(param, Var)
    }
    plan = shape_plan(func)
    if plan is not None:
        align = natural_alignment(plan.buffer.dtype)
        pointer = out.parameter(handle, f"%p{len(func.params) - 1}", f" noalias align {align}")
    _bind_scalars(given, dict(zip(func.dims, dim_parameters(func, out), strict=True)), values)
    if plan is not None:
        extents = tuple(values.value(extent) for extent in plan.buffer.shape)
        values.environment.places[plan.buffer] = Place(plan.buffer, pointer, (integer(1),), align, extents)
    write_size_function(values, workspace, line)
    # LLVM takes seconds to reassociate thousands of sums and products of sizes.
    out.as_written = len(out.lines) >= _LONG_SIZES
    define_entry(out, name)
