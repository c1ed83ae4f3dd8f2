"""Loops: functions of one step, which a call runs again and again, on what the step before left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from tirlite.diag import GraphError, Message
from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, Tuple, TupleGetItem, Var, operands_first
from tirlite.graph.op import Op
from tirlite.graph.run_dims import RunDim, run_dim, run_dims
from tirlite.graph.types import TensorType, TupleType, Type, substituted, tensors
from tirlite.ir import i64
from tirlite.record import record
from tirlite.sizes import Dim, Size, as_size, dims_of, substitute
from tirlite.sizes.poly import atom_of


class LoopSteps(Message):
    """The steps of a loop in a graph do not give what the next ones take, or what is to be joined.

    Example: `g.loop(step, n, [x])`, where `x` is `f32[n]` and a step makes `f32[2*n]` of it.
    Fix: Carry values of one type; make results of steps of one shape, and say how many steps there are at most.
    """

    code = "loop-steps"
    raises = GraphError
    title = "a step of `{loop}` {why}"
    help = "what is carried keeps its type from step to step, and results of all steps have one shape"

    loop: str
    why: str


@record(eq=False, repr=False)
class LoopFunction(FunctionNode):
    """A step: of its number, a limit, whether to go on, `carried` values, and others that stay as they are.

    The body is a tuple: whether to go on, the carried values behind the step, and results of the step. A call runs it
    from the number given on, while that is below the limit and the last step said so. It gives the number that it came
    to, the carried values, and for each result those of all steps, along a new first axis with room for `most`.
    """

    carried: int = field(default=0, kw_only=True)
    most: Size = field(default=0, kw_only=True)

    @property
    def result(self) -> Type:
        """The type of what a call gives."""
        _, *others = self.parts
        rows = [TensorType((self.most, *each.shape), each.dtype) for each in others[self.carried :]]
        return TupleType((TensorType((), i64), *others[: self.carried], *rows))

    @property
    def parts(self) -> tuple[TensorType, ...]:
        """The types of what a step gives."""
        return tensors(self.body.type)

    @property
    def step(self) -> FunctionNode:
        """One step, as a function like any other."""
        return FunctionNode(f"{self.name}_step", self.params, self.body, span=self.span)


@record(eq=False)
class Closed:
    """A body over parameters alone, and the values from outside that those behind the given ones stand for."""

    params: tuple[Var, ...]
    body: Tuple
    outside: tuple[Expr, ...]
    extents: Mapping[Dim, Size]
    most: Size

    def untold(self) -> tuple[Size, ...]:
        """The dims that the body, or the room for its results, mentions, and that no parameter tells."""
        told = {dim for param in self.params for size in _sizes(param) for dim in atom_of(size, Dim)}
        sizes = [substitute(self.most, self.extents)]
        for expr in operands_first(self.body):
            sizes += _sizes(expr)
        sizes += [size for dim in run_dims(sizes) for size in (dim.least, dim.most)]
        dims = dict.fromkeys(dim for size in sizes for dim in dims_of(size) if not isinstance(dim, RunDim))
        return tuple(dim + 0 for dim in dims if dim not in told)

    def outer(self, extent: Size) -> Size:
        """What an extent inside is outside."""
        back = {dim: as_size(outer) for outer, inner in self.extents.items() for dim in atom_of(inner, Dim)}
        return substitute(extent, back)


def closed(params: Sequence[Var], results: Sequence[Expr], most: Size) -> Closed:
    """The results as a body, whatever they use from outside a parameter; constants stay inside.

    Extents that a run finds outside are dims inside: what comes in tells them.
    """
    closing = _Closing(params, results, most)
    body = Tuple(tuple(closing.value(each) for each in results))
    return Closed((*closing.params, *closing.outside.values()), body, tuple(closing.outside), closing.extents, most)


class _Closing:
    def __init__(self, params: Sequence[Var], results: Sequence[Expr], most: Size) -> None:
        order = operands_first(Tuple(tuple(results)))
        self.inside: set[Expr] = set(params)
        for expr in order:
            if any(each in self.inside for each in expr.operands):
                self.inside.add(expr)
        self.extents: dict[Dim, Size] = {}
        self.outside: dict[Expr, Var] = {}
        self.made: dict[Expr, Expr] = {}
        self._name_extents([*params, *order], most)
        self.params = [self._param(each, each.name) for each in params]
        self.made.update(zip(params, self.params, strict=True))
        for expr in order:
            if expr in self.inside and expr not in self.made:
                self._find_extents(expr)
                self.made[expr] = self._again(expr)

    def value(self, expr: Expr) -> Expr:
        """What an expression is inside."""
        if expr in self.made or isinstance(expr, Constant):
            return self.made.get(expr, expr)
        if expr not in self.outside:
            self.outside[expr] = self._param(expr, f"outside{len(self.outside)}")
        return self.outside[expr]

    def _param(self, expr: Expr, name: str) -> Var:
        return Var(name, substituted(expr.type, self.extents), span=expr.span, device=expr.device)

    def _name_extents(self, exprs: Sequence[Expr], most: Size) -> None:
        sizes = [most, *(size for expr in exprs for size in _sizes(expr))]
        for dim in run_dims(sizes):
            if dim.source not in self.inside:
                self.extents[dim] = Dim(f"{dim.name}_{len(self.extents)}", 0, dim.max) + 0

    def _find_extents(self, expr: Expr) -> None:
        """Lets extents that a step finds have the values inside."""
        for dim in run_dims(_sizes(expr)):
            if dim not in self.extents:
                least, most = (substitute(size, self.extents) for size in (dim.least, dim.most))
                self.extents[dim] = run_dim(dim.name, self.value(dim.source), most, dim.origin, least) + 0

    def _again(self, expr: Expr) -> Expr:
        """The same expression of what its operands are inside."""
        if isinstance(expr, Call):
            args = tuple(map(self.value, expr.args))
            return expr.replaced(args=args, attrs=expr.attrs.substituted(self.extents))
        if isinstance(expr, If):
            condition, then, other = map(self.value, (expr.condition, expr.then, expr.other))
            given = None if expr.given is None else substituted(expr.given, self.extents)
            return expr.replaced(condition=condition, then=then, other=other, given=given)
        if isinstance(expr, Tuple):
            return expr.replaced(fields=tuple(map(self.value, expr.fields)))
        assert isinstance(expr, TupleGetItem)
        return expr.replaced(value=self.value(expr.value))


def _sizes(expr: Expr) -> list[Size]:
    found = [extent for of in tensors(expr.type) for extent in of.shape]
    if isinstance(expr, Call) and isinstance(expr.op, Op):
        found += expr.attrs.symbolic_sizes()
    return found
