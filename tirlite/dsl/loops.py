"""Reads the bounds, the step and the kind of a loop from the head of a `for`."""

from __future__ import annotations

import ast

from tirlite.diag import Message
from tirlite.dsl.calls import CallSite
from tirlite.dsl.convert import integer
from tirlite.dsl.expression import Expressions
from tirlite.dsl.parameters import described
from tirlite.dsl.vocabulary import LOOPS
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Expr, IntImm
from tirlite.ir.stmt import ForKind


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
    """The step of a loop is not a constant, or zero.

    Example: `for i in range(0, n, k):`, where `k` is a parameter.
    Fix: Write a constant other than 0, or loop over the number of steps and multiply.
    """

    code = "bad-step"
    title = "the step of a loop is {given}"
    help = "a step is a constant integer of type i64 other than 0"

    given: str


def header(stmt: ast.For, expressions: Expressions) -> tuple[Expr, Expr, int, ForKind, str]:
    """Start, stop, step, kind and thread tag of a loop."""
    site = expressions.word_call(stmt.iter)
    kind = LOOPS.get(site.word.name) if site is not None else None
    if site is None or kind is None:
        given = expressions.places.text(stmt.iter)
        raise BadLoop(f"`{given}`", span=expressions.span(stmt.iter)).error()
    site.only()
    zero = IntImm(i64, 0)
    if kind is ForKind.THREAD:
        site.count(2, 2, 'a tag and an extent, as in tl.thread("threadIdx.x", 32)')
        if not isinstance(site.args[0], str) or not site.args[0]:
            raise site.wrong(0, 'the tag of a thread, as in "threadIdx.x"')
        return zero, _bound(site, 1), 1, kind, site.args[0]
    site.count(1, 3, "one to three arguments")
    step = site.args[2] if len(site.args) == 3 else 1
    if isinstance(step, IntImm):
        step = step.value
    if isinstance(step, bool) or not isinstance(step, int) or not i64.min <= step <= i64.max or step == 0:
        raise BadStep(described(step), span=site.spans[2]).error()
    if len(site.args) == 1:
        return zero, _bound(site, 0), 1, kind, ""
    return _bound(site, 0), _bound(site, 1), step, kind, ""


def _bound(site: CallSite, position: int) -> Expr:
    return integer(site.args[position], "the bound of a loop", site.spans[position]).astype(i64)
