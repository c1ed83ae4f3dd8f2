"""A resident in, the stretch of the program during which it may hold something that is still read out."""

from __future__ import annotations

from tirlite.analysis.storage_check.resident import Event, Flow, Region, Resident
from tirlite.ir import ForKind

Hull = tuple[int, int]


def hull_of(resident: Resident, outermost: dict[tuple[Region, Region], Region | None]) -> Hull | None:
    """From the first to the last position; None for what is never touched.

    What happens in a loop inside the body of the Allocate counts as all of that loop. A buffer whose address is handed
    on or that is volatile takes its whole body, and one inside a thread-bound loop takes all of that, since threads
    run at no fixed pace. `outermost` remembers the outermost loop of each region inside each body.
    """
    home = resident.region
    touches = [each for each in resident.happenings if each.event is not Event.DECLARE]
    if not touches:
        return None
    if home.attached is not None and home.attach is not None and home.attach.kind is ForKind.THREAD:
        return home.attached.begin, home.attached.end
    if resident.opaque is not None:
        return resident.position, home.end
    lows, highs = [], []
    for each in touches:
        region = each.region
        if region is home:
            lows.append(each.position)
            highs.append(each.position)
            continue
        if (region, home) not in outermost:
            outermost[region, home] = _outermost_loop(region, home)
        loop = outermost[region, home]
        lows.append(each.position if loop is None else loop.begin)
        highs.append(each.position if loop is None else loop.end)
    return min(lows), max(highs)


def is_whole(resident: Resident) -> bool:
    """Whether it takes its hull wholly, so that nothing else may be stored there meanwhile."""
    attach = resident.region.attach
    return resident.opaque is not None or (attach is not None and attach.kind is ForKind.THREAD)


def _outermost_loop(region: Region, home: Region) -> Region | None:
    found = None
    while region is not home:
        if region.flow is Flow.LOOP:
            found = region
        assert region.parent is not None
        region = region.parent
    return found
