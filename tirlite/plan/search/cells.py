"""Cells: the arrays of integers that a search reads and writes, so that it can stop and go on, and run as a kernel.

The rules of the search (`choose`, `place`, `propagate`, `conflict`, `advance`) are written in the part of Python that
is also kernel language: loops, branches, integers and arrays. They run as they are, on lists, and compiled.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Protocol

from tirlite.record import record


class Array(Protocol):
    """A row of integers: a list, or an array of 64-bit integers."""

    def __getitem__(self, index: int, /) -> int: ...

    def __setitem__(self, index: int, value: int, /) -> None: ...


# What stands in `state`.
COUNT, PLACED, DEPTH, NODES, STATUS, FAILED, TRAIL, STACK, STAMP = range(9)
LOW, HIGH, FIRST, LAST, PEAK, LEVELS, TRAIL_ROOM, POOL_ROOM, TIGHTEST = range(9, 18)
STATE_CELLS = 18

# What `state[STATUS]` can be.
RUNNING, FOUND, IMPOSSIBLE, FULL = range(4)

# Cells that one entry of the trail takes.
TRAIL_ENTRY = 5
# Passes over the blocked buffers after which their bounds are taken as they are.
PASSES = 4


@record(frozen=False)
class Cells:
    """All arrays of one search. Buffers, sections and levels are numbers from 0; -1 means none.

    A section is a set of buffers that live together and that no other such set contains. Rows of different lengths
    lie one after the other, that of `i` from `starts[i]` to `starts[i + 1]`.
    """

    # The problem, by buffer: alignment, the highest offset allowed, order of preference, and the equal buffer that is
    # to lie below it (`before`) or above (`after`).
    align: Array
    latest: Array
    rank: Array
    before: Array
    after: Array
    # Its neighbours, which live at some time when it does, what it fills at most while each of them lives, and what
    # that fills while it lives; its first section, the one after its last, all, and what it fills in each.
    neighbour_starts: Array
    neighbours: Array
    own_height: Array
    other_height: Array
    first: Array
    last: Array
    section_starts: Array
    sections: Array
    fill: Array
    # By section: its buffers, and the height that these may fill.
    member_starts: Array
    members: Array
    height: Array
    # The state, by buffer: the lowest offset above all that is placed below it, and who stands there; the lowest
    # offset that is possible; the levels at which it was placed, and at which it was decided not to rest on `base`.
    base: Array
    support: Array
    least: Array
    placed: Array
    blocked: Array
    # By section: the sizes of its buffers that are not placed.
    rest: Array
    # By level, one a decision: its buffer, 1 for placing and 2 for blocking it, and how long trail and pool were.
    chosen: Array
    branch: Array
    trail_marks: Array
    pool_marks: Array
    # What to restore; the decisions that explain failures; marks and a stack for finding these.
    trail: Array
    pool: Array
    marked: Array
    explained: Array
    stack: Array
    state: Array


NAMES = tuple(field.name for field in fields(Cells))
