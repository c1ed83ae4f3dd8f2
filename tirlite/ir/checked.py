"""Marks of indices: `tl.checked(i)` is i, and must lie in bounds; and the assert that makes up for some of them.

`x[tl.masked(i, on)]` touches the elements at those lanes of `i` that are on, and no others.
"""

from __future__ import annotations

from tirlite.diag import Message
from tirlite.ir.dtype import DType
from tirlite.ir.expr import Call, Expr, IntImm, Var
from tirlite.ir.faults import AssertFailed
from tirlite.ir.node import Node
from tirlite.ir.op import Op

# What an assert says at the top of a function. A call that breaks it is run by another version of the function, in
# which loops run in order and the accesses that the assert speaks for are checked where they stand.
ELSE_IN_ORDER = "else in order, with checks"


# What one says that stands at the top of a part of a function, for calls whose sizes are for the other part.
ELSE_IN_THE_OTHER = "else in the other part"


def asks_for_order(message: Message) -> bool:
    """Whether a fault is that of such an assert."""
    return isinstance(message, AssertFailed) and message.message == ELSE_IN_ORDER


def asks_for_the_other(message: Message) -> bool:
    """Whether a fault is that of the assert at the top of a part."""
    return isinstance(message, AssertFailed) and message.message == ELSE_IN_THE_OTHER


def is_checked(index: object) -> bool:
    """Whether an index is marked."""
    return type(index) is Call and index.op is Op.CHECKED


def bare(index: Expr) -> Expr:
    """An index without its mark."""
    return index.args[0] if type(index) is Call and index.op is Op.CHECKED else index


def checked(index: Expr) -> Expr:
    """An index with a mark."""
    return index if is_checked(index) else Call(index.dtype, Op.CHECKED, (index,))


def has_check(node: Node) -> bool:
    """Whether a node is marked, or one below it."""
    stack = [node]
    while stack:
        each = stack.pop()
        kind = type(each)
        if kind is Call and each.op is Op.CHECKED:  # type: ignore[attr-defined]
            return True
        if kind is not Var and kind is not IntImm:
            stack += each.children()
    return False


def unchecked(expr: Expr) -> Expr:
    """An expression without any marks."""
    from tirlite.ir.rewrite import rewrite  # most kernels need none

    return rewrite(expr, {Call: bare})


def masked(index: Expr, on: Expr) -> Expr:
    """An index of several lanes, of which those that are not `on` access nothing. A load gives 0 there."""
    assert fits_mask(index.dtype, on.dtype), (index, on)
    return Call(index.dtype, Op.MASKED, (index, on))


def mask_of(indices: tuple[Expr, ...]) -> Expr | None:
    """Which lanes of an access are on; None where all are."""
    last = bare(indices[-1]) if indices else None
    return last.args[1] if type(last) is Call and last.op is Op.MASKED else None


def unmasked(index: Expr) -> Expr:
    """An index without its mask, and without a mark that it is checked."""
    inner = bare(index)
    return inner.args[0] if type(inner) is Call and inner.op is Op.MASKED else inner


def fits_mask(index: DType, on: DType) -> bool:
    """Whether there is a bool for each lane of an index, of which there are several."""
    return index.lanes > 1 and on.is_bool and on.lanes == index.lanes
