"""CheckReductions refuses loops over `tl.reduce` whose iterations do more than combine values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.diag import KernelError, Message
from tirlite.ir import For, ForKind, PrimFunc, Stmt, Store, statements_of
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass

if TYPE_CHECKING:
    from tirlite.analysis.regrouping import Obstacle


class ReductionRead(Message):
    """What a reduction combines into is read by its iterations.

    Example: `total += x[i]`, and then `y[i] = total`, in `for i in tl.reduce(n):`.
    Fix: Read it behind the loop; where each iteration needs what came before, write `range`.
    """

    code = "reduction-read"
    raises = KernelError
    title = "`{buffer}` is combined over `{loop}`, and read by its iterations"
    label = "read here"
    related_label = "combined here"
    help = "iterations of tl.reduce may be regrouped: read `{buffer}` behind the loop, or write range"

    buffer: str
    loop: str


class ReductionMixture(Message):
    """A reduction combines into one buffer by two operations.

    Example: `t += x[i]`, and then `t = max(t, 0)`, in `for i in tl.reduce(n):`.
    Fix: Combine into two, or make the loop serial with `range`.
    """

    code = "reduction-mixture"
    raises = KernelError
    title = "`{buffer}` is combined over `{loop}` by {first}, and {second} here"
    label = "{second} here"
    related_label = "{first} here"
    help = "one operation throughout: combine into two buffers, or write range"

    buffer: str
    loop: str
    first: str
    second: str


class ReductionCarried(Message):
    """A reduction writes what other iterations may touch too, and does not combine it with what is there.

    Example: `last = x[i]` in `for i in tl.reduce(n):`.
    Fix: Write `last = last + x[i]` or the like, write elements of the iteration's own, as `y[i]`, or make the loop
    serial with `range`.
    """

    code = "reduction-carried"
    raises = KernelError
    title = "`{buffer}` is written by the iterations of `{loop}`, and not combined"
    label = "other iterations may touch the same element"
    help = "update it by one of + - * min max & | ^, index it by `{loop}`, or write range"

    buffer: str
    loop: str


@record
class CheckReductions(FactsPass):
    """Refuses a function in normal form with a `tl.reduce` loop that may not be regrouped, telling the accesses."""

    name: str = "check-reductions"

    def rewritten(self, facts: Facts) -> PrimFunc:
        for loop in statements_of(facts.func.body, For):
            if loop.kind is not ForKind.REDUCE:
                continue
            from tirlite.analysis.regrouping import updates_in

            found = updates_in(loop, facts)
            if not isinstance(found, tuple):
                raise message_of(found, loop.var.name).error()
        return facts.func


def message_of(found: Obstacle, loop: str) -> Message:
    from tirlite.analysis.regrouping import Mixture, Reading

    if isinstance(found, Reading):
        store = found.update.store
        return ReductionRead(store.buffer.name, loop, span=found.stmt.span, related=store.span)
    if isinstance(found, Mixture):
        first, second = found.first, found.second
        return ReductionMixture(
            first.buffer.name, loop, _told(first), _told(second), span=second.span, related=first.span
        )
    return ReductionCarried(found.buffer.name, loop, span=found.stmt.span)


def _told(stmt: Stmt) -> str:
    from tirlite.analysis.reductions import SPELLING, update_of

    update = update_of(stmt) if isinstance(stmt, Store) else None
    return "assigned" if update is None else f"`{SPELLING[update.operation]}`"
