"""Translates assignments in Python's syntax tree to stores, lets and declarations."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tirlite.diag import KernelError, Message, Span
from tirlite.dsl.convert import LossyStore, is_literal, number, stored, together
from tirlite.dsl.expression import Expressions
from tirlite.dsl.local_names import Home, LocalNames, Use, names_in
from tirlite.dsl.operators import BINARY, binary
from tirlite.dsl.parameters import checked, described
from tirlite.dsl.scope import Cell, CellTypes, Scope
from tirlite.dsl.syntax import NotInKernels, refusal
from tirlite.dsl.vocabulary import CallSite
from tirlite.ir.dtype import DType, f64
from tirlite.ir.expr import Buffer, Expr, FloatImm, IntImm, Load, Max, Min, Select, Var
from tirlite.ir.stmt import Allocate, Let, Store

# The description of an open loop's variable in messages.
LOOP_VARIABLE = "the variable of this loop"


class FixedName(Message):
    """A name is assigned that has one meaning throughout: a parameter, a dim, the variable of an open loop.

    Example: `for i in range(n): i = i + 1`.
    Fix: Assign to another name; a `while` loop has a counter of its own.
    """

    title = "`{name}` is {what}, and cannot be assigned"
    help = "{advice}"


class MixedName(Message):
    """One name is used for things of different kinds.

    Example: `t = 0.0`, and further down `t = tl.alloc(tl.f32[n])`.
    """

    title = "`{name}` is {one} here and {other} elsewhere in this kernel"
    help = "give one of them another name"


class SecondName(Message):
    """Something that is not a number is given another name.

    Example: `row = x`, where `x` is a buffer.
    Fix: Use the buffer by its own name, or make a view of it: `row = tl.view(x, tl.f32[m])`.
    """

    title = "{given} cannot be given the name `{name}`"
    help = "{advice}"


class NotAssignable(Message):
    """Something is assigned that is not an element of a buffer.

    Example: `x.shape = 4`.
    """

    title = "this cannot be assigned"
    help = "assign to a name, or to an element of a buffer: `x[i, j] = ...`"


class BadLocalType(Message):
    """The annotation of a local name is not a scalar type.

    Example: `total: "float" = 0`.
    Fix: Write a scalar type, as in `total: tl.f32 = 0`; allocate arrays with `tl.alloc`.
    """

    title = "`{name}` is annotated with {given}"
    help = (
        "a local scalar has a scalar type, as in `{name}: tl.f32 = 0`; an array is allocated: `{name} = tl.alloc(...)`"
    )


class Assignments:
    """Translates assignments, and checks which names may be assigned."""

    def __init__(self, expressions: Expressions, scope: Scope, names: LocalNames, types: CellTypes) -> None:
        self._expressions = expressions
        self._scope = scope
        self._names = names
        self._types = types
        self._fixed: dict[str, str] = {}

    def fix(self, name: str, what: str) -> None:
        """Forbids assignments to `name` from here on; `what` describes it."""
        self._fixed[name] = what

    def release(self, name: str) -> None:
        self._fixed.pop(name, None)

    def is_free(self, name: str) -> bool:
        """Whether `name` may be assigned at all."""
        return name not in self._fixed

    def check(self, name: str, use: Use, span: Span) -> None:
        """Raises KernelError if `name` may not be bound as `use` here."""
        what = self._fixed.get(name)
        if what is not None:
            advice = f"name an element: {name}[...]" if what == "an array parameter" else "take another name"
            if what == LOOP_VARIABLE:
                advice += "; a loop that sets its own steps is a `while` with a counter"
            raise FixedName(name, what, advice, span=span).error()
        kind = self._names.kinds.get(name, use)
        if kind is not use:
            raise MixedName(name, use.value, kind.value, span=span).error()

    def assign(self, stmt: ast.Assign) -> None:
        """`target = value`"""
        target = stmt.targets[0]
        if len(stmt.targets) > 1 or isinstance(target, (ast.Tuple, ast.List)):
            self._to_several(stmt)
        elif isinstance(target, ast.Name):
            self._to_name(target.id, stmt, stmt.value, None)
        else:
            value = self._expressions.value(stmt.value, alone=True)
            self._to_element(target, value, self._span(stmt.value), self._span(stmt))

    def _to_several(self, stmt: ast.Assign) -> None:
        """`a = b = v`, `a, b = b, a`, `a, x[i] = f(...)`: all values are computed before the first is assigned."""
        span = self._span(stmt.value)
        counts = [len(each.elts) for each in stmt.targets if isinstance(each, (ast.Tuple, ast.List))]
        for name in (name for each in stmt.targets for name in names_in(each)):
            self.check(name.id, Use.SCALAR, self._span(name))
        values = self._several(stmt.value, counts[0], span) if counts else [self._expressions.value(stmt.value)]
        held = [self._held(self._typed("...", each, None, span)) for each in values]
        for target in stmt.targets:
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            if len(parts) != len(held) or any(isinstance(each, (ast.Tuple, ast.List, ast.Starred)) for each in parts):
                instead = "write as many names or elements on the left as there are values on the right"
                raise NotInKernels("this assignment", instead, span=self._span(stmt)).error()
            for part, value in zip(parts, held, strict=True):
                if isinstance(part, ast.Name):
                    self._bind(part.id, stmt, value, span, self._span(stmt))
                else:
                    self._to_element(part, value, span, self._span(stmt))

    def _several(self, node: ast.expr, count: int, span: Span) -> Sequence[object]:
        """The values of a tuple, or of a call with several results."""
        from tirlite.dsl.static import unpacked

        if isinstance(node, (ast.Tuple, ast.List)):
            return unpacked(tuple(self._expressions.value(each, alone=True) for each in node.elts), count, span)
        site = self._expressions.named_call(("argmax", "argmin"), node)
        if site is not None and isinstance(node, ast.Call):
            return unpacked(pair_of(node, site, self._expressions), count, span)
        return unpacked(self._expressions.value(node, alone=True), count, span)

    def _held(self, value: object) -> object:
        """`value` bound to a variable, unless it is immutable anyway."""
        if not isinstance(value, Expr) or isinstance(value, (Var, IntImm, FloatImm)) or value.dtype.is_handle:
            return value
        var = Var("value", value.dtype)
        self._scope.add(Let(var, value))
        return var

    def _to_element(self, target: ast.expr, value: object, value_span: Span, span: Span) -> None:
        element = self._element(target)
        self._store(element, value, element.buffer.name, value_span, span)

    def annotated(self, stmt: ast.AnnAssign) -> None:
        """`name: type = value`"""
        if not isinstance(stmt.target, ast.Name):
            raise NotAssignable(span=self._span(stmt.target)).error()
        if stmt.value is None:
            what = "an annotation without a value"
            raise NotInKernels(what, f"give it a value: {stmt.target.id}: tl.f32 = 0", span=self._span(stmt)).error()
        kind = self._expressions.value(stmt.annotation)
        if not isinstance(kind, DType):
            raise BadLocalType(stmt.target.id, described(kind), span=self._span(stmt.annotation)).error()
        self._to_name(stmt.target.id, stmt, stmt.value, checked(kind, self._span(stmt.annotation)))

    def update(self, stmt: ast.AugAssign) -> None:
        """`target += value` and the like."""
        operator = BINARY.get(type(stmt.op))
        if operator is None:
            raise refusal(stmt.op, self._span(stmt))
        spans = (self._span(stmt.target), self._span(stmt.value))
        target: object
        if isinstance(stmt.target, ast.Name):
            target = self._cell_to_update(stmt.target.id, spans[0])
            name = stmt.target.id
        else:
            target = self._element(stmt.target)
            name = target.buffer.name
        operand = self._expressions.value(stmt.value)
        value = self._expressions.with_divisor(binary(operator, target, operand, spans), spans[1])
        if operator.sign == "/" and isinstance(target, Load) and target.dtype.is_integer:
            advice = f"`/` gives a float: write `//=` to round down, or tl.{target.dtype}(...) of the quotient"
            raise LossyStore(name, f64, target.dtype, advice, span=spans[1]).error()
        wish = operand.dtype if isinstance(operand, Expr) else None
        cell = self._settled(name, value) if isinstance(stmt.target, ast.Name) else None
        element = Load(cell.buffer, ()) if cell is not None else target
        assert isinstance(element, Load)
        self._store(element, value, name, spans[1], self._span(stmt), wish)

    def _cell_to_update(self, name: str, span: Span) -> object:
        self.check(name, Use.SCALAR, span)
        if name not in self._names.kinds:
            raise self._scope.unassigned(name, span)
        return self._scope.read(name, span)

    def _element(self, target: ast.expr) -> Load:
        if not isinstance(target, ast.Subscript):
            raise NotAssignable(span=self._span(target)).error()
        element = self._expressions.value(target)
        if not isinstance(element, Load):
            raise NotAssignable(span=self._span(target)).error()
        return element

    def _store(
        self, element: Load, value: object, name: str, value_span: Span, span: Span, wish: DType | None = None
    ) -> None:
        """Stores `value`; `wish` is the type that a scalar would need to hold it, if not the value's own."""
        try:
            made = stored(value, element.dtype, name, value_span)
        except KernelError as error:
            if self._scope.cell(name) is None:
                raise
            raise _about_first_type(error, wish) from None
        self._scope.add(Store(element.buffer, element.indices, made, span=span))

    def _to_name(self, name: str, stmt: ast.stmt, value: ast.expr, dtype: DType | None) -> None:
        span = self._span(stmt)
        site = self._expressions.declaration(value)
        self.check(name, Use.BUFFER if site else Use.SCALAR, self._span(stmt))
        if site is not None:
            self._declare(name, site, span)
            return
        given = self._expressions.value(value, alone=True)
        if self._expressions.is_static(value) and self._names.homes[name, stmt].is_let and dtype is None:
            self._scope.bind(name, given, span)
        else:
            self._bind(name, stmt, self._typed(name, given, dtype, self._span(value)), self._span(value), span)

    def _bind(self, name: str, stmt: ast.stmt, value: object, value_span: Span, span: Span) -> None:
        home = self._names.homes[name, stmt]
        if not home.is_let:
            self._to_cell(name, value, home, stmt, value_span)
        elif is_literal(value):
            # The name stands for the literal, which stays weakly typed.
            self._scope.bind(name, value, span)
        else:
            expr = value if isinstance(value, Expr) else number(value, value_span)
            var = Var(name, expr.dtype)
            self._scope.add(Let(var, expr, span=span))
            self._scope.bind(name, var, span)

    def _typed(self, name: str, value: object, dtype: DType | None, span: Span) -> object:
        """`value`, if it is a number; cast to `dtype`, if given."""
        if isinstance(value, Buffer):
            raise SecondName(
                described(value), name, f"use `{value.name}`, or tl.view for another shape", span=span
            ).error()
        if not isinstance(value, Expr) and not is_literal(value):
            advice = "a local name stands for a number or a buffer"
            if isinstance(value, tuple):
                advice = f"give each of its {len(value)} parts a name: `{name}, ... = ...`"
            raise SecondName(described(value), name, advice, span=span).error()
        return value if dtype is None else stored(value, dtype, name, span)

    def _to_cell(self, name: str, value: object, home: Home, stmt: ast.stmt, value_span: Span) -> None:
        span = self._span(stmt)
        cell = self._settled(name, value)
        if cell is None:
            if isinstance(value, (bool, int, float)):
                cell = self._types.begin(name, value, stmt)
            else:
                cell = Cell(Buffer(name, number(value, value_span).dtype, (), "local"))
            self._scope.bind_cell(name, cell, home.block, Allocate(cell.buffer, span=span), span)
        self._store(Load(cell.buffer, ()), value, name, value_span, span)
        self._scope.assigned([name])

    def _settled(self, name: str, value: object) -> Cell | None:
        """The declared cell called `name`; its type is decided now if `value` is the first with a type."""
        cell = self._scope.cell(name)
        if cell is not None and cell.placeholder is not None and isinstance(value, Expr):
            cell = self._types.settle(cell, value.dtype)
            self._scope.settle(name, cell)
        return cell

    def _declare(self, name: str, site: CallSite, span: Span) -> None:
        from tirlite.dsl.declarations import allocation, view

        made = allocation(name, site, span) if site.word.name == "alloc" else view(name, site, span)
        self._scope.add(made)
        self._scope.bind(name, made.buffer, span)

    def _span(self, node: ast.AST) -> Span:
        return self._expressions.span(node)


