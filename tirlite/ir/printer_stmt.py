"""Prints statements as lines of DSL text with their levels of indentation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from tirlite.ir.dtype import DType
from tirlite.ir.expr import And, Buffer, BufferRef, Call, Expr, FloatImm, IntImm, LetExpr, Or, Var
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.op import Op
from tirlite.ir.printer_expr import DEEPEST, expr_text, quoted
from tirlite.ir.printer_names import PrintedNames
from tirlite.ir.rewrite import rebuild
from tirlite.ir.stmt import (
    Allocate,
    Assert,
    AttrKey,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    Permission,
    SeqStmt,
    Stmt,
    Store,
    View,
    While,
)
from tirlite.show import framed

Line: TypeAlias = tuple[int, str]

# Deeper nests are printed as an outline.
_MOST_LEVELS = 90


# A step with its level: a statement or a line to print, or a function that prints and returns further steps.
_Step: TypeAlias = "tuple[int, Stmt | str | Callable[[], list[_Step]]]"


class StatementPrinter:
    """Collects the lines of statements, at any depth of nesting."""

    def __init__(self, names: PrintedNames) -> None:
        self.names = names
        self.lines: list[Line] = []

    def print(self, stmts: Iterable[Stmt], level: int) -> None:
        stack = self._body(stmts, level)
        while stack:
            at, step = stack.pop()
            if isinstance(step, str):
                self.lines.append((at, step))
            elif isinstance(step, Stmt):
                first = len(self.lines)
                stack.extend(_RULES[type(step)](self, step, at))
                if step is self.names.mark:
                    self.lines[first:] = [(level, framed(line)) for level, line in self.lines[first:]]
            else:
                stack.extend(step())

    def _body(self, stmts: Iterable[Stmt], level: int) -> list[_Step]:
        """The steps for a body, last first."""
        steps: list[_Step] = [(level, stmt) for stmt in stmts]
        return steps[::-1] or [(level, "pass")]

    def _line(self, level: int, text: str) -> None:
        self.lines.append((level, text))

    def _value(self, expr: Expr, level: int) -> str:
        """The text of an expression; if it is too deep, lets for its parts are printed first."""
        text, depth = expr_text(expr, self.names)
        if depth <= DEEPEST:
            return text
        lets, shallow = spilled(expr, DEEPEST)
        for var, value in lets:
            self._line(level, f"{self.names.define(var)} = {expr_text(value, self.names)[0]}")
        return expr_text(shallow, self.names)[0]

    def _values(self, exprs: Sequence[Expr], level: int) -> str:
        return ", ".join(self._value(expr, level) for expr in exprs)

    # A rule prints the first line of its statement and returns the steps for the rest, last first.

    def seq(self, stmt: SeqStmt, level: int) -> list[_Step]:
        return self._body(stmt.stmts, level) if stmt.stmts else []

    def store(self, stmt: Store, level: int) -> list[_Step]:
        target = f"{self.names.of(stmt.buffer)}[{self._values(stmt.indices, level) or '()'}]"
        self._line(level, f"{target} = {self._value(stmt.value, level)}")
        return []

    def evaluate(self, stmt: Evaluate, level: int) -> list[_Step]:
        self._line(level, self._value(stmt.value, level))
        return []

    def allocate(self, stmt: Allocate, level: int) -> list[_Step]:
        buffer = stmt.buffer
        scope = [f"scope={quoted(buffer.scope)}"] if buffer.scope != "global" else []
        args = [tensor_text(buffer.dtype, self._values(buffer.shape, level)), *scope, *promises(buffer)]
        self._line(level, f"{self.names.define(buffer)} = tl.alloc({', '.join(args)})")
        return []

    def view(self, stmt: View, level: int) -> list[_Step]:
        buffer, source = stmt.buffer, self.names.of(stmt.source)
        args = [source, tensor_text(buffer.dtype, self._values(buffer.shape, level))]
        offset = self._value(stmt.byte_offset, level)
        args += [f"byte_offset={offset}"] if offset != "0" else []
        # A view is as volatile as its source, unless it says otherwise.
        alignment = [f"alignment={buffer.alignment}"] if buffer.alignment else []
        volatile = [f"volatile={buffer.volatile}"] if buffer.volatile != stmt.source.volatile else []
        fresh = ["fresh=True"] if stmt.fresh else []
        self._line(level, f"{self.names.define(buffer)} = tl.view({', '.join([*args, *alignment, *volatile, *fresh])})")
        return []

    def kernel_call(self, stmt: KernelCall, level: int) -> list[_Step]:
        args = [
            self.names.of(arg.buffer) if isinstance(arg, BufferRef) else self._value(arg, level) for arg in stmt.args
        ]
        self._line(level, f"tl.call({', '.join([self.names.of_function(stmt.callee), *args])})")
        return []

    def let(self, stmt: Let, level: int) -> list[_Step]:
        value = self._value(stmt.value, level)
        if isinstance(stmt.value, (IntImm, FloatImm)) and not value.startswith("tl."):
            # A bare literal bound to a name would stay an untyped literal.
            value = f"tl.{stmt.value.dtype}({value})"
        self._line(level, f"{self.names.define(stmt.var)} = {value}")
        return []

    def assertion(self, stmt: Assert, level: int) -> list[_Step]:
        condition, message = self._value(stmt.condition, level), quoted(stmt.message)
        if stmt.values:
            message = f"{message}.format({self._values(stmt.values, level)})"
        self._line(level, f"assert {condition}, {message}")
        return []

    def loop(self, stmt: For, level: int) -> list[_Step]:
        bounds = [self._value(stmt.start, level), self._value(stmt.stop, level)]
        if stmt.kind is ForKind.THREAD:
            bounds[0] = quoted(stmt.thread_tag)
        elif stmt.step != 1:
            bounds.append(str(stmt.step))
        elif isinstance(stmt.start, IntImm) and bounds[0] == "0":
            del bounds[0]
        var = self.names.open_loop(stmt.var)
        self._line(level, f"for {var} in {stmt.kind.value}({', '.join(bounds)}):")
        return [(level, lambda: self._close_loop(stmt)), *self._body(stmt.body.stmts, level + 1)]

    def _close_loop(self, stmt: For) -> list[_Step]:
        self.names.close_loop(stmt.var)
        return []

    def while_(self, stmt: While, level: int) -> list[_Step]:
        # No spilling here: lets before the loop would be computed once.
        self._line(level, f"while {expr_text(stmt.condition, self.names)[0]}:")
        return self._body(stmt.body.stmts, level + 1)

    def branch(self, stmt: IfThenElse, level: int) -> list[_Step]:
        self._line(level, f"if {self._value(stmt.condition, level)}:")
        return [*self._otherwise(stmt.else_body, level), *self._body(stmt.then_body.stmts, level + 1)]

    def _otherwise(self, body: SeqStmt, level: int) -> list[_Step]:
        if not body.stmts:
            return []
        only = body.stmts[0]
        if len(body.stmts) == 1 and isinstance(only, IfThenElse):
            return [(level, lambda: self._elif(only, level))]
        return [*self._body(body.stmts, level + 1), (level, "else:")]

    def _elif(self, stmt: IfThenElse, level: int) -> list[_Step]:
        text, depth = expr_text(stmt.condition, self.names)
        if depth > DEEPEST:
            # The lets of its condition must be inside this branch.
            return [(level + 1, stmt), (level, "else:")]
        line = f"elif {text}:"
        self._line(level, framed(line) if stmt is self.names.mark else line)
        return [*self._otherwise(stmt.else_body, level), *self._body(stmt.then_body.stmts, level + 1)]

    def attr(self, stmt: AttrStmt, level: int) -> list[_Step]:
        if stmt.key is AttrKey.ALLOW:
            assert isinstance(stmt.value, tuple)
            granted = [quoted(each.value) for each in stmt.value if isinstance(each, Permission)]
            self._line(level, f"with tl.allow({', '.join(granted)}):")
            return self._body(stmt.body.stmts, level + 1)
        if stmt.key is AttrKey.UNCHECKED:
            self._line(level, "with tl.unchecked():")
            return self._body(stmt.body.stmts, level + 1)
        args = [self.names.of(stmt.buffer)] if stmt.buffer is not None else []
        args.append(quoted(stmt.key.value))
        if stmt.value is not None:
            args.append(quoted(stmt.value) if isinstance(stmt.value, str) else str(stmt.value))
        self._line(level, f"with tl.attr({', '.join(args)}):")
        return self._body(stmt.body.stmts, level + 1)


def tensor_text(dtype: DType, shape: str) -> str:
    return f"tl.{dtype}[{shape or '()'}]"


def promises(buffer: Buffer) -> list[str]:
    """The keywords for a buffer's properties beyond its type."""
    words = [f"alignment={buffer.alignment}"] if buffer.alignment else []
    return [*words, "volatile=True"] if buffer.volatile else words


