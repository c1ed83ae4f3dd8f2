"""Checks a plan for one shape: tells what is wrong with the numbers that say where things lie.

It shares no code with those who choose the numbers. What may be live together is worked out once, and each new set of
numbers is looked at in time that grows with the sum of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.plan.request import Interval
from tirlite.record import record


@record
class Conditions:
    """What the entries of a plan must keep. Each entry is the size of an arena, or the offset of a place in one.

    `arenas` gives for each entry the entry that is the size of its arena, and -1 for these themselves; `aligns` what
    must divide it; `rows` are sets of entries whose places may share no byte, each row pairwise.
    """

    arenas: tuple[int, ...]
    aligns: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]

    def fault(self, entries: Sequence[int], sizes: Sequence[int]) -> str:
        """What is wrong, or nothing. `sizes` are the bytes of the places, by entry; those of arenas do not count."""
        if len(entries) != len(self.arenas):
            return f"there are {len(entries)} entries, and should be {len(self.arenas)}"
        ends = list(map(int.__add__, entries, sizes))
        for number, (arena, align, entry) in enumerate(zip(self.arenas, self.aligns, entries, strict=True)):
            if entry < 0 or entry % align:
                return f"entry {number} is {entry}, and is to be a multiple of {align}"
            if arena >= 0 and ends[number] > entries[arena]:
                return f"place {number} ends at {ends[number]}, and its arena has {entries[arena]} bytes"
        for row in self.rows:
            last, above = -1, 0
            for start, number in sorted([(entries[number], number) for number in row if sizes[number]]):
                if start < above:
                    return f"places {last} and {number} may be live together and share bytes: {start} < {above}"
                last, above = number, ends[number]
        return ""


def rows_of(lives: Sequence[Sequence[Interval]]) -> list[tuple[int, ...]]:
    """The sets of lives that have a time in common and that no other such set contains, in order of time."""
    events = sorted(
        (time, is_birth, number)
        for number, live in enumerate(lives)
        for low, high in live
        for time, is_birth in ((low, True), (high, False))
    )
    live: dict[int, None] = {}
    rows: dict[tuple[int, ...], None] = {}
    grown = False
    for _, is_birth, number in events:
        if is_birth:
            live[number] = None
        else:
            if grown:
                rows[tuple(sorted(live))] = None
            live.pop(number, None)
        grown = is_birth
    return list(rows)
