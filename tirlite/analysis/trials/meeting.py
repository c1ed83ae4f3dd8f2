"""Finds two accesses of one allocation, of those at some points, that touch one byte in two iterations."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np

from tirlite.analysis.trials.points import Points
from tirlite.analysis.trials.values import Array, constant, trial_value
from tirlite.diag import Span
from tirlite.ir import Load, Store
from tirlite.record import record


@record(eq=False)
class Access:
    """What an access touches: for each point that runs it, and each lane, the first byte in the allocation."""

    node: Load | Store
    span: Span | None
    points: Points
    bytes: Array


def access_at(node: Load | Store, span: Span | None, points: Points) -> Access | None:
    """The access at those of the points at which its indices are in bounds; None where an index is not known."""
    buffer = node.buffer
    flat, inside = constant(0), np.full((1, 1), True)
    for index, extent in zip(node.indices, buffer.shape, strict=True):
        place, length = trial_value(index, points.values), trial_value(extent, points.values)
        if place is None or length is None:
            return None
        inside = inside & (place >= 0) & (place < length)
        flat = flat * length + place
    valid = points.where(inside)
    kept = flat if valid is points or len(flat) == 1 else flat[np.broadcast_to(inside.all(axis=1), points.count)]
    start = valid.values.get(buffer, constant(0))
    return Access(node, span, valid, valid.spread(start + kept * buffer.dtype.bytes))


def meeting(accesses: Sequence[Access]) -> tuple[tuple[Access, int], tuple[Access, int]] | None:
    """Two accesses of one byte in one context and different iterations, the first a write, each with its point."""
    unit = gcd(*(access.node.buffer.dtype.bytes for access in accesses))
    if any((access.bytes % unit).any() for access in accesses):
        unit = 1
    keys, owners, places = _units(accesses, unit)
    iterations = np.concatenate([each.points.iteration for each in accesses])[places]
    writes = np.array([isinstance(each.node, Store) for each in accesses])[owners]
    order = np.argsort(keys, kind="stable")
    keys, owners, places = keys[order], owners[order], places[order]
    iterations, writes = iterations[order], writes[order]
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    least, most = np.minimum.reduceat(iterations, starts), np.maximum.reduceat(iterations, starts)
    bad = np.flatnonzero((least != most) & np.logical_or.reduceat(writes, starts))
    if not len(bad):
        return None
    group = bad[np.argmin(least[bad])]
    end = starts[group + 1] if group + 1 < len(starts) else len(keys)
    members = np.arange(starts[group], end)
    writers = members[writes[members]]
    first = writers[np.argmin(iterations[writers])]
    others = members[iterations[members] != iterations[first]]
    second = others[np.argmin(iterations[others])]
    begins = np.cumsum([0, *(each.points.count for each in accesses)])
    one, other = int(owners[first]), int(owners[second])
    return (accesses[one], int(places[first] - begins[one])), (accesses[other], int(places[second] - begins[other]))


def _units(accesses: Sequence[Access], unit: int) -> tuple[Array, Array, Array]:
    """For each unit of memory that is touched: its number and context as one key, the access, and the point.

    Points are counted through all accesses.
    """
    keys, owners, places = [], [], []
    contexts = 1 + max(int(each.points.context.max()) for each in accesses)
    begin = 0
    for number, access in enumerate(accesses):
        parts = access.node.buffer.dtype.bytes // unit
        units = access.bytes[:, :, np.newaxis] // unit + np.arange(parts)
        key = (units * contexts + access.points.context[:, np.newaxis, np.newaxis]).reshape(-1)
        keys.append(key)
        owners.append(np.full(len(key), number))
        places.append(begin + np.repeat(np.arange(access.points.count), len(key) // access.points.count))
        begin += access.points.count
    return np.concatenate(keys), np.concatenate(owners), np.concatenate(places)
