"""Keeps the values of a graph that is being built in step with what is demanded of their extents.

Where an operator demands that two extents are equal, one gives way to the other. Values that were made before still
have it in their types: they are seen through `assume`, which costs nothing, and made anew once the graph is finished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tirlite.diag import Span
from tirlite.graph.demands import Demands
from tirlite.graph.expr import Call, Expr, If, Tuple, Var, operands_first, rebuilt
from tirlite.graph.extents import Shape
from tirlite.graph.op import OPS, Attrs, Op, Reshape, Site, Sizes
from tirlite.graph.run_dims import RunDim, mapped_run_dim, run_dims
from tirlite.graph.types import TensorType, tensors
from tirlite.sizes import Dim, Proof, Size, prove_eq, substitute
from tirlite.sizes.poly import atom_of


class Renewal:
    """What values made before stand for by now."""

    def __init__(self, demands: Demands) -> None:
        self.demands = demands
        self._known: dict[Expr, Expr] = {}
        self._changes = (0, 0)
        self._extents: dict[RunDim, Size] = {}

    def value(self, value: Expr, name: str = "", span: Span | None = None) -> Expr:
        """The value with its extents as they are said by now; a check that it has these is of the node that uses it."""
        if not self.demands.has_changed or not isinstance(value.type, TensorType):
            return value
        if self._changes != self.demands.changes:
            self._changes = self.demands.changes
            self._known.clear()
        if value not in self._known:
            self._known[value] = self._renewed(value, self.shape(value.type.shape), name, span)
        return self._known[value]

    def shape(self, shape: Shape) -> Shape:
        """Extents as they are said by now."""
        return tuple(map(self._now, shape))

    def operands(
        self, op: Op, args: tuple[Expr, ...], attrs: Attrs, name: str, span: Span | None
    ) -> tuple[tuple[Expr, ...], Attrs]:
        """Operands and attributes of a call, renewed once what the operator demands of them is noted."""
        args, attrs = self._operands(args, attrs, name, span)
        before, self.demands.found_equal = self.demands.changes, []
        try:
            op.infer(Site(op.name, tuple(arg.type for arg in args), attrs, name, span, self.demands))
            pairs = self.demands.found_equal
        finally:
            self.demands.found_equal = None
        if self.demands.changes != before:
            args, attrs = self._operands(args, attrs, name, span)
        return tuple(_seen_as(arg, pairs, name, span) for arg in args) if pairs else args, attrs

    def is_open(self, a: Size, b: Size, asked_by: str, span: Span | None) -> bool:
        """Whether it depends on dims that two sizes are equal, and cannot be said by one of them alone."""
        a, b = self.demands.now(a), self.demands.now(b)
        return not self.demands.ask(a, b, asked_by, span) and prove_eq(a, b) is Proof.UNKNOWN

    def branches(self, then: Expr, other: Expr, name: str, span: Span | None) -> tuple[Expr, Expr]:
        """The values of two branches, which must have the same type."""
        site = Site("if", (then.type, other.type), Attrs(), name, span, self.demands)
        for a, b in zip(tensors(then.type), tensors(other.type), strict=False):
            if a.rank == b.rank:
                all(map(site.is_equal, a.shape, b.shape))
        return self.value(then), self.value(other)

    def settled(self, params: Sequence[Var], values: Sequence[Expr]) -> tuple[list[Var], list[Expr]]:
        """Parameters and values of a finished graph by the extents that are left, each expression made once."""
        if not self.demands.has_changed:
            return [*params], [*values]
        renewed = [replace(param, given=self._type(param)) for param in params]
        made: dict[Expr, Expr] = dict(zip(params, renewed, strict=True))
        for expr in operands_first(Tuple(tuple(values))):
            if expr not in made:
                self._renew_extents(expr, made)
                made[expr] = self._again(expr, made)
        return renewed, [self.value(made[value]) for value in values]

    def _renew_extents(self, expr: Expr, made: Mapping[Expr, Expr]) -> None:
        """Lets extents that a run finds have the values that are made anew."""
        if not isinstance(expr, Call | If) or not expr.sources:
            return
        for dim in run_dims(expr.sizes):
            if dim not in self._extents:
                self._extents[dim] = mapped_run_dim(dim, made[dim.source], self._now) + 0

    def _now(self, size: Size) -> Size:
        """The size as it is said by now."""
        now = self.demands.now(size)
        return substitute(now, self._extents) if self._extents else now

    def _operands(
        self, args: tuple[Expr, ...], attrs: Attrs, name: str, span: Span | None
    ) -> tuple[tuple[Expr, ...], Attrs]:
        if not self.demands.has_changed:
            return args, attrs
        return tuple(self.value(arg, name, span) for arg in args), attrs.mapped(self._now)

    def _type(self, param: Var) -> TensorType:
        return TensorType(self.shape(param.tensor.shape), param.dtype)

    def _renewed(self, value: Expr, shape: Shape, name: str, span: Span | None) -> Expr:
        if isinstance(value, Call) and isinstance(value.attrs, Sizes):
            return value.replaced(attrs=value.attrs.mapped(self._now))
        if shape == value.shape:
            return value
        where = span or value.span
        return Call(OPS["assume"], (value,), Reshape(shape), name=name, span=where, device=value.device)

    def _again(self, expr: Expr, made: Mapping[Expr, Expr]) -> Expr:
        """The same expression of operands that are made anew, and of sizes as they are said by now."""
        if isinstance(expr, If) or (isinstance(expr, Call) and isinstance(expr.op, Op)):
            again = rebuilt(expr, lambda each: self.value(made[each]), self._now)
        else:
            again = rebuilt(expr, made.__getitem__)
        if isinstance(again, Call) and again.op is OPS["assume"] and again.shape == again.args[0].shape:
            return again.args[0]
        return again


def _seen_as(arg: Expr, pairs: Sequence[tuple[Size, Size]], name: str, span: Span | None) -> Expr:
    """An operand with extents that must be equal to others in the place of those: a run in which they differ stops."""
    for first, second in pairs:
        # What is known before a run stays, and of what is, a dim by itself.
        stays = bool(run_dims([second])) or (bool(atom_of(first, Dim)) and not run_dims([first]))
        old, new = (second, first) if stays else (first, second)
        if isinstance(arg.type, TensorType) and old in arg.shape:
            shape = tuple(new if extent == old else extent for extent in arg.shape)
            arg = Call(OPS["assume"], (arg,), Reshape(shape), name=name, span=span, device=arg.device)
    return arg
