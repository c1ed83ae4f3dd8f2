"""Evaluates expressions under `tl.static` by Python, at translation time."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import CodeType, SimpleNamespace

from tirlite.diag import Message, Span
from tirlite.dsl.parameters import described
from tirlite.dsl.scope import Scope
from tirlite.dsl.surroundings import Surroundings, meaning
from tirlite.dsl.syntax import NotInKernels, SourceMap
from tirlite.ir.expr import Buffer, Expr, FloatImm, IntImm

# The most iterations of a loop over tl.static.
MOST_ROUNDS = 4096
# The size of the cache of compiled expressions, which kernel factories evaluate repeatedly.
_KEPT = 1 << 10


class NotStatic(Message):
    """An expression under tl.static needs what is known only when the kernel runs.

    Example: `tl.static(i + 1)`, where `i` is the variable of a `range` loop.
    """

    title = "`{name}` is {given}, which has no value before the kernel runs"
    help = "`tl.static` takes constants from outside the kernel, and variables of loops over `tl.static(...)`"


class StaticFailed(Message):
    """Python raised an error while it evaluated an expression under tl.static.

    Example: `tl.static(TAPS[9])`, where `TAPS` has three elements.
    Fix: Try the expression in Python, outside of the kernel.
    """

    title = "Python cannot evaluate this: {reason}"


class NotIterable(Message):
    """A loop over tl.static goes over something that has no elements, or too many of them.

    Example: `for k in tl.static(3):`.
    Fix: Loop over a range, a tuple or a list: `for k in tl.static(range(3)):`.
    """

    code = "static-loop"
    title = "a loop over tl.static goes over {given}"
    help = "give it a range, a tuple or a list of at most {most} elements; the loop is unrolled"


class Unpacking(Message):
    """The values of one side of an assignment or loop are not as many as the names of the other.

    Example: `a, b = f(x)`, where `f` returns three values.
    Fix: Write as many names as there are values.
    """

    title = "{given} cannot be unpacked into {names} names"


def evaluated(
    node: ast.expr, origin: SourceMap, surroundings: Surroundings, scope: Scope, local: Mapping[str, object] | set[str]
) -> object:
    """The Python value of `node`; of names `local` to the kernel, only constants are available."""
    if not surroundings.executes:
        advice = "write the value itself: text is only read, nothing in it is executed"
        raise NotInKernels("tl.static in a text", advice, span=origin.span(node)).error()
    surroundings.lookups.is_open = True
    names: dict[str, object] = {"__builtins__": vars(builtins)}
    free, code = _compiled(node, origin.source.name)
    for each in free:
        span = origin.span(each)
        if each.id in local:
            names[each.id] = _known(each.id, scope.read(each.id, span), span)
        else:
            names[each.id] = surroundings.raw(each.id, span, local)
    try:
        value = eval(code, names)
    except Exception as error:
        raise StaticFailed(f"{type(error).__name__}: {error}", span=origin.span(node)).error() from None
    return value if isinstance(value, (list, range, dict, set)) else meaning(value, "tl.static(...)", origin.span(node))


@lru_cache(_KEPT)
def _compiled(node: ast.expr, file: str) -> tuple[list[ast.Name], CodeType]:
    """The free names of an expression, and its code."""
    parts = list(ast.walk(node))
    bound = {each.id for each in parts if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    bound |= {each.arg for each in parts if isinstance(each, ast.arg)}
    free = [each for each in parts if isinstance(each, ast.Name) and each.id not in bound]
    return free, compile(ast.Expression(node), file, "eval")


def _known(name: str, value: object, span: Span) -> object:
    if isinstance(value, (IntImm, FloatImm)):
        return value.value
    if isinstance(value, Buffer):
        shape = tuple(each.value if isinstance(each, IntImm) else each for each in value.shape)
        return SimpleNamespace(shape=shape, dtype=value.dtype)
    if isinstance(value, Expr):
        raise NotStatic(name, described(value), span=span).error()
    return value


def truth(value: object, span: Span) -> bool:
    """The truth value of a static condition."""
    if isinstance(value, (Expr, Buffer)):
        raise NotStatic("tl.static(...)", described(value), span=span).error()
    return bool(value)


def rounds(value: object, span: Span) -> Sequence[object]:
    """The values of a loop over `value`."""
    if not isinstance(value, (tuple, list, range)):
        raise NotIterable(described(value), MOST_ROUNDS, span=span).error()
    if value[MOST_ROUNDS:]:  # not `len`, which fails for huge ranges
        raise NotIterable(f"more than {MOST_ROUNDS} elements", MOST_ROUNDS, span=span).error()
    return [meaning(each, "an element", span) for each in value]


def unpacked(value: object, names: int, span: Span) -> Sequence[object]:
    """The `names` values in `value`."""
    if not isinstance(value, tuple):
        raise Unpacking(described(value), names, span=span).error()
    if len(value) != names:
        raise Unpacking(f"a tuple of {len(value)}", names, span=span).error()
    return value
