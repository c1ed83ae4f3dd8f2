"""Tells where a function prints without an order: in a loop whose iterations have none, or in an expression."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.diag import KernelError, Message
from tirlite.ir.callees import closure_of
from tirlite.ir.expr import Call
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.printing import is_print, prints_in
from tirlite.ir.stmt import For, ForKind

_ORDERED = (ForKind.SERIAL, ForKind.UNROLLED)


class PrintOrder(Message):
    """`print` stands in a loop whose iterations have no order, or that run at the same time.

    Example: `for i in tl.parallel(n): print(i)`; so in loops over `tl.vectorized`, `tl.reduce` and `tl.thread`.
    Fix: Write `range` while you look, or store the values into an output and print that.
    """

    code = "print-order"
    raises = KernelError
    title = "{what} in the loop over `{loop}`, whose iterations have no order"
    label = "printed here"
    related_label = "the loop"
    help = "write `for {loop} in range(...)` while you look, or store what is to be seen into an output"

    what: str
    loop: str


class PrintPlace(Message):
    """A call that prints stands inside of an expression.

    Example: `Store(x, (i,), Call(i32, Op.PRINT, (StringImm("a"),)))`.
    Fix: Make it a statement of its own, as the value of an Evaluate.
    """

    code = "print-place"
    title = "`print` has no value"
    help = "it is a statement of its own"


def print_violations(func: PrimFunc) -> Iterator[Message]:
    """What is wrong with the places of calls that print, in program order; of functions that are called, too."""
    stack: list[tuple[Node, For | None]] = [(func.body, None)]
    while stack:
        node, loop = stack.pop()
        if is_print(node):
            if loop is not None:
                yield PrintOrder("`print` stands", loop.var.name, span=node.span, related=loop.span)
            stack += ((arg, loop) for arg in node.value.children()[::-1])
            continue
        if isinstance(node, Call) and node.op is Op.PRINT:
            yield PrintPlace()
        if isinstance(node, KernelCall) and loop is not None and _prints(node):
            what = f"`{node.callee.name}`, which prints, is called"
            yield PrintOrder(what, loop.var.name, span=node.span, related=loop.span)
        if loop is None and isinstance(node, For) and node.kind not in _ORDERED:
            loop = node
        stack += ((child, loop) for child in node.children()[::-1])


def _prints(call: KernelCall) -> bool:
    return any(next(prints_in(each.body), None) is not None for each in closure_of(call.callee))
