"""Finds the author's names for the variables of the loops around a statement, for messages of faults.

Schedule steps make names with dots, which authors cannot: `j.inner` of a split takes the values of `j`, as do `j.first`
and other parts of its loop, and a fused `i.j` starts with lets of `i` and `j`. A `for` with a `break` becomes a `while`
that first reads its counter, and one with a computed step counts from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import TypeAlias

from tirlite.diag import Span
from tirlite.ir.expr import Add, Load, Mul, Var
from tirlite.ir.stmt import For, Let, Stmt, Store, View, While

# A variable, and the span of its loop.
Counted: TypeAlias = "tuple[Var, Span | None]"

_PARTS = (".inner", ".first", ".last", ".rest", ".before", ".else")
# The most loops over threads that may come between a loop and its let, as barriers move loops inwards.
_MOST_THREADS = 8


def counted_by(loop: For | While) -> tuple[Counted, ...]:
    """The variables known to the author that have a value in each iteration of a loop; maybe none."""
    stmts = loop.body.stmts
    if isinstance(loop, For):
        found = [loop.var] if author_name(loop.var) else _fused(loop)
    else:
        found, stmts = _read_first(stmts), stmts[2:]
    stepped = (_stepped(var, stmts) for var in found)
    return tuple((var, loop.span) for var in stepped if var is not None)


def _fused(loop: For) -> list[Var]:
    """The variables of two loops that were fused."""
    lets = [stmt.var for stmt in loop.body.stmts[:2] if isinstance(stmt, Let)]
    return [*filter(author_name, lets)] if loop.var.name == ".".join(var.name for var in lets) else []


def _read_first(stmts: Sequence[Stmt]) -> list[Var]:
    """The `i` of a body that begins with `i = counter` and `counter = i + step`."""
    if len(stmts) < 2 or not isinstance(stmts[0], Let) or not isinstance(stmts[1], Store):
        return []
    read, store = stmts[0].value, stmts[1]
    is_read = isinstance(read, Load) and not read.indices and read.buffer is store.buffer
    is_next = isinstance(store.value, Add) and store.value.a is stmts[0].var
    return [stmts[0].var] if is_read and is_next else []


def _stepped(var: Var, stmts: Sequence[Stmt]) -> Var | None:
    """The author's variable of a loop with a computed step, if `var` counts its iterations; else `var`.

    None if it is computed in inner loops, as those over threads that a barrier has moved.
    """
    direct = _over(var, stmts)
    if direct is not None:
        return direct
    inside = [stmt for stmt in stmts if isinstance(stmt, For)]
    for _ in range(_MOST_THREADS + len(inside)):
        if not inside:
            break
        stmts = inside.pop().body.stmts
        if _over(var, stmts) is not None:
            return None
        inside += [stmts[0]] if len(stmts) == 1 and isinstance(stmts[0], For) else []
    return var


def _over(var: Var, stmts: Iterable[Stmt]) -> Var | None:
    """The variable of the author's name that leading lets compute from `var`: `start + var * step`."""
    for let in takewhile(lambda stmt: isinstance(stmt, Let | View), stmts):
        if isinstance(let, Let) and let.var.name == author_name(var) and isinstance(let.value, Add):
            distance = let.value.b
            if isinstance(distance, Mul) and distance.a is var:
                return let.var
    return None


def author_name(var: Var) -> str:
    """The author's name for a loop variable; empty if only a schedule knows it."""
    name = var.name
    while name.endswith(_PARTS):
        name = name.rpartition(".")[0]
    return "" if "." in name else name


def in_written_order(counted: Iterable[Counted]) -> list[Var]:
    """Variables in the order of their loops in the source, as loops over threads may have been moved inwards.

    If some loops have no span, they are sorted by name.
    """
    found = [*counted]
    places = [(span.source.name, span.line, span.column) for _, span in found if span is not None]
    keys = places if len(places) == len(found) else [author_name(var) for var, _ in found]
    return [found[number][0] for number in sorted(range(len(found)), key=keys.__getitem__)]


def at_loops(loops: Iterable[tuple[str, int]]) -> str:
    """The suffix of a message that names the loops around and their values; empty if there are none."""
    values = ", ".join(f"{name} = {value}" for name, value in loops)
    return f", at {values}" if values else ""
