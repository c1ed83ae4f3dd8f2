"""Bugs of the finder: touches that are not seen, lifetimes that end too early. Each is one wrong rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import pytest
from mutation.trial import Bug, Plant

from tirlite.analysis import access
from tirlite.analysis.access import AccessKind, Allocation, LinearSequence, Touch
from tirlite.analysis.facts import Facts
from tirlite.analysis.regions import child_of
from tirlite.ir import Buffer, Call, For, IfThenElse, Load, PrimFunc, Store, View, While, statements, walk

# The packages have functions of these names.
lifetimes = import_module("tirlite.analysis.lifetimes")
planned_storage = import_module("tirlite.rewrite.storage.planned_storage")

Live = tuple[tuple[int, int], ...]


def without_touches(unseen: Callable[[PrimFunc], Callable[[Allocation, Touch], bool]]) -> Plant:
    """The finder does not see some touches."""

    def found(func: PrimFunc) -> LinearSequence:
        sequence = access.linear_sequence(func)
        is_unseen = unseen(func)
        for allocation in sequence.allocations:
            allocation.touches[:] = [t for t in allocation.touches if not is_unseen(allocation, t)]
        return sequence

    return with_sequence(found)


def with_sequence(found: Callable[[PrimFunc], LinearSequence]) -> Plant:
    """Storage problems are made of what `found` says is touched."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = planned_storage.storage_problem

        def problem(facts: Facts, *given: object, **options: object) -> object:
            wrong = Facts(facts.func)
            wrong.sequence = found(facts.func)
            return right(wrong, *given, **options)

        patch.setattr(planned_storage, "storage_problem", problem)

    return plant


def touched(touch: Touch) -> Buffer | None:
    node = touch.node.args[0] if isinstance(touch.node, Call) else touch.node
    return getattr(node, "buffer", None)


def by_view(func: PrimFunc) -> Callable[[Allocation, Touch], bool]:
    views = {each.buffer for each in statements(func.body) if isinstance(each, View)}
    return lambda _, touch: touched(touch) in views


def opaque(_: PrimFunc) -> Callable[[Allocation, Touch], bool]:
    return lambda _, touch: touch.kind is AccessKind.OPAQUE


def inside(*places: Callable[[PrimFunc], list[object]]) -> Callable[[PrimFunc], Callable[[Allocation, Touch], bool]]:
    def unseen(func: PrimFunc) -> Callable[[Allocation, Touch], bool]:
        nodes = {node for place in places for expr in place(func) for node in walk(expr)}
        return lambda _, touch: touch.node in nodes

    return unseen


def indices(func: PrimFunc) -> list[object]:
    return [index for node in walk(func.body) if isinstance(node, Load | Store) for index in node.indices]


def bounds(func: PrimFunc) -> list[object]:
    return [each for node in statements(func.body) if isinstance(node, For) for each in (node.start, node.stop)]


def conditions(func: PrimFunc) -> list[object]:
    return [node.condition for node in statements(func.body) if isinstance(node, IfThenElse | While)]


def extents(func: PrimFunc) -> list[object]:
    return [e for node in statements(func.body) if hasattr(node, "buffer") and node.buffer for e in node.buffer.shape]


def in_else(_: PrimFunc) -> Callable[[Allocation, Touch], bool]:
    return lambda _, touch: touch.region.then is not None


def in_blocks(_: PrimFunc) -> Callable[[Allocation, Touch], bool]:
    return lambda allocation, touch: touch.region is not allocation.home and touch is not allocation.touches[0]


def reads(_: PrimFunc) -> Callable[[Allocation, Touch], bool]:
    return lambda allocation, touch: touch.kind is AccessKind.READ and touch is not allocation.touches[0]


def last(_: PrimFunc) -> Callable[[Allocation, Touch], bool]:
    return lambda allocation, touch: len(allocation.touches) > 1 and touch is allocation.touches[-1]


