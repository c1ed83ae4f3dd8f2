"""A function in, the functions that it calls out; or the function with others called in their stead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from tirlite.ir.kernel_call import Function, KernelCall
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import Stmt
from tirlite.ir.walk import statements

F = TypeVar("F", bound=Function)


def calls_in(body: Stmt) -> list[KernelCall]:
    """The calls in a statement, in program order."""
    return [stmt for stmt in statements(body) if isinstance(stmt, KernelCall)]


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
            called = dict.fromkeys(call.callee for call in calls_in(each.body))
            stack += [(callee, False) for callee in reversed(called) if callee not in done]
    return cast("tuple[F, ...]", tuple(done))


def bottom_up(func: F, change: Callable[[F], F]) -> F:
    """What `change` makes of `func`, after each of its callees has been replaced by what it makes of that."""
    changed: dict[Function, Function] = {}
    for each in closure_of(func):
        changed[each] = change(calling(each, changed))
    return cast(F, changed[func])


def calling(func: F, instead: Mapping[Function, Function]) -> F:
    """`func` with other functions in its own calls."""

    def call(node: KernelCall) -> Node:
        callee = instead.get(node.callee, node.callee)
        return node if callee is node.callee else node.replaced(callee=callee)

    is_same = all(new is old for old, new in instead.items())
    return func if is_same else cast(F, rewrite(func, {KernelCall: call}))
