"""Builds the IR function of each operator call; equal calls share one function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields

from tirlite.diag import GraphMessage
from tirlite.graph.aot.laid_out import Filling, OperandLayout, lay_out
from tirlite.graph.aot.plain_dims import PlainDims
from tirlite.graph.expr import Call, Constant, Expr, Var as GraphVar
from tirlite.graph.fuse.finish import FusedStep, Operand, elements_of, finished, why_not
from tirlite.graph.fuse.groups import Group
from tirlite.graph.op import Attrs, Op, Sizes
from tirlite.graph.operators.convolution import Conv
from tirlite.graph.operators.pooling import Pool
from tirlite.graph.operators.quantization import CONV_BYTES
from tirlite.graph.operators.windows import pads_of
from tirlite.graph.program import Program
from tirlite.graph.types import TensorType, tensors
from tirlite.ir import Assert, Builder, PrimFunc, Stmt, TensorType as KernelType, Var, i64, statements
from tirlite.ir.rewrite import rewrite
from tirlite.ir.size import expr_of
from tirlite.kernels.operators import elementwise
from tirlite.record import record, replace
from tirlite.sizes import Dim, Poly, Size, dims_of


class NoKernelFor(GraphMessage):
    """An operator of a graph has no kernel.

    Example: `tl.graph.compile(f)`, where `f` calls an operator of your own.
    Fix: Compose it of operators that have kernels.
    """

    code = "operator-without-kernel"
    title = "operator `{op}` has no kernel"
    label = "called here"


# The most calls with functions of their own, whose faults name the call; further calls share one.
_MOST_TOLD = 256


class OperatorFunctions:
    """The functions built so far, by operator, types and attributes.

    `layouts` are the layout and the source of each constant that was laid out.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], PrimFunc] = {}
        self._groups: dict[tuple[object, ...], PrimFunc | None] = {}
        self._refused: dict[tuple[object, ...], str] = {}
        self._asserting: dict[PrimFunc, bool] = {}
        self._instead: dict[Call, Call] = {}
        self.layouts: dict[Constant, tuple[str, Constant]] = {}
        self._filling: list[Filling] = []
        self._told = 0

    def lay_out(self, made: Program, folded: Mapping[Expr, Constant], layouts: Mapping[str, OperandLayout]) -> None:
        """Replaces calls of a program by faster ones with constants laid out for them."""
        found = lay_out(made, folded, layouts)
        self._instead |= found.calls
        self.layouts |= found.constants
        self._filling.append(found.filling)

    def finish(self) -> None:
        """Waits until all constants are laid out."""
        while self._filling:
            self._filling.pop().finish()

    def of(self, call: Call) -> PrimFunc:
        """The function that computes a call, with its `operands` as parameters, then its results. Raises GraphError."""
        call = self._instead.get(call, call)
        return self._told_for(self._plain(call), call)

    def operands(self, call: Call) -> tuple[Expr, ...]:
        """The operands of a call's function: the call's own, with constants laid out for it."""
        return self._instead.get(call, call).args

    def why_not(self, call: Call) -> str:
        """Why a call cannot be the first of a group; "" where it can."""
        if isinstance(call.attrs, Sizes):
            return f"{call.op.name} is written element by element"
        call = self._instead.get(call, call)
        key = self._key(call)
        if key not in self._refused:
            self._refused[key] = why_not(self._plain(call))
        return self._refused[key]

    def has_group(self, group: Group, made: Program) -> bool:
        return self._of_group(group, made)[0] is not None

    def of_group(self, group: Group, made: Program) -> tuple[PrimFunc, list[Expr]]:
        """The function of a group, and its operands."""
        func, operands = self._of_group(group, made)
        assert func is not None
        first = self._instead.get(group.first, group.first)
        return self._told_for(func, first), [*first.args, *operands]

    def _of_group(self, group: Group, made: Program) -> tuple[PrimFunc | None, list[Expr]]:
        told, first = steps_of(group, made), self._instead.get(group.first, group.first)
        key = (self._key(first), told.key)
        if key not in self._groups:
            name = "_".join(call.op.name for call in (first, *group.calls[1:]))
            self._groups[key] = finished(self._plain(first), name, told.operands, told.steps)
        return self._groups[key], told.outside

    def _key(self, call: Call) -> tuple[object, ...]:
        return (call.op.name, tuple(arg.type for arg in call.args), call.attrs.bits)

    def _plain(self, call: Call) -> PrimFunc:
        """The function of a call, shared by all that are equal."""
        assert isinstance(call.op, Op)
        key = self._key(call)
        if key not in self._made:
            self._made[key] = self._make(call, call.op)
        return self._made[key]

    def _told_for(self, made: PrimFunc, call: Call) -> PrimFunc:
        """The function for a call; if it has asserts, one whose messages name the call."""
        if made not in self._asserting:
            self._asserting[made] = has_asserts(made)
        if not self._asserting[made] or self._told >= _MOST_TOLD:
            return made
        # One for each call, so that a fault names it.
        self._told += 1
        return told_for(made, call)

    def copy(self, of: TensorType) -> PrimFunc:
        key = ("copy", of)
        if key not in self._made:
            kind = _Own(of.shape).type(of)
            self._made[key] = elementwise.elementwise("identity", lambda x: x, kind, kind)
        return self._made[key]

    def _make(self, call: Call, op: Op) -> PrimFunc:
        kinds = [arg.tensor for arg in call.args], list(tensors(call.type))
        own = _Own(extent for part in kinds for of in part for extent in of.shape)
        given: list[KernelType | None] = [own.type(each) for each in kinds[0]]
        results = [own.type(each) for each in kinds[1]]
        lowering = op.lowering
        if lowering is None:
            raise NoKernelFor(op.name, span=call.span).error()
        if all(0 in each.shape for each in kinds[1]):
            return _empty(op.name, given, results)
        padded = own.padded(call)
        attrs = {
            each.name: own.value(getattr(padded, each.name), call)
            for each in fields(padded)
            if each.name not in lowering.said and each.name != "same"
        }
        absent = [None] * ((op.most or len(given)) - len(given))
        return lowering.make()(*lowering.first, *given, *absent, *results, **attrs)