def lives(live: Callable[[Allocation, Callable[[Allocation], Live]], Live]) -> Plant:
    """Lifetimes are worked out by another rule, which is given the allocation and the right rule."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = lifetimes._live
        patch.setattr(lifetimes, "_live", lambda allocation: live(allocation, right))

    return plant


def from_first_to_last(allocation: Allocation, _: object) -> Live:
    positions = [touch.position for touch in allocation.touches]
    return ((min(positions), max(positions) + 1),) if positions else ()


def not_volatile(allocation: Allocation, right: Callable[[Allocation], Live]) -> Live:
    return right(replace(allocation, buffer=replace(allocation.buffer, volatile=False)))


def not_opaque(allocation: Allocation, right: Callable[[Allocation], Live]) -> Live:
    return right(replace(allocation, touches=[replace(t, kind=AccessKind.READ) for t in allocation.touches]))


def ends_early(allocation: Allocation, right: Callable[[Allocation], Live]) -> Live:
    return tuple((low, max(low + 1, high - 1)) for low, high in right(allocation))


def begins_late(allocation: Allocation, right: Callable[[Allocation], Live]) -> Live:
    return tuple((min(low + 1, high - 1), high) for low, high in right(allocation))


def one_branch(allocation: Allocation, right: Callable[[Allocation], Live]) -> Live:
    return right(allocation)[:1]


def branches_alone(allocation: Allocation, right: Callable[[Allocation], Live]) -> Live:
    """Where a part of the touches is in an `if`, those beside it are forgotten."""
    home = allocation.home
    nested = [t for t in allocation.touches if isinstance(t.region.composite, IfThenElse) and t.region is not home]
    return right(replace(allocation, touches=nested)) if nested else right(allocation)


def until_the_loop(allocation: Allocation, _: object) -> Live:
    """A loop counts to the last touch in it, and not to its end."""
    touches = allocation.touches
    tops = [child_of(allocation.home, touch.region) for touch in touches]
    if not touches:
        return ()
    first = touches[0].position if tops[0] is None else tops[0].before
    return ((first, max(touch.position for touch in touches) + 1),)


def from_the_middle_of_the_loop(allocation: Allocation, right: Callable[[Allocation], Live]) -> Live:
    """A loop counts from the first touch in it, and not from its begin."""
    live = right(allocation)
    return ((allocation.touches[0].position, live[-1][1]),) if live else ()


def threads_in_step(allocation: Allocation, right: Callable[[Allocation], Live]) -> Live:
    is_thread = allocation.home.attach is not None and allocation.home.attach.is_thread
    return from_first_to_last(allocation, right) if is_thread else right(allocation)


FINDER_BUGS = (
    Bug("views are not uses", "2", without_touches(by_view)),
    Bug("an address taken is not a use", "2", without_touches(opaque)),
    Bug("reads in indices are not seen", "14", without_touches(inside(indices))),
    Bug("reads in bounds of loops are not seen", "14", without_touches(inside(bounds))),
    Bug("reads in conditions are not seen", "14", without_touches(inside(conditions))),
    Bug("reads in extents are not seen", "3", without_touches(inside(extents))),
    Bug("the else branch is not seen", "10", without_touches(in_else)),
    Bug("uses in inner blocks are not seen", "14", without_touches(in_blocks)),
    Bug("only writes are uses", "14", without_touches(reads)),
    Bug("the last use is not seen", "2", without_touches(last)),
    Bug("volatile is ignored", "2", lives(not_volatile)),
    Bug("an address is good for one statement", "2", lives(not_opaque)),
    Bug("loops run once", "11", lives(from_first_to_last)),
    Bug("a lifetime ends before its last use", "17", lives(ends_early)),
    Bug("a lifetime begins after its first write", "17", lives(begins_late)),
    Bug("of both branches the first counts", "10", lives(one_branch)),
    Bug("what stands beside a branch is forgotten", "10", lives(branches_alone)),
    Bug("a lifetime ends inside a loop", "11", lives(until_the_loop)),
    Bug("a lifetime begins inside a loop", "17", lives(from_the_middle_of_the_loop)),
    Bug("threads run in step", "22", lives(threads_in_step)),
)
