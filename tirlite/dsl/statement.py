"""Statements of Python's syntax tree in, statements of the IR out. One mistake a statement is reported."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from tirlite.diag import KernelError, Message, Span, nearest
from tirlite.dsl.assignment import Assignments
from tirlite.dsl.calls import CallSite, WrongArgument, misplaced
from tirlite.dsl.convert import condition, integer, is_literal, number
from tirlite.dsl.expression import Expressions
from tirlite.dsl.local_names import LocalNames, Use
from tirlite.dsl.parameters import described
from tirlite.dsl.refused import NotInKernels, refusal
from tirlite.dsl.scope import AlreadyReported, Scope
from tirlite.dsl.vocabulary import LOOPS, Word
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Buffer, Expr, IntImm, Var
from tirlite.ir.stmt import (
    PAYLOADS,
    Assert,
    AttrKey,
    AttrStmt,
    AttrValue,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    SeqStmt,
    While,
)
from tirlite.ir.trampoline import Steps

T = TypeVar("T")

# No error lists more mistakes than this.
MOST_REPORTED = 20


class BadLoop(Message):
    """A `for` goes over something else than a range.

    Example: `for value in x:`.
    Fix: Loop over indices: `for i in range(n):`.
    """

    code = "bad-loop"
    title = "a loop goes over {given}"
    help = "write `for i in range(n):`; tl.parallel, tl.vectorized, tl.unroll and tl.thread stand in the place of range"

    given: str


class BadStep(Message):
    """The step of a loop is no constant, or zero.

    Example: `for i in range(0, n, k):`, where `k` is a parameter.
    Fix: Write a constant other than 0, or loop over the number of steps and multiply.
    """

    code = "bad-step"
    title = "the step of a loop is {given}"
    help = "a step is a constant integer other than 0"

    given: str


class UnknownAttribute(Message):
    """`tl.attr` has a key that does not exist.

    Example: `with tl.attr(x, "double_bufer"):`.
    Fix: Take one of the keys that the message lists.
    """

    code = "unknown-attribute"
    title = 'tl.attr has no key "{key}"'
    help = "{advice}"

    key: str
    advice: str


class NoEffect(Message):
    """A statement is an expression that does nothing.

    Example: `x` on a line of its own, where `x` is a buffer.
    Fix: Store the value, or leave the line out.
    """

    code = "no-effect"
    title = "{given} alone does nothing"
    help = "store it, or leave it out"

    given: str


class Statements:
    """Translates the bodies of one kernel, and collects what is wrong with them."""

    def __init__(self, expressions: Expressions, scope: Scope, names: LocalNames, assignments: Assignments) -> None:
        self.expressions = expressions
        self.scope = scope
        self.names = names
        self.assignments = assignments
        self.mistakes: list[Message] = []

    def body(self, owner: ast.AST, field: str) -> Steps[tuple[SeqStmt, list[str]]]:
        """The block `owner.field`, and the cells that it surely assigns."""
        self.scope.open(self.names.blocks[owner, field])
        for stmt in getattr(owner, field):
            try:
                rule = _RULES.get(type(stmt))
                if rule is None:
                    raise refusal(stmt, self._span(stmt))
                yield rule(self, stmt)
            except AlreadyReported:
                self._give_up(stmt)
            except KernelError as error:
                self._report(error)
                self._give_up(stmt)
        stmts, assigned = self.scope.close()
        return SeqStmt(stmts), assigned

    @contextmanager
    def reporting(self, name: str, node: ast.AST) -> Iterator[None]:
        """Collects what goes wrong inside, and marks `name` as not bound by it."""
        try:
            yield
        except AlreadyReported:
            self.scope.bind_wrong(name, self._span(node))
        except KernelError as error:
            self._report(error)
            self.scope.bind_wrong(name, self._span(node))

    def _report(self, error: KernelError) -> None:
        self.mistakes += [message for message in error.messages if isinstance(message, Message)]

    def _give_up(self, stmt: ast.stmt) -> None:
        """Marks what `stmt` should have bound, so that its uses are not reported as well."""
        for node in ast.walk(stmt):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.scope.bind_wrong(node.id, self._span(node))

    def _attempt(self, build: Callable[[], T]) -> T | None:
        """What `build` gives; None where it is wrong, which is reported, while the body below is still looked at."""
        try:
            return build()
        except AlreadyReported:
            return None
        except KernelError as error:
            self._report(error)
            return None

    def _span(self, node: ast.AST) -> Span:
        return self.expressions.span(node)

    def assign(self, stmt: ast.Assign) -> Steps[None]:
        yield from ()
        self.assignments.assign(stmt)

    def annotated(self, stmt: ast.AnnAssign) -> Steps[None]:
        yield from ()
        self.assignments.annotated(stmt)

    def update(self, stmt: ast.AugAssign) -> Steps[None]:
        yield from ()
        self.assignments.update(stmt)

    def nothing(self, stmt: ast.Pass) -> Steps[None]:
        yield from ()

    def evaluate(self, stmt: ast.Expr) -> Steps[None]:
        yield from ()
        value = self.expressions.value(stmt.value)
        if isinstance(value, Word):
            raise misplaced(value, self._span(stmt))
        if isinstance(value, Buffer) or not (isinstance(value, Expr) or is_literal(value)):
            raise NoEffect(described(value), span=self._span(stmt)).error()
        made = value if isinstance(value, Expr) else number(value, self._span(stmt))
        self.scope.add(Evaluate(made, span=self._span(stmt)))

    def assertion(self, stmt: ast.Assert) -> Steps[None]:
        yield from ()
        test = condition(self.expressions.value(stmt.test), self._span(stmt.test))
        message: object = self.expressions.places.text(stmt.test)
        if stmt.msg is not None:
            message = self.expressions.value(stmt.msg)
            if not isinstance(message, str):
                given = described(message)
                raise WrongArgument("assert", "a text", given, span=self._span(stmt.msg)).error()
        self.scope.add(Assert(test, str(message), span=self._span(stmt)))

    def branch(self, stmt: ast.If) -> Steps[None]:
        test = self._attempt(lambda: condition(self.expressions.value(stmt.test), self._span(stmt.test)))
        then_body, then_assigned = yield self.body(stmt, "body")
        else_body, else_assigned = yield self.body(stmt, "orelse")
        self.scope.assigned([name for name in then_assigned if name in set(else_assigned)])
        if test is not None:
            self.scope.add(IfThenElse(test, then_body, else_body, span=self._span(stmt)))

    def while_(self, stmt: ast.While) -> Steps[None]:
        self._no_else(stmt)
        test = self._attempt(lambda: condition(self.expressions.value(stmt.test), self._span(stmt.test)))
        body, _ = yield self.body(stmt, "body")
        if test is not None:
            self.scope.add(While(test, body, span=self._span(stmt)))

    def _no_else(self, stmt: ast.For | ast.While) -> None:
        if stmt.orelse:
            instead = "put it after the loop: without `break`, it runs in any case"
            raise NotInKernels("`else` of a loop", instead, span=self._span(stmt.orelse[0])).error()

    def for_(self, stmt: ast.For) -> Steps[None]:
        self._no_else(stmt)
        if not isinstance(stmt.target, ast.Name):
            what = "a loop over several variables"
            raise NotInKernels(what, "write `for i in range(n):`", span=self._span(stmt.target)).error()
        var = Var(stmt.target.id, i64)
        header = self._attempt(lambda: self._header(stmt))
        self.assignments.check(var.name, Use.LOOP, self._span(stmt.target))
        block = self.names.blocks[stmt, "body"]
        self.scope.open(block.parent or block)
        self.scope.bind(var.name, var, self._span(stmt.target))
        self.assignments.fix(var.name, "the variable of this loop")
        body, _ = yield self.body(stmt, "body")
        self.assignments.release(var.name)
        self.scope.close()
        if header is not None:
            start, stop, step, kind, tag = header
            self.scope.add(For(var, start, stop, body, kind, step, tag, span=self._span(stmt)))

    def _header(self, stmt: ast.For) -> tuple[Expr, Expr, int, ForKind, str]:
        site = self.expressions.word_call(stmt.iter)
        kind = LOOPS.get(site.word.name) if site is not None else None
        if site is None or kind is None:
            given = self.expressions.places.text(stmt.iter)
            raise BadLoop(f"`{given}`", span=self._span(stmt.iter)).error()
        site.only()
        zero = IntImm(i64, 0)
        if kind is ForKind.THREAD:
            site.count(2, 2, 'a tag and an extent, as in tl.thread("threadIdx.x", 32)')
            if not isinstance(site.args[0], str) or not site.args[0]:
                raise site.wrong(0, 'the tag of a thread, as in "threadIdx.x"')
            return zero, self._bound(site, 1), 1, kind, site.args[0]
        site.count(1, 3, "one to three arguments")
        step = site.args[2] if len(site.args) == 3 else 1
        if isinstance(step, IntImm):
            step = step.value
        if isinstance(step, bool) or not isinstance(step, int) or step == 0:
            raise BadStep(described(step), span=site.spans[2]).error()
        if len(site.args) == 1:
            return zero, self._bound(site, 0), 1, kind, ""
        return self._bound(site, 0), self._bound(site, 1), step, kind, ""

    def _bound(self, site: CallSite, position: int) -> Expr:
        return integer(site.args[position], "the bound of a loop", site.spans[position]).astype(i64)

    def with_(self, stmt: ast.With) -> Steps[None]:
        item = stmt.items[0]
        is_attribute = self.expressions.calls_one_of(("attr",), item.context_expr)
        if len(stmt.items) > 1 or item.optional_vars is not None or not is_attribute:
            raise refusal(stmt, self._span(item.context_expr))
        attribute = self._attempt(lambda: attribute_of(self.expressions.word_call(item.context_expr)))
        body, assigned = yield self.body(stmt, "body")
        self.scope.assigned(assigned)
        if attribute is not None:
            key, buffer, value = attribute
            self.scope.add(AttrStmt(key, body, buffer, value, span=self._span(stmt)))


def attribute_of(site: CallSite | None) -> tuple[AttrKey, Buffer | None, AttrValue]:
    """What `tl.attr(buffer, key, value)` says; buffer and value are there or not, by the key."""
    assert site is not None
    site.only()
    site.count(1, 3, "a buffer, a key and a value, as the key demands")
    args = list(site.args)
    buffer = args.pop(0) if isinstance(args[0], Buffer) else None
    first = len(site.args) - len(args)
    if not args or not isinstance(args[0], str):
        raise site.wrong(min(first, len(site.args) - 1), 'a key, as in "double_buffer"')
    key = next((each for each in AttrKey if each.value == args[0]), None)
    if key is None:
        near = nearest(args[0], [each.value for each in AttrKey])
        advice = f"did you mean {near}?" if near else "its keys are " + ", ".join(f"`{each.value}`" for each in AttrKey)
        raise UnknownAttribute(args[0], advice, span=site.spans[first]).error()
    takes_buffer, payload = PAYLOADS[key]
    value = args[1] if len(args) > 1 else None
    if takes_buffer is (buffer is None):
        raise site.wrong(0, "a buffer" if takes_buffer else "the key alone, without a buffer,")
    if len(args) > 2 or type(value) is not payload:
        wanted = f"a value of type {payload.__name__}" if payload is not type(None) else "no value"
        raise site.wrong(len(site.args) - 1, f"{wanted} with the key {key.value}")
    assert value is None or isinstance(value, (str, int))
    return key, buffer if isinstance(buffer, Buffer) else None, value


_RULES: Mapping[type[ast.stmt], Callable[[Statements, Any], Steps[None]]] = {
    ast.Assign: Statements.assign,
    ast.AnnAssign: Statements.annotated,
    ast.AugAssign: Statements.update,
    ast.Pass: Statements.nothing,
    ast.Expr: Statements.evaluate,
    ast.Assert: Statements.assertion,
    ast.If: Statements.branch,
    ast.While: Statements.while_,
    ast.For: Statements.for_,
    ast.With: Statements.with_,
}
