"""Tells whether a proof of a pair in place may be counted on, from what the check saw of the two.

A proof is counted on if it spoke of all that happens to the two in the statement at which they meet, in the order in
which it happens. What it claims, that no access to the source comes after a write of the destination to its bytes, is
shown anew where that is plain, and else tried (see `trials`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tirlite.analysis.storage_check.resident import Flow, Handover, Happening, Region, Resident
from tirlite.ir import Buffer, For, IntImm, KernelCall, Load, Node, Store

_Access: TypeAlias = tuple[Buffer, Node, bool]


def within(resident: Resident, first: int, last: int) -> list[Happening]:
    """What happens to a resident from the one position to the other."""
    return [each for each in resident.happenings if first <= each.position <= last]


def speaks_of_all(proof: Handover, destination: Sequence[Happening], source: Sequence[Happening]) -> bool:
    """Whether the proof lists what happens to the two, in order: what is read between two writes has no order."""
    seen = [(each.position, proof.destination, each) for each in destination]
    seen += [(each.position, proof.source, each) for each in source]
    seen.sort(key=_position)
    mine = _in_groups((buffer, each.node, each.writes) for _, buffer, each in seen)
    return mine == _in_groups(proof.accesses)


def is_plain(destination: Resident, source: Resident, writes: Sequence[Happening], uses: Sequence[Happening]) -> bool:
    """Whether each use of the source is seen to come before each of the writes to the same byte.

    All uses come first and no loop comes back to them; or one iteration touches one element of both, the same one.
    """
    if not writes or not uses:
        return True
    if max(each.position for each in uses) > min(each.position for each in writes):
        return False
    home = destination.region
    regions = {each.region: None for each in uses}
    if not any(_share_a_loop(each.region, region, home) for each in writes for region in regions):
        return True
    return _is_one_element(destination, source, [*writes, *uses])


def _is_one_element(destination: Resident, source: Resident, touches: Sequence[Happening]) -> bool:
    """Whether all touch one element in each iteration, and another one in each other iteration."""
    node = touches[0].node
    if not isinstance(node, Load | Store) or not _are_alike(destination.buffer, source.buffer):
        return False
    for each in touches:
        other = each.node
        if each.region is not touches[0].region or not isinstance(other, Load | Store):
            return False
        if other.buffer not in (destination.buffer, source.buffer):
            return False
        if any(a is not b for a, b in zip(node.indices, other.indices, strict=True)):
            return False
    region: Region | None = touches[0].region
    while region is not None and region is not destination.region:
        if region.flow is Flow.LOOP and not (
            isinstance(region.composite, For) and any(index is region.composite.var for index in node.indices)
        ):
            return False
        region = region.parent
    return True


def _are_alike(one: Buffer, other: Buffer) -> bool:
    """Whether equal indices lead to the same bytes of both."""
    return (
        one.dtype.bytes == other.dtype.bytes
        and len(one.shape) == len(other.shape)
        and all(
            a is b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value)
            for a, b in zip(one.shape[1:], other.shape[1:], strict=True)
        )
    )


def _share_a_loop(one: Region, other: Region, home: Region) -> bool:
    """Whether a loop inside of `home`, which holds both, is around both."""
    while one is not other:
        if one.depth >= other.depth:
            assert one.parent is not None
            one = one.parent
        else:
            assert other.parent is not None
            other = other.parent
    while one is not home and one.flow is not Flow.LOOP:
        assert one.parent is not None
        one = one.parent
    return one is not home


def _position(item: tuple[int, Buffer, Happening]) -> int:
    return item[0]


def _in_groups(accesses: Iterable[_Access]) -> list[frozenset[_Access]]:
    """Neighbours that all read, or all write, or are one call, taken together."""
    groups: list[set[_Access]] = []
    last: object = None
    for access in accesses:
        kind = access[1] if isinstance(access[1], KernelCall) else access[2]
        if not groups or kind is not last:
            groups.append(set())
            last = kind
        groups[-1].add(access)
    return [frozenset(group) for group in groups]