_RULES: dict[type[Stmt], Callable[[StatementPrinter, Any, int], list[_Step]]] = {
    SeqStmt: StatementPrinter.seq,
    Store: StatementPrinter.store,
    Evaluate: StatementPrinter.evaluate,
    Allocate: StatementPrinter.allocate,
    View: StatementPrinter.view,
    KernelCall: StatementPrinter.kernel_call,
    Let: StatementPrinter.let,
    Assert: StatementPrinter.assertion,
    For: StatementPrinter.loop,
    While: StatementPrinter.while_,
    IfThenElse: StatementPrinter.branch,
    AttrStmt: StatementPrinter.attr,
}


def laid_out(lines: Sequence[Line]) -> str:
    """The lines with indentation; as an outline if the nest is too deep."""
    deepest = max((level for level, _ in lines), default=0)
    if deepest <= _MOST_LEVELS:
        return "\n".join("    " * level + line for level, line in lines)
    digits = len(str(deepest))
    outline = [f"# An outline, since {deepest} levels are too many to indent: each line is led by its level."]
    return "\n".join(outline + [f"{level:>{digits}}| {line}" for level, line in lines])


def spilled(root: Expr, depth: int) -> tuple[list[tuple[Var, Expr]], Expr]:
    """Lets, in order of evaluation, and `root` in terms of them, each at most `depth` deep.

    Parts that are evaluated only under a condition stay in place, at any depth.
    """
    lets: list[tuple[Var, Expr]] = []
    results: list[tuple[Expr, int]] = []
    stack: list[tuple[Expr, bool, bool]] = [(root, True, False)]
    while stack:
        expr, always, ready = stack.pop()
        children = expr.children()
        if not children:
            results.append((expr, 0))
        elif not ready:
            stack.append((expr, always, True))
            sure = _evaluated_always(expr)
            stack.extend((child, always and sure(n), False) for n, child in reversed(list(enumerate(children))))
        else:
            below = results[-len(children) :]
            del results[-len(children) :]
            new: list[Expr] = [child for child, _ in below]
            changed = any(a is not b for a, b in zip(new, children, strict=True))
            made = rebuild(expr, new) if changed else expr
            height = 1 + max(height for _, height in below)
            if height >= depth and always and expr is not root:
                lets.append((Var("t", made.dtype), made))
                made, height = lets[-1][0], 0
            results.append((made, height))
    return lets, results[0][0]


def _evaluated_always(expr: Expr) -> Callable[[int], bool]:
    """Tells for each child whether it is always evaluated with `expr`, and may be evaluated before it."""
    if isinstance(expr, (And, Or, LetExpr)) or (isinstance(expr, Call) and expr.op is Op.IF_THEN_ELSE):
        return lambda number: number == 0
    return lambda number: True
