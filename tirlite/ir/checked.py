"""Marks on indices, and asserts that replace checks.
`tl.checked(i)` is i, which is checked to be in bounds. `x[tl.masked(i, on)]` accesses only the lanes of `i` that are
on.
"""

from __future__ import annotations

from tirlite.diag import Message
from tirlite.ir.dtype import DType
from tirlite.ir.expr import Call, Expr, IntImm, Var
from tirlite.ir.faults import AssertFailed
from tirlite.ir.node import Node
from tirlite.ir.op import Op

# The message of an assert at the top of a function that replaces checks of accesses. A call that breaks it is run by
# the sequential version of the function, which has these checks.
ELSE_IN_ORDER = "else in order, with checks"


# The message of an assert at the top of a branch of a function: calls that break it are for the other branch.
ELSE_IN_THE_OTHER = "else in the other part"


def asks_for_order(message: Message) -> bool:
    """Whether a fault is from an assert with `ELSE_IN_ORDER`."""
    return isinstance(message, AssertFailed) and message.message == ELSE_IN_ORDER


def asks_for_the_other(message: Message) -> bool:
    """Whether a fault is from an assert with `ELSE_IN_THE_OTHER`."""
    return isinstance(message, AssertFailed) and message.message == ELSE_IN_THE_OTHER


def is_checked(index: object) -> bool:
    """Whether an index is marked for a check."""
    return type(index) is Call and index.op is Op.CHECKED


def bare(index: Expr) -> Expr:
    """The index without its mark."""
    return index.args[0] if type(index) is Call and index.op is Op.CHECKED else index


def checked(index: Expr) -> Expr:
    """The index marked for a check."""
    return index if is_checked(index) else Call(index.dtype, Op.CHECKED, (index,))


def has_check(node: Node) -> bool:
    """Whether a node or one below it is marked for a check."""
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
    """The expression without any marks."""
    from tirlite.ir.rewrite import rewrite  # most kernels need none

    return rewrite(expr, {Call: bare})


def masked(index: Expr, on: Expr) -> Expr:
    """A vector index under the mask `on`; lanes that are off access nothing, and a load gives 0 there."""
    assert fits_mask(index.dtype, on.dtype), (index, on)
    return Call(index.dtype, Op.MASKED, (index, on))


def mask_of(indices: tuple[Expr, ...]) -> Expr | None:
    """The mask of an access; None if it has none."""
    last = bare(indices[-1]) if indices else None
    return last.args[1] if type(last) is Call and last.op is Op.MASKED else None


def unmasked(index: Expr) -> Expr:
    """The index without its mask and its mark."""
    inner = bare(index)
    return inner.args[0] if type(inner) is Call and inner.op is Op.MASKED else inner


def fits_mask(index: DType, on: DType) -> bool:
    """Whether `on` has a bool for each lane of a vector index."""
    return index.lanes > 1 and on.is_bool and on.lanes == index.lanes