class UnboundSize(GraphMessage):
    """An attribute of an operator depends on a dim that no extent of its operands and results tells.

    Example: `g.slice(x, [n], [n + 4])` of an `x` that is `f32[64]`.
    Fix: Hand over something that has the dim as an extent, or compute the operator's result in another way.
    """

    code = "operator-dim-unbound"
    title = "operator `{op}`: its attribute {size} depends on more than the extents of its operands and results"
    label = "called here"


class _Own:
    """The types and attributes of one operator as factories take them: over dims that its arguments bind."""

    def __init__(self, extents: Iterable[Size]) -> None:
        self._plain = PlainDims(extents)
        self._variables: dict[Dim, Var] = {}

    def type(self, of: TensorType) -> KernelType:
        return KernelType(of.dtype, tuple(self._expr(self._plain(extent)) for extent in of.shape))

    def padded(self, call: Call) -> Attrs:
        """The attributes of a call; automatic padding as sizes over dims that the arguments bind."""
        attrs = call.attrs
        if not isinstance(attrs, Conv | Pool) or not attrs.same:
            return attrs
        if isinstance(attrs, Pool):
            window = attrs.window
        else:
            window = call.args[2].shape[1:-1] if call.op is CONV_BYTES else call.args[1].shape[2:]
        extents = [self._plain(each) for each in call.args[0].shape[2:]]
        return replace(attrs, pads=pads_of(attrs, extents, [self._plain(each) for each in window]), same="")

    def value(self, value: object, call: Call) -> object:
        """An attribute: sizes as integers, or as expressions of dims."""
        if isinstance(value, tuple):
            return tuple(self.value(each, call) for each in value)
        if not isinstance(value, Poly):
            return value
        made = self._plain.told(value)
        if made is None:
            assert isinstance(call.op, Op)
            raise UnboundSize(call.op.name, str(value), span=call.span).error()
        return self._expr(made)

    def _expr(self, size: Size) -> object:
        if isinstance(size, int):
            return size
        for dim in dims_of(size):
            self._variables.setdefault(dim, Var(dim.name, i64, dim))
        return expr_of(size, self._variables)