def _about_first_type(error: KernelError, wish: DType | None) -> KernelError:
    """The same error, with advice for a scalar whose type came from its first assignment."""
    (message,) = error.messages
    if not isinstance(message, LossyStore):
        return error
    name, wanted = message.name, wish if wish is not None and wish.is_float else message.source
    advice = f"{message.advice}; or give `{name}` its type where it is first assigned: `{name}: tl.{wanted} = ...`"
    return KernelError(message.replaced(advice=advice))


class BadPair(Message):
    """`tl.argmax` or `tl.argmin` is given something other than two pairs of a value and its place.

    Example: `top, at = tl.argmax(x[i], i)`.
    Fix: Give the pair so far and the new one: `top, at = tl.argmax((top, at), (x[i], i))`.
    """

    title = "tl.{name} takes two pairs of a value and its place, and is given {given}"
    help = "write `top, at = tl.{name}((top, at), (x[i], i))`"


def pair_of(node: ast.Call, name: str, expressions: Expressions) -> tuple[Expr, Expr]:
    """The value and the place of the pair that wins."""
    from tirlite.analysis.loops.reductions import comes_first

    span = expressions.span(node)
    pairs = [arg.elts for arg in node.args if isinstance(arg, ast.Tuple) and len(arg.elts) == 2]
    if len(pairs) != 2 or len(node.args) != 2 or node.keywords:
        raise BadPair(name, f"`{expressions.origin.text(node)}`", span=span).error()
    (best, at), (value, place) = ([expressions.value(part) for part in pair] for pair in pairs)
    (_, _), (value_span, place_span) = ([expressions.span(part) for part in pair] for pair in pairs)
    best, value = together((best, value), (value_span, value_span))
    at, place = together((at, place), (place_span, place_span))
    if not at.dtype.is_integer or value.dtype.is_bool:
        raise BadPair(name, described(at if not at.dtype.is_integer else value), span=span).error()
    takes = comes_first(Max if name == "argmax" else Min, value, place, best, at)
    return Select(takes, value, best), Select(takes, place, at)
