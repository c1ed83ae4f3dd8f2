"""Proves that no plan fits into a capacity: finds a time at which too much is live."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.diag import CapacityError, KernelError, Message
from tirlite.plan.bound import Stretch, padded_peak, peak
from tirlite.plan.order import samples
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.record import record, replace
from tirlite.sizes import Dim, lower_bound

_SHOWN = 12
# Values of dims that are tried, and the largest for a dim without a limit.
_SAMPLES = 4
_MOST = 1 << 40


class CannotFit(Message):
    """At one time more bytes are live than there are, so no plan exists.

    Example: `tirlite plan lifetimes.csv --capacity 1024`, where two buffers of 1024 bytes live together.
    Fix: Give more memory, or make what is live at that time smaller.
    """

    raises = CapacityError
    title = "no plan fits {capacity} bytes{where}: at time {time}, {bytes} bytes are {what}"
    label = "`{largest}` is the largest of what is live then"
    help = "these are live then: {live}"

    capacity: int
    time: int
    bytes: int
    live: str
    largest: str
    where: str = ""
    what: str = "live at once"


@record
class Witness:
    """A memory, a time, the bytes live then, and the requests that are.

    `binding` are values of dims at which it is so, by name. If `is_padded`, the bytes count padding that no order of
    what is live can do without.
    """

    memory: str
    capacity: int
    time: int
    bytes: int
    live: tuple[str, ...]
    binding: tuple[tuple[str, int], ...] = ()
    is_padded: bool = False


def witness(problem: Problem) -> Witness | None:
    """A time at which more is live than a memory holds, for some values of the dims; None if none is found."""
    if all(pool.capacity is None for pool in problem.memories.values()):
        return None
    for binding in (*samples(problem.dims, _SAMPLES), _largest_values(problem.dims)) if problem.dims else ({},):
        try:
            found = _witness_at(problem.at(binding) if binding else problem)
        except KernelError:  # a division by zero
            continue
        if found is not None:
            return replace(found, binding=tuple((dim.name, value) for dim, value in binding.items()))
    return None


def _witness_at(problem: Problem) -> Witness | None:
    for name, pool in problem.memories.items():
        inside = [request for request in problem.requests if request.memories == (name,)]
        if pool.capacity is None or not inside:
            continue
        parts = [Stretch(r.live, r.size, r.memories, r.align) for r in inside]
        # What lies in a memory lies in one arena, or in several with padding between them: capacities count that.
        plain, padded = peak(problem, inside), padded_peak(parts, pool.align)
        assert isinstance(plain.size, int)
        is_padded = plain.size <= pool.capacity
        size, time = (padded.size, padded.time) if is_padded else (plain.size, plain.time)
        if size > pool.capacity:
            live = tuple(request.id for request in live_at(inside, time))
            return Witness(name, pool.capacity, time, size, live, is_padded=is_padded)
    return None


def _largest_values(dims: Sequence[Dim]) -> dict[Dim, int]:
    """The largest values that facts allow, or very large ones."""
    return {dim: _MOST // dim.multiple_of * dim.multiple_of if dim.high is None else dim.high for dim in dims}


def refuse_impossible(problem: Problem) -> None:
    """Raises CapacityError where no plan can fit."""
    found = witness(problem)
    if found is not None:
        listed = ", ".join(f"`{name}`" for name in found.live[:_SHOWN])
        more = f" and {len(found.live) - _SHOWN} more" if len(found.live) > _SHOWN else ""
        largest = largest_of([problem.by_id[name] for name in found.live])
        told = ", ".join(f"{name} = {value}" for name, value in found.binding)
        what = "needed at once, with padding between them" if found.is_padded else "live at once"
        where = f" where {told}" if told else ""
        raise CannotFit(found.capacity, found.time, found.bytes, listed + more, largest, where, what).error()


def largest_of(requests: Sequence[Request]) -> str:
    """The id of the largest request, the first of several; a symbolic size counts by its lower bound."""
    return max(requests, key=lambda r: lower_bound(r.size) or 0).id if requests else ""


def live_at(requests: Sequence[Request], time: int) -> list[Request]:
    """The requests that take bytes at that time."""
    return [r for r in requests if r.size != 0 and any(low <= time < high for low, high in r.live)]
