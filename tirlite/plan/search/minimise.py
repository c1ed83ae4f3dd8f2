"""Items of one memory and limits in; offsets, and a proved bound on what they must reach to, out."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.plan.search.descent import Descent
from tirlite.plan.search.engine import Engine
from tirlite.plan.search.instance import instances
from tirlite.plan.search.item import Item
from tirlite.plan.search.limits import Limits
from tirlite.plan.search.sections import NONE_LOOSE, Loose
from tirlite.record import record


@record
class Packing:
    """The offset of each item in bytes, the bytes in all, and bytes that every packing needs.

    There are no offsets where packings of fewer bytes were asked for, and none was found. `is_flat` says that
    alignments never cost a byte, so that this holds also for packings in several arenas.
    """

    offsets: tuple[int, ...]
    total: int
    bound: int
    is_flat: bool


def minimise(
    items: Sequence[Item],
    engine: Engine,
    limits: Limits,
    start: Sequence[int] | None = None,
    wanted: int | None = None,
    enough: int = 0,
    below: int | None = None,
    loose: Loose = NONE_LOOSE,
) -> Packing | None:
    """The packing that reaches least high, as far as the limits go; None where none is found at all.

    `start` is a packing to begin with. Parts of the problem that do not overlap in time are searched by turns, always
    the one whose packing is highest. A plan of at most `wanted` bytes is looked for early, and none of less than
    `enough` bytes, nor of `below` bytes or more. Items that are `loose` of each other may lie over each other.
    """
    needed = max([item.fixed + item.size for item in items if item.fixed is not None], default=0)

    def total() -> int:
        return max([needed, *(descent.total for descent in descents)])

    def bound() -> int:
        return max([needed, *(descent.bound for descent in descents)])

    def report() -> None:
        limits.report(total(), bound())

    descents = [Descent(instance, engine, limits, report, below) for instance in instances(items, loose)]
    try:
        for descent in descents:
            descent.begin(start)
        _descend(descents, limits, max(needed, enough), wanted)
    except KeyboardInterrupt:
        limits.interrupt()
    is_flat = all(descent.instance.is_flat for descent in descents)
    if below is not None and (needed >= below or any(descent.best is None for descent in descents)):
        return Packing((), below, bound(), is_flat)
    if any(descent.best is None for descent in descents):
        return None
    return Packing(_offsets(items, descents), total(), bound(), is_flat)


def _descend(descents: Sequence[Descent], limits: Limits, bound: int, wanted: int | None) -> None:
    """Searches until the highest part is as low as its bound, or as that of another."""
    while descents and not limits.is_over and not any(descent.is_lost for descent in descents):
        bound = max([bound, *(descent.bound for descent in descents)])
        worst = max(descents, key=lambda descent: descent.total)
        enough = max(bound, wanted) if limits.stop_at_fit and wanted is not None else bound
        if worst.total <= enough:
            return
        lower = [descent.total for descent in descents if descent.total < worst.total]
        worst.round(bound, max([enough, *lower]), wanted)


def _offsets(items: Sequence[Item], descents: Sequence[Descent]) -> tuple[int, ...]:
    placed = [0 if item.fixed is None else item.fixed for item in items]
    for descent in descents:
        for number, offset in zip(descent.instance.numbers, descent.best or (), strict=True):
            placed[number] = offset * descent.instance.unit
    return tuple(placed)
