"""Translates statements of Python's syntax tree to the IR. One mistake per statement is reported."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from tirlite.diag import KernelError, Message, Span, TirliteError
from tirlite.dsl.assignment import LOOP_VARIABLE, Assignments, MixedName
from tirlite.dsl.convert import condition, is_literal, number
from tirlite.dsl.expression import Expressions
from tirlite.dsl.local_names import LocalNames, Use, bound_by, names_in
from tirlite.dsl.loops import LeavesLoop, LeftLoop, header
from tirlite.dsl.parameters import described
from tirlite.dsl.scope import AlreadyReported, Scope
from tirlite.dsl.surroundings import meaning
from tirlite.dsl.syntax import NotInKernels, refusal
from tirlite.dsl.vocabulary import CallSite, Word, misplaced
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Buffer, Expr, Var
from tirlite.ir.stmt import Assert, AttrKey, AttrStmt, AttrValue, Evaluate, ForKind, IfThenElse, SeqStmt, Stmt, While
from tirlite.ir.trampoline import Steps
from tirlite.record import replace

T = TypeVar("T")

# The most mistakes listed by an error.
MOST_REPORTED = 20


class NoEffect(Message):
    """A statement is an expression that does nothing.

    Example: `x` on a line of its own, where `x` is a buffer.
    """

    title = "{given} alone does nothing"
    help = "store it, or leave it out"


class Statements:
    """Translates the bodies of one kernel, and collects mistakes."""

    def __init__(
        self,
        expressions: Expressions,
        scope: Scope,
        names: LocalNames,
        assignments: Assignments,
        left: Mapping[ast.For, LeftLoop],
    ) -> None:
        """`left`: the loops that end when a flag is cleared."""
        self.expressions = expressions
        self.scope = scope
        self.names = names
        self.assignments = assignments
        self.left = left
        self.mistakes: list[Message] = []
        self.returns: set[ast.Return] = set()  # the returns at the end of a function with a value
        self.result: object = None
        self.loops: dict[str, ast.For] = {}  # the open loops, by the names of their variables
        self.values: Mapping[ast.stmt, ast.For] = {}  # assignments from a loop's own variable, see `body`
        self.passed_over: set[ast.stmt] = set()  # first assignments of parameters that may not be assigned
        self.unordered: set[str] = set()  # variables of loops whose iterations have no order
        self.tags: dict[Var, str] = {}  # the thread tags that attributes bind open loops to, or ""

    def body(self, owner: ast.AST, field: str) -> Steps[tuple[SeqStmt, list[str]]]:
        """The block `owner.field`, and the cells that it surely assigns."""
        self.scope.open(self.names.blocks[owner, field])
        for stmt in getattr(owner, field):
            try:
                rule = _RULES.get(type(stmt))
                if rule is None:
                    raise refusal(stmt, self._span(stmt))
                steps = rule(self, stmt)
                if steps is not None:
                    yield steps
            except AlreadyReported:
                self._give_up(stmt)
            except KernelError as error:
                self._report(error)
                self._give_up(stmt)
        stmts, assigned = self.scope.close()
        return SeqStmt(stmts), assigned

    @contextmanager
    def reporting(self, name: str, node: ast.AST) -> Iterator[None]:
        """Collects mistakes inside, and marks `name` as wrong if there are any."""
        try:
            yield
        except AlreadyReported:
            self.scope.bind_wrong(name, self._span(node))
        except KernelError as error:
            self._report(error)
            self.scope.bind_wrong(name, self._span(node))

    def _report(self, error: KernelError) -> None:
        for message in error.messages:
            # Report the mistakes of an inline function that is called twice only once.
            if not any(_is_same(message, each) for each in self.mistakes):
                self.mistakes.append(message)

    def _give_up(self, stmt: ast.stmt) -> None:
        """Marks the names that `stmt` should have bound as wrong, so that their uses are not reported as well."""
        for node in ast.walk(stmt):
            name = bound_by(node)
            if name and self.assignments.is_free(name):
                self.expressions.local.add(name)
                self.scope.bind_wrong(name, self._span(node))

    def _attempt(self, build: Callable[[], T]) -> T | None:
        """The result of `build`; None if it is wrong, which is reported, so that the body is still checked."""
        try:
            return build()
        except AlreadyReported:
            return None
        except KernelError as error:
            self._report(error)
            return None

    def _span(self, node: ast.AST) -> Span:
        return self.expressions.span(node)

    def assign(self, stmt: ast.Assign) -> None:
        if stmt in self.passed_over:
            return
        if stmt in self.values:
            self._check_own_variable(stmt)
        self.assignments.assign(stmt)

    def evaluate(self, stmt: ast.Expr) -> None:
        if self.expressions.calls_one_of(("print",), stmt.value):
            from tirlite.dsl.printing import print_call

            assert isinstance(stmt.value, ast.Call)
            self.scope.add(Evaluate(print_call(stmt.value, self.expressions), span=self._span(stmt)))
            return
        value = self.expressions.value(stmt.value, alone=True)
        if isinstance(stmt.value, ast.Call) and (value is None or isinstance(value, tuple)):
            return
        if isinstance(value, Word):
            raise misplaced(value, self._span(stmt))
        if isinstance(value, Buffer) or not (isinstance(value, Expr) or is_literal(value)):
            raise NoEffect(described(value), span=self._span(stmt)).error()
        made = value if isinstance(value, Expr) else number(value, self._span(stmt))
        self.scope.add(Evaluate(made, span=self._span(stmt)))

    def assertion(self, stmt: ast.Assert) -> None:
        test = condition(self.expressions.value(stmt.test), self._span(stmt.test))
        text: str = self.expressions.origin.text(stmt.test)
        values: tuple[Expr, ...] = ()
        if stmt.msg is not None:
            from tirlite.dsl.printing import assert_message

            text, values = assert_message(stmt.msg, self.expressions)
        self.scope.add(Assert(test, text, values, span=self._span(stmt)))

    def returned(self, stmt: ast.Return) -> None:
        if stmt not in self.returns:
            raise refusal(stmt, self._span(stmt))
        if isinstance(stmt.value, ast.Tuple):
            self.result = tuple(self._result(each) for each in stmt.value.elts)
        elif stmt.value is not None:
            self.result = self._result(stmt.value)

    def _result(self, node: ast.expr) -> object:
        value = self.expressions.value(node, alone=True)
        is_number = is_literal(value) or value is None
        several = isinstance(value, tuple) and all(isinstance(each, Expr) or is_literal(each) for each in value)
        return value if is_number or several else number(value, self._span(node))

    def static_branch(self, stmt: ast.If) -> Steps[None]:
        """`if tl.static(...)`: translates only the chosen body."""
        from tirlite.dsl.static import truth

        field = "body" if truth(self.expressions.value(stmt.test), self._span(stmt.test)) else "orelse"
        yield self._written_out(stmt, field)

    def _written_out(self, owner: ast.AST, field: str) -> Steps[None]:
        """The statements of a block, added to the block around."""
        block, assigned = yield self.body(owner, field)
        self._taken_out(block.stmts, assigned)

    def _taken_out(self, stmts: Sequence[Stmt], assigned: Sequence[str]) -> None:
        for stmt in stmts:
            self.scope.add(stmt)
        self.scope.assigned(assigned)

    def static_loop(self, stmt: ast.For) -> Steps[None]:
        """`for k in tl.static(...)`, or over literal values: translates the body once for each value."""
        targets, span = names_in(stmt.target), self._span(stmt.target)
        if not targets or (isinstance(stmt.target, ast.Tuple) and len(targets) != len(stmt.target.elts)):
            raise NotInKernels("this variable of a loop", "write a name, or names", span=span).error()
        hidden = [self._hidden(stmt, target) for target in targets]
        from tirlite.dsl.static import rounds, unpacked

        written = _literals(stmt.iter)
        over = self.expressions.value(stmt.iter) if written is None else written
        for value in rounds(over, self._span(stmt.iter)):
            values = unpacked(value, len(targets), span) if isinstance(stmt.target, ast.Tuple) else (value,)
            self.scope.open(self.names.blocks[stmt, "body"])
            for target, each in zip(targets, values, strict=True):
                self.scope.bind(target.id, meaning(each, target.id, span), span)
                self.assignments.fix(target.id, LOOP_VARIABLE)
                self.loops[target.id] = stmt
            yield self._written_out(stmt, "body")
            for target, outer in zip(targets, hidden, strict=True):
                self._leave(target.id, outer)
            self._taken_out(*self.scope.close())

    def _is_static_loop(self, stmt: ast.For) -> bool:
        node = stmt.iter
        if isinstance(node, ast.Name):
            is_local = node.id in self.expressions.local
            found = self.scope.constant(node.id) if is_local else self.expressions.surroundings.find(node.id)
            return isinstance(found, tuple)
        return self.expressions.is_static(node) or _literals(node) is not None

    def branch(self, stmt: ast.If) -> Steps[None]:
        if self.expressions.is_static(stmt.test):
            yield self.static_branch(stmt)
            return
        test = self._attempt(lambda: condition(self.expressions.value(stmt.test), self._span(stmt.test)))
        if test is None:
            self._give_up(ast.Expr(stmt.test))
        then_body, then_assigned = yield self.body(stmt, "body")
        else_body, else_assigned = yield self.body(stmt, "orelse")
        self.scope.assigned([name for name in then_assigned if name in set(else_assigned)])
        if test is not None:
            self.scope.add(IfThenElse(test, then_body, else_body, span=self._span(stmt)))

    def while_(self, stmt: ast.While) -> Steps[None]:
        self._no_else(stmt)
        test = self._attempt(
            lambda: condition(self.expressions.value(stmt.test, conditional=True), self._span(stmt.test))
        )
        body, _ = yield self.body(stmt, "body")
        if test is not None:
            self.scope.add(While(test, body, span=self._span(stmt)))

    def _no_else(self, stmt: ast.For | ast.While) -> None:
        if stmt.orelse:
            instead = "put it after the loop: without a `break` in the loop, it runs in any case"
            raise NotInKernels("`else` of a loop", instead, span=self._span(stmt.orelse[0])).error()

    def for_(self, stmt: ast.For) -> Steps[None]:
        self._no_else(stmt)
        left = self.left.get(stmt)
        if self._is_static_loop(stmt):
            if left is not None:
                raise LeavesLoop(left.word, "tl.static", span=self._span(left.jump)).error()
            yield self.static_loop(stmt)
            return
        if not isinstance(stmt.target, ast.Name):
            raise _several_variables(stmt, self._span(stmt.target))
        var = Var(stmt.target.id, i64)
        head = self._attempt(lambda: header(stmt, self.expressions))
        if left is not None and head is not None and head.kind is not ForKind.SERIAL:
            raise LeavesLoop(left.word, head.kind.value, span=self._span(left.jump)).error()
        hidden = self._hidden(stmt, stmt.target)
        block = self.names.blocks[stmt, "body"]
        self.scope.open(block.parent or block)
        self.scope.bind(var.name, var, self._span(stmt.target))
        self.assignments.fix(var.name, LOOP_VARIABLE)
        self.loops[var.name] = stmt
        if head is not None and head.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            self.unordered.add(var.name)
        self.tags[var] = ""
        body, _ = yield self.body(stmt, "body")
        bound = self.tags.pop(var)
        self._leave(var.name, hidden)
        self.scope.close()
        if head is not None:
            if bound:
                head = replace(head, kind=ForKind.THREAD, tag=bound)
            span = self._span(stmt)
            going = None if left is None else condition(self.scope.read(left.flag, span), span)
            for each in head.loop(var, body, span, going):
                self.scope.add(each)

    def _check_own_variable(self, stmt: ast.Assign) -> None:
        """Raises KernelError if an unordered loop's variable would be used after an iteration."""
        (target,) = stmt.targets
        assert isinstance(target, ast.Name)
        assert isinstance(stmt.value, ast.Name)
        if stmt.value.id in self.unordered and not self.names.homes[target.id, stmt].is_let:
            raise MixedName(target.id, Use.LOOP.value, Use.SCALAR.value, span=self._span(target)).error()

    def _hidden(self, stmt: ast.For, target: ast.Name) -> ast.For | None:
        """The open loop whose variable that of `stmt` hides; allowed only if nothing reads it."""
        outer = self.loops.get(target.id)
        if outer is None or _reads_variable(outer, target.id):
            self.assignments.check(target.id, Use.LOOP, self._span(target))
        return outer

    def _leave(self, name: str, hidden: ast.For | None) -> None:
        """Ends the loop over `name`, which may have hidden an outer loop's variable."""
        if hidden is None:
            self.assignments.release(name)
            self.loops.pop(name, None)
        else:
            self.loops[name] = hidden

    def with_(self, stmt: ast.With) -> Steps[None]:
        item = stmt.items[0]
        is_attribute = self.expressions.calls_one_of(("attr", "allow", "unchecked"), item.context_expr)
        if len(stmt.items) > 1 or item.optional_vars is not None or not is_attribute:
            raise refusal(stmt, self._span(item.context_expr))
        attribute = self._attempt(lambda: self._attribute(self.expressions.word_call(item.context_expr)))
        body, assigned = yield self.body(stmt, "body")
        self.scope.assigned(assigned)
        if isinstance(attribute, Var):
            self.scope.add(body)
        elif attribute is not None:
            key, buffer, value = attribute
            self.scope.add(AttrStmt(key, body, buffer, value, span=self._span(stmt)))

    def _attribute(self, site: CallSite | None) -> Var | tuple[AttrKey, Buffer | None, AttrValue]:
        """The key, buffer and value of an attribute; the variable if it binds a loop to threads."""
        from tirlite.dsl.attributes import attribute_of, thread_attribute
        from tirlite.dsl.permissions import permissions

        if site is not None and site.word.name == "allow":
            return AttrKey.ALLOW, None, permissions(site)
        if site is not None and site.word.name == "unchecked":
            site.count(0, 0, "nothing")
            return AttrKey.UNCHECKED, None, None
        bound = thread_attribute(site)
        if bound is None:
            return attribute_of(site)
        var, tag = bound
        if site is not None and var not in self.tags:
            raise site.wrong(0, "the variable of a loop around")
        self.tags[var] = tag
        return var


