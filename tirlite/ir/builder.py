"""Builds a validated function from calls in program order, to write IR by hand.

b = Builder("scale")
x, y = b.param("x", f32[n]), b.param("y", f32[n], out=True)
with b.for_("i", 0, n) as i:
    b.store(y, i, x[i] * 2)
func = b.build()
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Generic, TypeVar, overload

from tirlite.diag import Message, Source, Span, TirliteError
from tirlite.ir.dtype import DType, TensorType, TypeExtent, i64
from tirlite.ir.expr import Buffer, Expr, ExprLike, Load, Var, as_expr, widened
from tirlite.ir.func import PrimFunc, with_one_dim_each
from tirlite.ir.size import expr_over_dims
from tirlite.ir.stmt import (
    Allocate,
    Assert,
    AttrKey,
    AttrStmt,
    AttrValue,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    SeqStmt,
    Stmt,
    Store,
    View,
    While,
)
from tirlite.ir.validate import validate
from tirlite.show import shown
from tirlite.sizes import Dim, Poly

T = TypeVar("T")

_TENSOR = "a type such as f32[n]"


class BuilderArgument(Message):
    """A method of the builder is given an argument of a kind that it does not take.

    Example: `b.store("y", 0, 1)`.
    Fix: Give what the message asks for: here the buffer itself, `y = b.param("y", f32[n])`.
    """

    title = "`{parameter}` of {method}() takes {wanted}, and is given {given}"


class ElseWithoutIf(Message):
    """The builder was asked for an `else` where no `if` has just ended.

    Example: `with b.else_():` after a loop.
    """

    title = "else_() does not follow an if_()"
    help = "write `with b.else_():` right after the block of `with b.if_(...):`"


class OpenBlock(Message):
    """The builder was asked for the function while blocks are still open.

    Example: `b.build()` inside of `with b.for_("i", n):`.
    """

    title = "build() is called inside {count} open blocks"
    help = "call it after the `with` statements"


class WithBlock(Generic[T]):
    """The body of a composite statement, for `with`; the statement is added when the block ends."""

    def __init__(self, builder: Builder, finish: Callable[[SeqStmt], Stmt], name: T) -> None:
        self._builder = builder
        self._finish = finish
        self._name = name

    def __enter__(self) -> T:
        self._builder._blocks.append([])
        return self._name

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        body = SeqStmt(tuple(self._builder._blocks.pop()))
        if kind is None:
            self._builder.add(self._finish(body))


class Builder:
    """Builds one function. Statements are added in the order of the calls and carry the line of the call as span.

    Expressions are made by the operators of what the methods return (`x[i] * 2`) and by the constructors of the IR.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._params: list[Var | Buffer] = []
        self._outputs: list[Buffer] = []
        self._blocks: list[list[Stmt]] = [[]]
        self._sources: dict[str, Source] = {}
        self._spans: dict[tuple[str, int], Span] = {}
        self._span = self._span_of(sys._getframe(1))

    @overload
    def param(
        self, name: str, of: TensorType, *, out: bool = False, scope: str = "global", alignment: int = 0
    ) -> Buffer: ...

    @overload
    def param(self, name: str, of: DType) -> Var: ...

    def param(
        self,
        name: str,
        of: TensorType | DType,
        *,
        out: bool = False,
        scope: str = "global",
        alignment: int = 0,
    ) -> Buffer | Var:
        """A parameter: an array for `f32[n]`, a scalar for `f32`. The caller may omit one with `out`."""
        self._demand_name(name)
        if isinstance(of, DType):
            var = Var(name, of)
            self._params.append(var)
            return var
        self._demand(of, TensorType, "of", "a type such as f32 or f32[n]")
        buffer = buffer_of(name, of, scope=scope, alignment=alignment)
        self._params.append(buffer)
        if out:
            self._outputs.append(buffer)
        return buffer

    def alloc(
        self, name: str, tensor: TensorType, *, scope: str = "global", alignment: int = 0, volatile: bool = False
    ) -> Buffer:
        """Fresh storage, to the end of this block. `alignment` is in bytes, 0 for the element's own."""
        self._demand_name(name)
        self._demand(tensor, TensorType, "tensor", _TENSOR)
        buffer = buffer_of(name, tensor, scope=scope, alignment=alignment, volatile=volatile)
        self.add(Allocate(buffer, span=self._here()))
        return buffer

    def view(
        self, name: str, source: Buffer, tensor: TensorType, byte_offset: ExprLike = 0, *, fresh: bool = False
    ) -> Buffer:
        """`source`'s bytes from `byte_offset` on as another buffer, in the same scope; see `View` for `fresh`."""
        self._demand_name(name)
        self._demand(source, Buffer, "source", "a Buffer")
        self._demand(tensor, TensorType, "tensor", _TENSOR)
        offset = _as_i64(self._expr(byte_offset, "byte_offset"))
        buffer = buffer_of(name, tensor, scope=source.scope, volatile=source.volatile)
        self.add(View(buffer, source, offset, fresh, span=self._here()))
        return buffer

    def let(self, name: str, value: ExprLike) -> Var:
        """A variable bound to `value`, to the end of this block."""
        self._demand_name(name)
        bound = self._expr(value, "value")
        var = Var(name, bound.dtype)
        self.add(Let(var, bound, span=self._here()))
        return var

    def store(self, buffer: Buffer, indices: ExprLike | tuple[ExprLike, ...], value: ExprLike) -> None:
        """`buffer[indices] = value`, the value cast to the type of the element and spread over a vector index."""
        self._demand(buffer, Buffer, "buffer", "a Buffer")
        given = indices if isinstance(indices, tuple) else (indices,)
        element = Load(buffer, tuple(self._expr(index, "indices", wanted="expressions or numbers") for index in given))
        stored = widened(self._expr(value, "value", buffer.dtype), element.dtype)
        self.add(Store(buffer, element.indices, stored, span=self._here()))

    def evaluate(self, value: Expr) -> None:
        """`value` computed for its effect."""
        self.add(Evaluate(self._expr(value, "value"), span=self._here()))

    def assert_(self, condition: ExprLike, message: str = "", *values: ExprLike) -> None:
        """Stops the kernel where the condition does not hold, with `message`, which has a place `{}` for each value."""
        test, shown = self._expr(condition, "condition"), tuple(self._expr(value, "values") for value in values)
        self.add(Assert(test, message, shown, span=self._here()))

    def for_(self, name: str, start: ExprLike, stop: ExprLike, step: int = 1) -> WithBlock[Var]:
        """A serial loop over `range(start, stop, step)`; `with` gives its variable."""
        return self._loop(name, start, stop, ForKind.SERIAL, step)

    def parallel(self, name: str, start: ExprLike, stop: ExprLike, step: int = 1) -> WithBlock[Var]:
        """A loop whose iterations may run at the same time."""
        return self._loop(name, start, stop, ForKind.PARALLEL, step)

    def vectorized(self, name: str, start: ExprLike, stop: ExprLike, step: int = 1) -> WithBlock[Var]:
        """A loop whose iterations may become lanes of vectors."""
        return self._loop(name, start, stop, ForKind.VECTORIZED, step)

    def unroll(self, name: str, start: ExprLike, stop: ExprLike, step: int = 1) -> WithBlock[Var]:
        """A loop whose iterations may be written out."""
        return self._loop(name, start, stop, ForKind.UNROLLED, step)

    def reduce(self, name: str, start: ExprLike, stop: ExprLike, step: int = 1) -> WithBlock[Var]:
        """A loop whose iterations combine values, and may be regrouped."""
        return self._loop(name, start, stop, ForKind.REDUCE, step)

    def thread(self, name: str, tag: str, extent: ExprLike) -> WithBlock[Var]:
        """A loop over the threads of `tag`, as `threadIdx.x`."""
        return self._loop(name, 0, self._expr(extent, "extent"), ForKind.THREAD, 1, tag)

    def while_(self, condition: ExprLike) -> WithBlock[None]:
        """A loop that goes on while the condition holds."""
        test, span = self._expr(condition, "condition"), self._here()
        return WithBlock(self, lambda body: While(test, body, span=span), None)

    def if_(self, condition: ExprLike) -> WithBlock[None]:
        """A block for when the condition holds."""
        test, span = self._expr(condition, "condition"), self._here()
        return WithBlock(self, lambda body: IfThenElse(test, body, span=span), None)

    def else_(self) -> WithBlock[None]:
        """A block for when the condition of the `if_` just before does not hold."""
        before = self._blocks[-1]
        last = before[-1] if before else None
        if not isinstance(last, IfThenElse) or last.else_body.stmts:
            raise ElseWithoutIf(span=self._here()).error()
        before.pop()
        return WithBlock(self, lambda body: last.replaced(else_body=body), None)

    def attr(self, key: AttrKey, buffer: Buffer | None = None, value: AttrValue = None) -> WithBlock[None]:
        """A block while which something holds about `buffer`, or about the block."""
        self._demand(key, AttrKey, "key", "an AttrKey")
        if buffer is not None:
            self._demand(buffer, Buffer, "buffer", "a Buffer")
        span = self._here()
        return WithBlock(self, lambda body: AttrStmt(key, body, buffer, value, span=span), None)

    def add(self, stmt: Stmt) -> None:
        """Any statement, as it is, at the end of this block."""
        self._demand(stmt, Stmt, "stmt", "a statement")
        self._blocks[-1].append(stmt)

    def build(self) -> PrimFunc:
        """The function. Dims of one name are one in it. Raises KernelError if it is ill-formed."""
        if len(self._blocks) > 1:
            raise OpenBlock(len(self._blocks) - 1, span=self._here()).error()
        body = SeqStmt(tuple(self._blocks[0]))
        func = with_one_dim_each(PrimFunc(self._name, tuple(self._params), body, tuple(self._outputs), span=self._span))
        validate(func)
        return func

    def _loop(
        self, name: str, start: ExprLike, stop: ExprLike, kind: ForKind, step: int, tag: str = ""
    ) -> WithBlock[Var]:
        self._demand_name(name)
        first, end = _as_i64(self._expr(start, "start")), _as_i64(self._expr(stop, "stop"))
        var, span = Var(name), self._here(3)
        return WithBlock(self, lambda body: For(var, first, end, body, kind, step, tag, span=span), var)

    def _expr(
        self, value: object, parameter: str, partner: DType | None = None, wanted: str = "an expression or a number"
    ) -> Expr:
        try:
            return as_expr(value, partner)
        except TypeError:
            raise self._refused(value, parameter, wanted) from None

    def _demand_name(self, name: object) -> None:
        self._demand(name, str, "name", "a name")

    def _demand(self, given: object, kind: type, parameter: str, wanted: str) -> None:
        if not isinstance(given, kind):
            raise self._refused(given, parameter, wanted)

    def _refused(self, given: object, parameter: str, wanted: str) -> TirliteError:
        """The error, with the span and the method of the outermost call of the builder."""
        frame: FrameType = sys._getframe(1)
        while frame.f_back is not None and frame.f_back.f_code.co_filename == __file__:
            frame = frame.f_back
        method = frame.f_code.co_name
        span = None if frame.f_back is None else self._span_of(frame.f_back)
        return BuilderArgument(parameter, method, wanted, f"{shown(given):.60}", span=span).error()

    def _here(self, depth: int = 2) -> Span:
        """The line that called the method, `depth` frames up."""
        return self._span_of(sys._getframe(depth))

    def _span_of(self, frame: FrameType) -> Span:
        place = (frame.f_code.co_filename, frame.f_lineno)
        span = self._spans.get(place)
        if span is None:
            span = self._spans[place] = self._line_span(*place)
        return span

    def _line_span(self, file: str, number: int) -> Span:
        source = self._sources.get(file)
        if source is None:
            lines = tuple(line.rstrip("\n") for line in linecache.getlines(file))
            source = self._sources[file] = Source(file, lines)
        text = source.line(number) or ""
        column = len(text) - len(text.lstrip())
        return Span(source, number, column, number, max(column + 1, len(text.rstrip())))


def buffer_of(
    name: str, tensor: TensorType, *, scope: str = "global", alignment: int = 0, volatile: bool = False
) -> Buffer:
    """A new buffer of a tensor type. Raises KernelError where an extent is not an integer expression."""
    shape = tuple(_extent(tensor.dtype, axis, extent) for axis, extent in enumerate(tensor.shape))
    return Buffer(name, tensor.dtype, shape, scope, alignment, volatile)


def _extent(dtype: DType, axis: int, extent: object) -> Expr:
    if isinstance(extent, (Dim, Poly)):
        return expr_over_dims(extent)
    if isinstance(extent, (int, Expr)) and not isinstance(extent, bool):
        expr = _as_i64(extent)
        if expr.dtype == i64:
            return expr
    raise TypeExtent(axis, str(dtype), repr(extent)).error()


def _as_i64(value: ExprLike) -> Expr:
    expr = as_expr(value)
    return expr.astype(i64) if expr.dtype.is_integer else expr