def _empty(name: str, given: Iterable[KernelType | None], results: Iterable[KernelType]) -> PrimFunc:
    """The function of results without elements: kernels may divide by their extents."""
    b = Builder(name)
    for number, each in enumerate(given):
        if each is not None:
            b.param(f"x{number}", each)
    for number, each in enumerate(results):
        b.param(f"y{number}", each, out=True)
    return b.build()


def has_asserts(func: PrimFunc) -> bool:
    """Whether the function has asserts."""
    return any(isinstance(stmt, Assert) for stmt in statements(func.body))


def told_for(func: PrimFunc, call: Call) -> PrimFunc:
    """The function with asserts located at the call, which name it and the operand with indices."""
    subject = f"`{call.name}`, a `{func.name}`" if call.name else f"`{func.name}`"
    indices = [name for arg in call.args if _is_integer(arg) and (name := _name(arg))]
    where = f"{subject}{f', input `{indices[-1]}`' if indices else ''}: "

    def told(stmt: Assert) -> Stmt:
        # With values, a message has places for them in braces.
        front = where.replace("{", "{{").replace("}", "}}") if stmt.values else where
        return Assert(stmt.condition, front + stmt.message, stmt.values, span=call.span or stmt.span)

    body = rewrite(func.body, {Assert: told})
    return func.replaced(body=body)


def _is_integer(arg: Expr) -> bool:
    return hasattr(arg.type, "dtype") and arg.dtype.is_integer


def _name(arg: Expr) -> str:
    return arg.name if isinstance(arg, GraphVar | Call | Constant) else ""


_COMMUTE = ("add", "multiply")


@record(eq=False)
class GroupSteps:
    """The steps after a group's first call, the operands from outside, and a key that is equal for equal steps."""

    steps: tuple[FusedStep, ...]
    operands: tuple[Operand, ...]
    outside: list[Expr]
    key: tuple[object, ...]


def steps_of(group: Group, made: Program) -> GroupSteps:
    """The steps of a group. An outside operand is passed once for all steps that use it with the same axes."""
    values: dict[Expr, int] = {call: number for number, call in enumerate(group.calls)}
    places: dict[tuple[object, ...], int] = {}
    operands: list[Operand] = []
    outside: list[Expr] = []
    steps: list[FusedStep] = []
    for call in group.calls[1:]:
        of = elements_of(call)
        assert of is not None
        given: list[int] = []
        for arg, axes in zip(call.args, of.axes, strict=True):
            (part,) = made.parts[arg]
            if part.step in values:
                given.append(values[part.step])
                continue
            if (part, axes) not in places:
                places[part, axes] = len(operands)
                operands.append(Operand(arg.dtype, axes))
                outside.append(arg)
            given.append(~places[part, axes])
        if call.op.name in _COMMUTE:
            given.sort(reverse=True)  # so that a sum with what comes from outside is one, on whichever side that stands
        steps.append(FusedStep(of.formula, call.dtype, tuple(given)))
    told = zip(group.calls[1:], steps, strict=True)
    key = (
        tuple((call.op.name, call.attrs.bits, step.dtype, step.values) for call, step in told),
        tuple((each.dtype, each.axes) for each in operands),
    )
    return GroupSteps(tuple(steps), tuple(operands), outside, key)
