"""Strategy `share`: whole slots, the best of several ways to share them. Requests of one memory in, slots out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from tirlite.plan.best_fit import best_fit
from tirlite.plan.by_size import by_size
from tirlite.plan.compare import proved_at_most
from tirlite.plan.items import items_of, items_of_slots
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.samples import Binding, samples
from tirlite.plan.slots import Slot, slot_plan
from tirlite.plan.strategies.tvm import tvm_slots
from tirlite.sizes import Size, evaluate

_SAMPLES = 4


def share(problem: Problem) -> Plan:
    """The plan with the fewest bytes of several that share whole slots; never more than `tvm`, at any binding.

    A slot takes requests of any kinds one after another, also in the gaps of lifetimes, and is as large as the
    largest. Tried are: best fit in order of time; the largest first; and the slots of `tvm`, merged as far as they
    go. Symbolic sizes are ordered by proof where there is one, and by their values at some binding elsewhere; since
    that may misjudge, a plan counts only if its total is proved to be at most that of `tvm`, as it always is for
    merged slots. A request with a choice of memories goes to its first.
    """
    bindings = samples(problem.dims, _SAMPLES)
    return slot_plan(problem, "share", lambda requests: _share_slots(requests, bindings))


def _share_slots(requests: Sequence[Request], bindings: Sequence[Binding]) -> list[Slot]:
    value = _valuation(bindings[0])
    baseline = tvm_slots(requests)
    ceiling = [slot.size for slot in baseline]
    merged = items_of_slots(baseline, value)
    loose = items_of(requests, value)
    safe = [slots for slots in (best_fit(merged), by_size(merged)) if slots is not None]
    free = [slots for slots in (best_fit(loose), by_size(loose)) if slots is not None]
    if not all(isinstance(size, int) for size in ceiling):
        free = [slots for slots in free if proved_at_most([slot.size for slot in slots], ceiling, value)]
    whole = _totals(baseline, bindings)
    return min((*free, *safe), key=lambda slots: _cost(_totals(slots, bindings), whole))


def _valuation(binding: Binding) -> Callable[[Size], int]:
    known: dict[Size, int] = {}

    def value(size: Size) -> int:
        if isinstance(size, int):
            return size
        if size not in known:
            known[size] = evaluate(size, binding)
        return known[size]

    return value


def _totals(slots: Sequence[Slot], bindings: Sequence[Binding]) -> list[int]:
    sizes = [slot.size for slot in slots]
    return [sum(evaluate(size, binding) for size in sizes) for binding in bindings]


def _cost(totals: Sequence[int], whole: Sequence[int]) -> Fraction:
    """The sum over the bindings of the share of the baseline's bytes that is needed."""
    return sum((Fraction(total, max(base, 1)) for total, base in zip(totals, whole, strict=True)), Fraction(0))
