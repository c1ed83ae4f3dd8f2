"""Finds the nesting of regions and touches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tirlite.analysis.access import Region, Touch
from tirlite.ir import AttrKey, AttrStmt


def regions_around(region: Region | None) -> Iterator[Region]:
    """The region itself and those around it, up to the body of the function."""
    while region is not None:
        yield region
        region = region.parent


def root_of(region: Region) -> Region:
    """The outermost region: the body of the function."""
    while region.parent is not None:
        region = region.parent
    return region


def regions_between(region: Region, ancestor: Region) -> Iterator[Region]:
    """The regions from `region` up to below `ancestor`."""
    while region is not ancestor:
        yield region
        assert region.parent is not None
        region = region.parent


def path_to(region: Region, ancestor: Region) -> list[Region]:
    """The regions from below `ancestor` down to `region`."""
    return [*regions_between(region, ancestor)][::-1]


def child_of(ancestor: Region, region: Region) -> Region | None:
    """The child of `ancestor` that holds `region`; None where they are the same."""
    child: Region | None = None
    while region is not ancestor:
        child = region
        assert region.parent is not None
        region = region.parent
    return child


def is_within(region: Region | None, outer: Region) -> bool:
    """Whether `region` is `outer`, or stands inside of it."""
    while region is not None and region is not outer:
        region = region.parent
    return region is outer


def is_plain(region: Region | None, outer: Region | None) -> bool:
    """Whether no thread-bound loop and no extern scope stands between two regions."""
    while region is not None and region is not outer:
        is_extern = isinstance(region.composite, AttrStmt) and region.composite.key is AttrKey.EXTERN_SCOPE
        if region.is_thread or is_extern:
            return False
        region = region.parent
    return True


def by_statement(region: Region, touches: Sequence[Touch]) -> Iterator[list[Touch]]:
    """The touches, in order, statement by statement of `region`; bounds and conditions of a composite by themselves."""
    key, group = None, list[Touch]()
    for touch in touches:
        child = child_of(region, touch.region)
        mine = (touch.position, False) if child is None else (child.before, True)
        if group and mine != key:
            yield group
            group = []
        key = mine
        group.append(touch)
    if group:
        yield group


def common_regions(touches: Sequence[Touch], home: Region) -> list[Region]:
    """The regions inside `home` that hold all touches, the outermost first."""
    common = path_to(touches[0].region, home)
    for touch in touches[1:]:
        region, depth = touch.region, touch.region.depth - home.depth
        while depth > len(common) or (depth and common[depth - 1] is not region):
            assert region.parent is not None
            region, depth = region.parent, depth - 1
        del common[depth:]
    return common
