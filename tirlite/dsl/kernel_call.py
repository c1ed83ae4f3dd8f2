"""Translates a call of one kernel by another, to the callee's statements or to a KernelCall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tirlite.analysis import GIVEN, Demand, Extents, demands
from tirlite.analysis.param_uses import Use, uses_of
from tirlite.diag import Message, Span
from tirlite.dsl.convert import stored
from tirlite.dsl.parameters import described
from tirlite.dsl.vocabulary import CallSite, bound
from tirlite.ir.expr import Buffer, BufferRef, Expr, FloatImm, IntImm, LetExpr, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, Substitution, rewrite, substitute
from tirlite.ir.stmt import Allocate, Assert, For, Let, SeqStmt, Stmt, View
from tirlite.ir.validate_buffers import UndeterminedDim
from tirlite.ir.validate_calls import CallBuffer, CallShape, declared
from tirlite.ir.walk import walk
from tirlite.record import record, replace
from tirlite.sizes import Proof


class CallAlias(Message):
    """One buffer is given twice to a kernel that writes it.

    Example: `smooth(x, x)`, where `smooth` stores into its second parameter.
    """

    title = "`{buffer}` is given to {kernel} as `{first}` and as `{second}`, and the kernel writes it"
    help = "parameters of a kernel do not overlap: give a buffer of its own"


@record(frozen=False)
class _Call:
    """A call that is being translated."""

    func: PrimFunc
    span: Span
    splice: bool  # whether the callee's statements replace the call
    proofs: Extents
    variables: dict[Var, Expr] = field(default_factory=dict)
    buffers: dict[Buffer, Buffer] = field(default_factory=dict)
    stmts: list[Stmt] = field(default_factory=list)

    def scalar(self, param: Var, value: object, span: Span) -> None:
        made = stored(value, param.dtype, param.name, span)
        if self.splice and not isinstance(made, (Var, IntImm, FloatImm)):
            var = Var(param.name, param.dtype)
            self.stmts.append(Let(var, made, span=self.span))
            made = var
        self.variables[param] = made

    def array(self, param: Buffer, value: object, span: Span) -> None:
        wanted = f"an array of tl.{param.dtype}, of rank {len(param.shape)}, in {param.scope} memory"
        if not isinstance(value, Buffer):
            raise CallBuffer(param.name, self.func.name, wanted, described(value), span=span).error()
        given = f"`{value.name}` of tl.{value.dtype}, of rank {len(value.shape)}, in {value.scope} memory"
        fits = (value.dtype, len(value.shape), value.scope) == (param.dtype, len(param.shape), param.scope)
        # Spliced accesses take over the caller's volatility; a separate function is compiled for its own.
        volatile = value.volatile if self.splice and not param.volatile else param.volatile
        if not fits or volatile != value.volatile:
            raise CallBuffer(param.name, self.func.name, wanted, given, span=span).error()
        self.buffers[param] = value

    def bind_dims(self) -> None:
        found = self.func.dims_at(self.buffers)
        for dim in self.func.dims:
            if dim not in found:
                raise UndeterminedDim(dim.name, span=self.span).error()
        self.variables |= found

    def check_extents(self) -> None:
        """Raises CallShape for extents that are proved wrong, and adds asserts for those that are not proved right."""
        scalars = {param: value for param, value in self.variables.items() if param in self.func.params}
        for demand in demands(self.func, self.buffers, scalars, self.proofs):
            if demand.proof is Proof.NO:
                raise self._unfit(demand).error()
            if demand.proof is Proof.UNKNOWN:
                extent = self.buffers[demand.param].shape[demand.axis]
                condition = substitute(demand.condition, {**self.variables, GIVEN: extent})
                self.stmts.append(Assert(condition, demand.told(self.func.name), span=self.span))

    def _unfit(self, demand: Demand) -> Message:
        param, name = demand.param, self.func.name
        return CallShape(demand.axis, param.name, name, demand.wanted, demand.given, declared(param), span=self.span)

    def check_aliases(self) -> None:
        first: dict[Buffer, Buffer] = {}
        pairs = [(first.setdefault(given, param), param) for param, given in self.buffers.items()]
        repeated = [(other, param) for other, param in pairs if other is not param]
        # Computed only if needed, as it walks through all callees.
        uses = uses_of(self.func) if repeated else {}
        for other, param in repeated:
            if (uses[param] | uses[other]) & Use.WRITE:
                name = self.buffers[param].name
                raise CallAlias(name, self.func.name, other.name, param.name, span=self.span).error()


def spliced(func: PrimFunc, site: CallSite) -> tuple[Stmt, ...]:
    """The statements of a call of `func`: run-time checks, then its body with new names."""
    call = _checked(func, site, splice=True)
    return (*call.stmts, *renewed(func.body, call.variables, call.buffers).stmts)


def called(func: PrimFunc, site: CallSite) -> KernelCall:
    """The statement that calls `func` as a function of its own."""
    call = _checked(func, site, splice=False)
    args = (BufferRef(call.buffers[p]) if isinstance(p, Buffer) else call.variables[p] for p in func.params)
    return KernelCall(func, tuple(args), span=site.span)


def _checked(func: PrimFunc, site: CallSite, *, splice: bool) -> _Call:
    params = {param.name: param for param in func.params}
    defaults = {each.name: number for each in func.params if (number := func.default_of(each)) is not None}
    values = bound(func.name, tuple(params), defaults, site)
    buffers = [value for value, _ in values.values() if isinstance(value, Buffer)]
    call = _Call(func, site.span, splice, _proofs(buffers))
    for name, (value, span) in values.items():
        param = params[name]
        if isinstance(param, Buffer):
            call.array(param, value, span)
        else:
            call.scalar(param, value, span)
    call.check_aliases()
    call.bind_dims()
    call.check_extents()
    return call


def _proofs(buffers: list[Buffer]) -> Extents:
    """The facts about the extents of these buffers, for proofs."""
    found = (each for buffer in buffers for each in walk(*buffer.shape))
    others = dict.fromkeys(each for each in found if isinstance(each, Var) and each.dim is None)
    return Extents(PrimFunc("arguments", (*buffers, *others), SeqStmt()))


def renewed(body: SeqStmt, variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer]) -> SeqStmt:
    """`body` with replacements substituted, and new objects for everything that it declares."""
    own: dict[Var, Var] = {}
    declared: dict[Buffer, None] = {}
    for node in walk(body):
        if isinstance(node, (For, Let, LetExpr)):
            own[node.var] = Var(node.var.name, node.var.dtype, node.var.dim)
        elif isinstance(node, (Allocate, View)):
            declared[node.buffer] = None
    all_variables = {**variables, **own}
    substitution = Substitution(all_variables, buffers)
    for each in declared:  # in program order, as a shape may load from a buffer declared before
        substitution.buffers[each] = replace(each, shape=substitution.shape(each))
    rules: dict[type[Node], Rule] = substitution.rules()
    for kind in (For, Let, LetExpr):
        rules[kind] = lambda node: node.replaced(var=own[node.var])
    return rewrite(body, rules)
