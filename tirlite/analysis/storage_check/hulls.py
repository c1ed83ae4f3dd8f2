"""Finds the stretch of the program during which a resident may hold something that is still read."""

from __future__ import annotations

from dataclasses import replace

from tirlite.analysis.storage_check.resident import Event, Flow, Happening, Region, Resident

Hull = tuple[int, int]


def hull_of(resident: Resident, outermost: dict[tuple[Region, Region], Region | None]) -> Hull | None:
    """From the first to the last position; None for what is never touched.

    What happens in a loop inside the body of the Allocate counts as all of that loop. A buffer whose address is handed
    on is in use from its first use to the end of its body, and one that is volatile from the begin on. What several
    threads use counts from barrier to barrier, since they run at no fixed pace. `outermost` remembers the outermost
    loop of each region inside each body.
    """
    home = resident.region
    touches = resident.happenings[1:]  # the declaration comes first
    if not touches:
        return None
    hull = (_begin(resident), home.end) if resident.opaque is not None else _touched(home, touches, outermost)
    if not resident.is_seen_by_several:
        return hull
    resident.stretches = stretches_around(home, hull)
    return min(resident.stretches)[0], max(high for _, high in resident.stretches)


def _begin(resident: Resident) -> int:
    """From where on anything may happen to one whose address is handed on, at the level of its Allocate."""
    home, touches = resident.region, resident.happenings[1:]
    if resident.buffer.volatile or resident.is_seen_by_several or not touches:
        return resident.position
    region = touches[0].region
    if region is home:
        return touches[0].position
    while region.parent is not home:
        assert region.parent is not None
        region = region.parent
    return region.begin


def _touched(home: Region, touches: list[Happening], outermost: dict[tuple[Region, Region], Region | None]) -> Hull:
    low, high = touches[0].position, touches[-1].position
    for each in touches:
        region = each.region
        if region is home:
            continue
        if (region, home) not in outermost:
            outermost[region, home] = _outermost_loop(region, home)
        loop = outermost[region, home]
        if loop is not None:
            low, high = min(low, loop.begin), max(high, loop.end)
    return low, high


def is_whole(resident: Resident) -> bool:
    """Whether it takes its hull wholly, so that nothing else may be stored there meanwhile."""
    return resident.opaque is not None or resident.is_seen_by_several


def is_elsewhere(one: Resident, other: Resident) -> bool:
    """Whether nothing happens to `other` in the body that `one` takes wholly, if it does; False for threads."""
    if not is_whole(one):
        return True
    low, high = _begin(one), one.region.end
    return not one.is_seen_by_several and not any(low <= each.position <= high for each in other.happenings)


def used_all_along(resident: Resident) -> Resident:
    """One whose address is handed on, as if it was first written and last read: no more can happen to it there."""
    if resident.opaque is None:
        return resident
    first, *rest = resident.happenings
    last = max(each.position for each in resident.happenings)
    begin = replace(first, event=Event.STORE, position=_begin(resident))
    end = replace(first, event=Event.LOAD, position=last)
    return replace(resident, happenings=[first, begin, *rest, end])


def may_meet(one: Resident, other: Resident) -> bool:
    """Whether threads may use both at one time; each has stretches if several threads use it."""
    if not one.stretches or not other.stretches:
        return True
    return any(a[0] <= b[1] and b[0] <= a[1] for a in one.stretches for b in other.stretches)


def stretches_around(home: Region, hull: Hull) -> list[Hull]:
    """All that may run in one thread while another one is within `hull`, which lies in the body `home`.

    A thread gets no further than to the next barrier, be it in the next iteration of a loop, and is no further behind
    than the last one.
    """
    found = [hull]
    forwards, backwards = True, True
    low, high = hull
    region: Region | None = home
    while region is not None and (forwards or backwards):
        ahead = [each for each in region.barriers if each > high]
        behind = [each for each in region.barriers if each < low]
        is_last = region is home.attached
        if forwards:
            found.append((high, ahead[0] - 1 if ahead else region.end))
            if not ahead and not is_last and region.flow is Flow.LOOP:
                found.append((region.begin, region.barriers[0] - 1 if region.barriers else region.end))
        if backwards:
            found.append((behind[-1] + 1 if behind else region.begin, low))
            if not behind and not is_last and region.flow is Flow.LOOP:
                found.append((region.barriers[-1] + 1 if region.barriers else region.begin, region.end))
        forwards, backwards = forwards and not ahead, backwards and not behind
        low, high = region.begin, region.end
        region = None if is_last else region.parent
    return found


def _outermost_loop(region: Region, home: Region) -> Region | None:
    found = None
    while region is not home:
        if region.flow is Flow.LOOP:
            found = region
        assert region.parent is not None
        region = region.parent
    return found