def _literals(node: ast.expr) -> Sequence[object] | None:
    """The values of a tuple or list of literals; None for anything else."""
    if not isinstance(node, (ast.Tuple, ast.List)):
        return None
    try:
        found: Sequence[object] = ast.literal_eval(node)
    except ValueError:
        return None
    return found


def tail_returns(body: Sequence[ast.stmt], is_static: Callable[[ast.expr], bool]) -> set[ast.Return]:
    """The `return`s at the end of a body, or at the ends of the branches of a final `if tl.static(...)`."""
    found: set[ast.Return] = set()
    work = [body]
    while work:
        last = next(iter(work.pop()[-1:]), None)
        if isinstance(last, ast.Return):
            found.add(last)
        elif isinstance(last, ast.If) and is_static(last.test):
            work += [last.body, last.orelse]
    return found


def _several_variables(stmt: ast.For, span: Span) -> TirliteError:
    from tirlite.dsl.foreign_names import advice_on

    called = stmt.iter.func if isinstance(stmt.iter, ast.Call) else None
    advice = advice_on(called.id) if isinstance(called, ast.Name) else ""
    return NotInKernels("a loop over several variables", advice or "write `for i in range(n):`", span=span).error()


def _reads_variable(loop: ast.For, name: str) -> bool:
    """Whether the body of `loop` reads its variable `name`, outside of inner loops over the same name."""
    work: list[ast.AST] = list(loop.body)
    while work:
        node = work.pop()
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.For) and name in (each.id for each in names_in(node.target)):
            work += [node.iter, *node.orelse]
        else:
            work += ast.iter_child_nodes(node)
    return False


def _is_same(a: Message, b: Message) -> bool:
    return a.replaced(related=None) == b.replaced(related=None)


# Methods for statements with bodies are coroutines.
_RULES: Mapping[type[ast.stmt], Callable[[Statements, Any], Steps[None] | None]] = {
    ast.Assign: Statements.assign,
    ast.AnnAssign: lambda statements, stmt: statements.assignments.annotated(stmt),
    ast.AugAssign: lambda statements, stmt: statements.assignments.update(stmt),
    ast.Pass: lambda _statements, _stmt: None,
    ast.Return: Statements.returned,
    ast.Expr: Statements.evaluate,
    ast.Assert: Statements.assertion,
    ast.If: Statements.branch,
    ast.While: Statements.while_,
    ast.For: Statements.for_,
    ast.With: Statements.with_,
}
