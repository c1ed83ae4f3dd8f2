"""Finds reads of one of two buffers in the same bytes that may see a value written to the other.

Along each path through the program the victim is fresh (not written since it was declared), holds what was written to
it, or is clobbered: the rival was written since. A stretch of the program is a map from the state before it to the
states that may follow. Maps compose, join where branches meet, and close over the iterations of a loop; so each
region is looked at once, however deep it lies.
"""

from __future__ import annotations

from operator import itemgetter

from tirlite.analysis.storage_check.resident import Flow, Happening, ProgramPart, Resident
from tirlite.ir import Stmt
from tirlite.record import record

_FRESH, _HOLDS, _CLOBBERED = range(3)
_STATES = range(3)
# A set of states is a number with a bit for each of them; these are its members.
_MEMBERS = tuple(tuple(state for state in _STATES if mask >> state & 1) for mask in range(8))


@record
class Misread:
    """`reader` reads the victim after `writer` has written to the rival."""

    writer: Stmt | None
    reader: Stmt


@record
class _Effect:
    """For each state before: the set of states after, who clobbered on the way, and what is misread on the way."""

    after: tuple[int, ...]
    writer: tuple[Stmt | None, ...] = (None, None, None)
    misread: tuple[Misread | None, ...] = (None, None, None)


_SAME = tuple(1 << state for state in _STATES)
_NOTHING = _Effect(_SAME)
_DECLARED = _Effect((_SAME[_FRESH],) * 3)
_WRITTEN = _Effect((_SAME[_HOLDS], _SAME[_HOLDS], _SAME[_CLOBBERED]))


@record(frozen=False)
class _Open:
    """A region on the way through it: its effect so far, and for a choice how many branches that joins."""

    region: ProgramPart
    effect: _Effect = _NOTHING
    branches: int = 0


@record
class Spared:
    """A statement, from its first position to its last, that is proved to let neither harm the other.

    `takes_over` says that the rival writes where the victim is done: the victim is clobbered when the statement ends.
    """

    first: int
    last: int
    region: ProgramPart
    takes_over: bool


def misread(victim: Resident, rival: Resident, spared: Spared | None = None) -> Misread | None:
    """A read of `victim` that may see what was written to `rival`, or None."""
    effects = [(victim.position, victim.region, _DECLARED)]
    effects += [(each.position, each.region, _effect(each)) for each in victim.happenings]
    late: Stmt | None = None
    for each in rival.happenings:
        if not each.writes:
            continue
        if spared is not None and spared.first <= each.position <= spared.last:
            late = each.stmt
        else:
            effects.append((each.position, each.region, _clobbering(each.stmt)))
    if spared is not None and spared.takes_over and late is not None:
        effects.append((spared.last, spared.region, _clobbering(late)))
    effects.sort(key=itemgetter(0))
    stack = [_Open([*victim.region.around()][-1])]
    for _, region, effect in effects:
        _enter(stack, region)
        _append(stack[-1], effect)
    while len(stack) > 1:
        _leave(stack)
    return stack[0].effect.misread[_FRESH]


def _effect(happening: Happening) -> _Effect:
    return _WRITTEN if happening.writes else _Effect(_SAME, misread=(None, None, Misread(None, happening.stmt)))


def _clobbering(stmt: Stmt) -> _Effect:
    return _Effect((_SAME[_FRESH], _SAME[_CLOBBERED], _SAME[_CLOBBERED]), (None, stmt, None))


def _enter(stack: list[_Open], region: ProgramPart) -> None:
    """Leave the regions that do not hold `region`, and enter those that do."""
    path = []
    inner: ProgramPart = region
    while inner.depth > stack[-1].region.depth:
        path.append(inner)
        assert inner.parent is not None
        inner = inner.parent
    while stack[-1].region is not inner:
        _leave(stack)
        if inner.depth > stack[-1].region.depth:
            path.append(inner)
            assert inner.parent is not None
            inner = inner.parent
    stack += [_Open(each) for each in reversed(path)]


def _leave(stack: list[_Open]) -> None:
    inner = stack.pop()
    effect = inner.effect
    if inner.region.flow is Flow.LOOP:
        effect = _repeated(effect)
    elif inner.region.flow is Flow.CHOICE and inner.branches < 2:
        effect = _joined(effect, _NOTHING)
    outer = stack[-1]
    if outer.region.flow is Flow.CHOICE:
        outer.effect = effect if outer.branches == 0 else _joined(outer.effect, effect)
        outer.branches += 1
    else:
        _append(outer, effect)


def _append(region: _Open, effect: _Effect) -> None:
    region.effect = _composed(region.effect, effect)


def _composed(first: _Effect, second: _Effect) -> _Effect:
    if first is _NOTHING:
        return second
    after, writers, misreads = [], [], []
    for state in _STATES:
        states = 0
        writer, found = first.writer[state], first.misread[state]
        for each in _MEMBERS[first.after[state]]:
            states |= second.after[each]
            late = second.misread[each]
            if found is None and late is not None:
                found = Misread(late.writer or writer, late.reader)
            writer = writer or second.writer[each]
        after.append(states)
        writers.append(writer)
        misreads.append(found)
    return _Effect(tuple(after), tuple(writers), tuple(misreads))


def _joined(one: _Effect, other: _Effect) -> _Effect:
    return _Effect(
        tuple(a | b for a, b in zip(one.after, other.after, strict=True)),
        tuple(a or b for a, b in zip(one.writer, other.writer, strict=True)),
        tuple(a or b for a, b in zip(one.misread, other.misread, strict=True)),
    )


def _repeated(effect: _Effect) -> _Effect:
    """Any number of times, none included: with three states, three rounds reach whatever can be reached."""
    once = _joined(_NOTHING, effect)
    return _composed(_composed(once, once), once)
