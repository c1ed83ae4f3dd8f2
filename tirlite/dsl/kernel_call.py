"""A call of one kernel by another in, the statements of the callee over the caller's buffers out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from tirlite.analysis import Extents
from tirlite.diag import Message, Span
from tirlite.dsl.arguments import bound
from tirlite.dsl.calls import CallSite
from tirlite.dsl.convert import stored
from tirlite.dsl.parameters import described
from tirlite.ir.dtype import i64
from tirlite.ir.expr import EQ, GE, LE, Buffer, Expr, FloatImm, FloorMod, IntImm, LetExpr, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.printer import text
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.stmt import Allocate, Assert, For, Let, SeqStmt, Stmt, Store, View
from tirlite.ir.substitute import Substitution, substitute
from tirlite.ir.walk import walk
from tirlite.sizes import Dim, Proof, Size, prove_divides, prove_eq, prove_le


class CallBuffer(Message):
    """An argument of a kernel that another kernel calls is not what the parameter takes.

    Example: `smooth(x, k)`, where `smooth` takes two arrays of f32 and `k` is a number.
    Fix: Give whole buffers, of the element type, rank and scope of the parameter.
    """

    code = "call-buffer"
    title = "`{parameter}` of {kernel} takes {wanted}, not {given}"

    parameter: str
    kernel: str
    wanted: str
    given: str


class CallShape(Message):
    """A buffer that is given to another kernel has a shape that the kernel does not take.

    Example: `add(x, y)`, where `add` takes two arrays of one length, and `x` has 4 elements and `y` 5.
    Fix: Give buffers whose shapes fit; where that is known only at run time, the call is checked there.
    """

    code = "call-shape"
    title = "axis {axis} of `{parameter}` of {kernel} takes {wanted}, not {given}"
    help = "{kernel} declares {declared}"

    parameter: str
    kernel: str
    axis: int
    wanted: str
    given: str
    declared: str


class CallAlias(Message):
    """One buffer is given to a kernel twice, which writes it.

    Example: `smooth(x, x)`, where `smooth` stores into its second parameter.
    Fix: Give a buffer of its own: allocate one, and copy.
    """

    code = "call-alias"
    title = "`{buffer}` is given to {kernel} as `{first}` and as `{second}`, and the kernel writes it"
    help = "parameters of a kernel do not overlap: give a buffer of its own"

    buffer: str
    kernel: str
    first: str
    second: str


@dataclass(slots=True)
class _Call:
    """One call on its way into the caller."""

    func: PrimFunc
    span: Span
    proofs: Extents
    variables: dict[Var, Expr] = field(default_factory=dict)
    buffers: dict[Buffer, Buffer] = field(default_factory=dict)
    stmts: list[Stmt] = field(default_factory=list)

    def scalar(self, param: Var, value: object, span: Span) -> None:
        made = stored(value, param.dtype, param.name, span)
        if not isinstance(made, (Var, IntImm, FloatImm)):
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
        if not fits or (param.volatile and not value.volatile):
            raise CallBuffer(param.name, self.func.name, wanted, given, span=span).error()
        self.buffers[param] = value

    def bind_dims(self) -> None:
        """Each dim is the extent of the first axis that is the dim alone."""
        dims = set(self.func.dims)
        for param, given in self.buffers.items():
            for wanted, extent in zip(param.shape, given.shape, strict=True):
                if isinstance(wanted, Var) and wanted in dims:
                    self.variables.setdefault(wanted, extent)

    def check_shapes(self) -> None:
        for param, given in self.buffers.items():
            for axis, (declared, extent) in enumerate(zip(param.shape, given.shape, strict=True)):
                wanted = substitute(declared, self.variables)
                if wanted is extent:
                    continue
                a, b = self._size(wanted), self._size(extent)
                proof = prove_eq(a, b) if a is not None and b is not None else Proof.UNKNOWN
                what = f"{text(wanted)} by the other arguments" if wanted is not declared else text(wanted)
                self._demand(proof, EQ(extent, wanted), param, axis, what)

    def check_facts(self) -> None:
        """What was declared of a dim holds of what it is bound to; that it is at least 1 is no more than a guess."""
        for dim in self.func.dims:
            facts, extent = dim.dim, self.variables[dim]
            if facts is None:
                continue
            size = self._size(extent)
            for proof, condition, what in _demands(facts, extent, size):
                self._demand(proof, condition, *self._source(dim), what)

    def _source(self, dim: Var) -> tuple[Buffer, int]:
        """The parameter and the axis that a dim is taken from."""
        return next((each, each.shape.index(dim)) for each in self.buffers if dim in each.shape)

    def _size(self, extent: Expr) -> Size | None:
        return self.proofs.size(extent)

    def _demand(self, proof: Proof, condition: Expr, param: Buffer, axis: int, wanted: str) -> None:
        given = self.buffers[param]
        extent = text(given.shape[axis])
        if proof is Proof.NO:
            declared = f"{param.name}: tl.{param.dtype}[{', '.join(text(each) for each in param.shape)}]"
            name = self.func.name
            raise CallShape(param.name, name, axis, wanted, extent, declared, span=self.span).error()
        if proof is Proof.UNKNOWN:
            message = f"axis {axis} of `{param.name}` of {self.func.name} takes {wanted}, not {extent}"
            self.stmts.append(Assert(condition, message, span=self.span))

    def check_aliases(self) -> None:
        written = _written(self.func)
        first: dict[Buffer, Buffer] = {}
        for param, given in self.buffers.items():
            other = first.setdefault(given, param)
            if other is not param and (param in written or other in written):
                raise CallAlias(given.name, self.func.name, other.name, param.name, span=self.span).error()


def _demands(facts: Dim, extent: Expr, size: Size | None) -> Iterable[tuple[Proof, Expr, str]]:
    """For each fact of a dim whether it holds of `size`, the condition that says so, and how a message tells it."""
    unknown = Proof.UNKNOWN
    if facts.min > 1:
        proof = prove_le(facts.min, size) if size is not None else unknown
        yield proof, GE(extent, IntImm(i64, facts.min)), f"at least {facts.min}"
    if facts.max is not None:
        proof = prove_le(size, facts.max) if size is not None else unknown
        yield proof, LE(extent, IntImm(i64, facts.max)), f"at most {facts.max}"
    if facts.multiple_of > 1:
        proof = prove_divides(facts.multiple_of, size) if size is not None else unknown
        remainder = FloorMod(extent, IntImm(i64, facts.multiple_of))
        yield proof, EQ(remainder, IntImm(i64, 0)), f"a multiple of {facts.multiple_of}"


def kernel_call(func: PrimFunc, site: CallSite) -> tuple[Stmt, ...]:
    """The statements that calling `func` comes to: what is checked at run time, then its body, all its names new."""
    params = {param.name: param for param in func.params}
    values = bound(func.name, tuple(params), {}, site)
    buffers = [value for value, _ in values.values() if isinstance(value, Buffer)]
    call = _Call(func, site.span, _proofs(buffers))
    for name, (value, span) in values.items():
        param = params[name]
        if isinstance(param, Buffer):
            call.array(param, value, span)
        else:
            call.scalar(param, value, span)
    call.check_aliases()
    call.bind_dims()
    call.check_shapes()
    call.check_facts()
    return (*call.stmts, *renewed(func.body, call.variables, call.buffers).stmts)


def _proofs(buffers: list[Buffer]) -> Extents:
    """What is known of the extents of these buffers."""
    found = (each for buffer in buffers for extent in buffer.shape for each in walk(extent))
    others = dict.fromkeys(each for each in found if isinstance(each, Var) and each.dim is None)
    return Extents(PrimFunc("arguments", (*buffers, *others), SeqStmt()))


def _written(func: PrimFunc) -> set[Buffer]:
    """The parameters that a function stores to, itself or through views."""
    sources = {node.buffer: node.source for node in walk(func.body) if isinstance(node, View)}
    found = set()
    for node in walk(func.body):
        if isinstance(node, Store):
            buffer = node.buffer
            while buffer in sources:
                buffer = sources[buffer]
            found.add(buffer)
    return found


def renewed(body: SeqStmt, variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer]) -> SeqStmt:
    """`body` with replacements put in, and everything that it declares declared anew."""
    own: dict[Var, Var] = {}
    declared: dict[Buffer, None] = {}
    for node in walk(body):
        if isinstance(node, (For, Let, LetExpr)):
            own[node.var] = replace_var(node.var)
        elif isinstance(node, (Allocate, View)):
            declared[node.buffer] = None
    all_variables = {**variables, **own}
    new = {each: replace(each, shape=tuple(substitute(e, all_variables) for e in each.shape)) for each in declared}
    rules: dict[type[Node], Rule] = Substitution(all_variables, {**buffers, **new}).rules()
    for kind in (For, Let, LetExpr):
        rules[kind] = lambda node: node.replaced(var=own[node.var])
    return cast(SeqStmt, rewrite(body, rules))


def replace_var(var: Var) -> Var:
    """Another variable of the same name."""
    return Var(var.name, var.dtype, var.dim)
