"""Proof that no plan fits: a problem in, the time at which too much is live out."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.diag import CapacityError, Message
from tirlite.plan.bound import peak
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.record import record
from tirlite.sizes import lower_bound

_SHOWN = 12


class CannotFit(Message):
    """At one time more bytes are live than there are, so no plan exists.

    Example: `tirlite plan lifetimes.csv --capacity 1024`, where two buffers of 1024 bytes live together.
    Fix: Give more memory, or make what is live at that time smaller.
    """

    code = "cannot-fit"
    raises = CapacityError
    title = "no plan fits {capacity} bytes: at time {time}, {bytes} bytes are live at once"
    label = "`{largest}` is the largest of what is live then"
    help = "these are live then: {live}"

    capacity: int
    time: int
    bytes: int
    live: str
    largest: str


@record
class Witness:
    """A memory, a time, the bytes live then, and the requests that are."""

    memory: str
    capacity: int
    time: int
    bytes: int
    live: tuple[str, ...]


def witness(problem: Problem) -> Witness | None:
    """Where more is live than one memory holds; None where sizes are symbolic, or that is nowhere."""
    for name, pool in problem.memories.items():
        bound_here = [request for request in problem.requests if request.memories == (name,)]
        if pool.capacity is None or not bound_here:
            continue
        most = peak(problem, bound_here)
        if isinstance(most.size, int) and most.size > pool.capacity:
            live = tuple(request.id for request in live_at(bound_here, most.time))
            return Witness(name, pool.capacity, most.time, most.size, live)
    return None


def refuse_impossible(problem: Problem) -> None:
    """Raises CapacityError where no plan can fit."""
    found = witness(problem)
    if found is not None:
        listed = ", ".join(f"`{name}`" for name in found.live[:_SHOWN])
        more = f" and {len(found.live) - _SHOWN} more" if len(found.live) > _SHOWN else ""
        largest = largest_of([problem.by_id[name] for name in found.live])
        raise CannotFit(found.capacity, found.time, found.bytes, listed + more, largest).error()


def largest_of(requests: Sequence[Request]) -> str:
    """The id of the largest request, the first of several; a symbolic size counts by its lower bound."""
    return max(requests, key=lambda r: lower_bound(r.size) or 0).id if requests else ""


def live_at(requests: Sequence[Request], time: int) -> list[Request]:
    """Those that take bytes at that time."""
    return [r for r in requests if r.size != 0 and any(low <= time < high for low, high in r.live)]
