"""Runs a generator-coroutine to its result: recursion whose depth is bounded by memory alone.

Write the recursion as a generator that yields its recursive calls and returns its result:

    def depth(node: Node) -> Steps[int]:
        deepest = 0
        for child in node.children():
            deepest = max(deepest, (yield depth(child)))
        return deepest + 1

    run(depth(root))
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

# Yields another Steps of any result type, and receives its result, which Python's types cannot express.
Steps: TypeAlias = Generator[Any, Any, T]


def in_turn(several: Iterable[Steps[T]]) -> Steps[list[T]]:
    """The results of several coroutines, run one after the other."""
    results = []
    for steps in several:
        results.append((yield steps))
    return results


def run(steps: Steps[T]) -> T:
    """The result of `steps`; each coroutine that it yields is run first, and its result sent back.

    An exception of a callee is raised in its caller at the `yield`, as in a plain call.
    """
    stack: list[Steps[Any]] = [steps]
    result: Any = None
    error: BaseException | None = None
    while stack:
        top = stack[-1]
        try:
            callee = top.send(result) if error is None else top.throw(error)
        except StopIteration as stop:
            stack.pop()
            result, error = stop.value, None
        except Exception as raised:
            stack.pop()
            result, error = None, raised
        else:
            stack.append(callee)
            result = error = None
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]
