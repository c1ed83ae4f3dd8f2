"""Finds the calls in a function and the functions that it calls."""

from __future__ import annotations

from typing import TypeVar, cast

from tirlite.ir.kernel_call import Function, KernelCall
from tirlite.ir.stmt import Allocate, Stmt, Store
from tirlite.ir.walk import statements_of

F = TypeVar("F", bound=Function)

# What most programs are made of, and what calls nothing.
_LEAVES: frozenset[type[Stmt]] = frozenset((Allocate, Store))


def calls_in(body: Stmt) -> list[KernelCall]:
    """The calls in a statement, in program order."""
    return list(statements_of(body, KernelCall))


def callees(func: F) -> tuple[F, ...]:
    """The functions that `func` calls, itself or through others, each once, and each after those that it calls.

    No function calls itself: it would have to be there before it is made.
    """
    return tuple(each for each in closure_of(func) if each is not func)


def closure_of(func: F) -> tuple[F, ...]:
    """The `callees` of `func`, then `func`."""
    done: dict[Function, None] = {}
    stack: list[tuple[Function, bool]] = [(func, False)]
    while stack:
        each, is_ready = stack.pop()
        if is_ready:
            done[each] = None
        elif each not in done:
            stack.append((each, True))
            stack += [(callee, False) for callee in reversed(_called(each.body)) if callee not in done]
    return cast("tuple[F, ...]", tuple(done))


def _called(body: Stmt) -> dict[Function, None]:
    """What a statement calls, in the order in which it is first met. A shared statement is entered once."""
    called: dict[Function, None] = {}
    entered: set[Stmt] = set()
    stack = [body]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, KernelCall):
            called[stmt.callee] = None
        elif stmt not in entered:
            entered.add(stmt)
            inside = [each for each in stmt.children() if isinstance(each, Stmt) and type(each) not in _LEAVES]
            stack.extend(reversed(inside))
    return called
