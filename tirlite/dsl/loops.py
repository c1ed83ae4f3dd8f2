"""Parses the bounds, the step and the kind of a loop from the head of a `for`, and makes the loop."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tirlite.diag import Message, Span
from tirlite.dsl.convert import integer
from tirlite.dsl.expression import Expressions
from tirlite.dsl.parameters import described
from tirlite.dsl.vocabulary import LOOPS, CallSite
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GT, LT, NE, Add, And, Buffer, Expr, FloorDiv, IntImm, Load, Mul, Sub, Var
from tirlite.ir.stmt import Allocate, Assert, For, ForKind, Let, SeqStmt, Stmt, Store, While
from tirlite.record import record, replace


class BadLoop(Message):
    """A `for` goes over something other than a range.

    Example: `for value in x:`.
    Fix: Loop over indices: `for i in range(n):`.
    """

    title = "a loop goes over {given}"
    help = "write {instead}; tl.parallel, tl.vectorized, tl.unroll and tl.thread take the place of range"

    instead: str = "`for i in range(n):`"


class BadStep(Message):
    """The step of a loop is zero, or not an integer.

    Example: `for i in range(0, n, 0):`.
    Fix: Give an integer other than 0. One that is computed is checked when the kernel runs.
    """

    title = "the step of a loop is {given}"
    help = "a step is an integer other than 0, of type i64 if it is a constant"


class LeavesLoop(Message):
    """A `break` or a `return` stands in a loop whose iterations have no order, or are written out.

    Example: `for i in tl.parallel(n):` with `if x[i] < 0: break` in it.
    Fix: Write the loop over `range`, or let each iteration do its part under an `if`. `continue` may stand anywhere.
    """

    title = "`{jump}` cannot leave a loop over {loop}"
    help = "write a loop over `range`, whose iterations run in order; `continue` is allowed in any loop"


@record
class LeftLoop:
    """A loop that a jump leaves: it runs as long as `flag` is true. `jump` is the first that clears it."""

    flag: str
    jump: ast.Break | ast.Return

    @property
    def word(self) -> str:
        return type(self.jump).__name__.lower()


@record
class Head:
    """The bounds, step and kind of a loop. A computed step is an expression."""

    start: Expr
    stop: Expr
    step: int | Expr = 1
    kind: ForKind = ForKind.SERIAL
    tag: str = ""

    def loop(self, var: Var, body: SeqStmt, span: Span, going: Expr | None) -> Sequence[Stmt]:
        """The statements of the loop over `var`. If jumps leave it, it runs while `going` holds."""
        made: list[Stmt] = []
        head = self
        if isinstance(self.step, Expr):
            start, stop, step = (_held(each, name, made) for each, name in zip(
                (self.start, self.stop, self.step), ("start", "stop", "step"), strict=True))  # fmt: skip
            if not (isinstance(step, Var) and step.dim is not None and step.dim.min > 0):
                made.append(Assert(NE(step, _ZERO), "the step of a loop is not 0", span=span))
            counter = Var(var.name, i64)
            body = SeqStmt((Let(var, Add(start, Mul(counter, step)), span=span), *body.stmts))
            head, var = replace(self, start=_ZERO, stop=Sub(_ZERO, FloorDiv(Sub(start, stop), step)), step=1), counter
        assert isinstance(head.step, int)
        if going is None:
            made.append(For(var, head.start, head.stop, body, head.kind, head.step, head.tag, span=span))
            return made
        place, stop = Buffer(var.name, i64, (), "local"), _held(head.stop, "stop", made)
        test = (LT if head.step > 0 else GT)(Load(place, ()), stop)
        onward = Store(place, (), Add(var, IntImm(i64, head.step)), span=span)
        inside = SeqStmt((Let(var, Load(place, ()), span=span), onward, *body.stmts))
        made += [Allocate(place, span=span), Store(place, (), head.start, span=span)]
        made.append(While(And(going, test), inside, span=span))
        return made


_ZERO = IntImm(i64, 0)


def _held(value: Expr, name: str, stmts: list[Stmt]) -> Expr:
    """`value` bound to a new variable, with a let added to `stmts`, unless it is immutable."""
    if isinstance(value, (IntImm, Var)):
        return value
    var = Var(name, value.dtype)
    stmts.append(Let(var, value))
    return var


def header(stmt: ast.For, expressions: Expressions) -> Head:
    """The head of the loop `stmt`."""
    site = expressions.word_call(stmt.iter)
    kind = LOOPS.get(site.word.name) if site is not None else None
    if site is None or kind is None:
        raise _bad_loop(stmt.iter, expressions)
    site.only()
    if kind is ForKind.THREAD:
        site.count(2, 2, 'a tag and an extent, as in tl.thread("threadIdx.x", 32)')
        if not isinstance(site.args[0], str) or not site.args[0]:
            raise site.wrong(0, 'the tag of a thread, as in "threadIdx.x"')
        return Head(_ZERO, _bound(site, 1), 1, kind, site.args[0])
    site.count(1, 3, "one to three arguments")
    if len(site.args) == 1:
        return Head(_ZERO, _bound(site, 0), 1, kind)
    return Head(_bound(site, 0), _bound(site, 1), _step(site) if len(site.args) == 3 else 1, kind)


def _bad_loop(over: ast.expr, expressions: Expressions) -> Exception:
    """The error for a loop over elements or over a number."""
    given, instead = expressions.origin.text(over), "`for i in range(n):`"
    value = expressions.value(over) if isinstance(over, ast.Name) else None
    if isinstance(value, Buffer):
        instead = f"`for i in range(len({given})):`, and read `{given}[i]` in it"
    elif isinstance(value, Expr):
        instead = f"`for i in range({given}):`"
    elif isinstance(over, ast.Tuple | ast.List):
        instead = f"`for i in tl.static({given}):`, which is unrolled"
    return BadLoop(f"`{given}`", instead, span=expressions.span(over)).error()


def _step(site: CallSite) -> int | Expr:
    step = site.args[2]
    if isinstance(step, IntImm):
        step = step.value
    if isinstance(step, Expr) and step.dtype.is_integer and step.dtype.lanes == 1:
        return step.astype(i64)
    if isinstance(step, bool) or not isinstance(step, int) or not i64.min <= step <= i64.max or step == 0:
        raise BadStep(described(step), span=site.spans[2]).error()
    return step


def _bound(site: CallSite, position: int) -> Expr:
    return integer(site.args[position], "the bound of a loop", site.spans[position]).astype(i64)
