"""How hard LLVM tries in a test: what code computes is the same, and full effort takes LLVM many times as long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar
from unittest.mock import patch

from tirlite.codegen import Effort
from tirlite.codegen.llvm import machine

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def effort(wanted: Effort) -> Iterator[None]:
    """Whatever is compiled meanwhile is compiled so."""
    with patch.object(machine, "effort_for", lambda extent: wanted):
        yield


@contextmanager
def effort_at_most(wanted: Effort) -> Iterator[None]:
    """Whatever is compiled meanwhile is compiled so, or with less effort where it would be."""
    order, chosen = [*Effort], machine.effort_for
    with patch.object(machine, "effort_for", lambda extent: max(chosen(extent), wanted, key=order.index)):
        yield


def at_effort(wanted: Effort, kernel: Callable[P, T]) -> Callable[P, T]:
    """The kernel, compiled so where a call has to compile it."""

    def call(*args: P.args, **named: P.kwargs) -> T:
        with effort(wanted):
            return kernel(*args, **named)

    return call
