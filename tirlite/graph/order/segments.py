"""Groups the tasks of a stretch that some best order runs without a break.

A chain is a row of tasks in which each is the only one behind the one before it, and that one the only one before it.
The hill of a group is where it needs most. A group holds together if the chain has no fewer bytes alive between its
begin and its hill than at its begin, and no fewer between its hill and its end than at its end: what comes before the
hill may as well wait for it, and what comes behind may follow at once, so that all other tasks find no more bytes alive
than they did. Source: J. W. H. Liu, An application of generalized tree pebbling to sparse matrix factorization, 1987.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tirlite.graph.order.tasks import Tasks, members

# Longer chains are cut, since all pairs of places in one are looked at.
_LONGEST = 32


def segments(tasks: Tasks, stretch: Sequence[int], done: int) -> list[tuple[int, ...]]:
    """The groups of a stretch that begins when the tasks `done` have run, each in the order in which it runs."""
    return [group for chain in _chains(tasks, stretch) for group in _groups(tasks, chain, done)]


def _chains(tasks: Tasks, stretch: Sequence[int]) -> Iterator[list[int]]:
    inside = sum(1 << number for number in stretch)
    behind = dict.fromkeys(stretch, 0)
    for number in stretch:
        for each in members(tasks.before[number] & inside):
            behind[each] |= 1 << number
    follows: set[int] = set()
    for first in stretch:
        if first in follows:
            continue
        chain = [first]
        while len(chain) < _LONGEST:
            last = chain[-1]
            after = behind[last]
            if not after or after & (after - 1):
                break
            number = after.bit_length() - 1
            alone = tasks.before[number] & inside == 1 << last
            if not alone or not _is_private(tasks, (last, number), inside):
                break
            chain.append(number)
            follows.add(number)
        yield chain


def _is_private(tasks: Tasks, pair: tuple[int, int], inside: int) -> bool:
    """Whether nobody else reads what the two tasks read, so that the bytes they free depend on no other order."""
    others = inside & ~(1 << pair[0] | 1 << pair[1])
    reads = (tensor for each in pair for tensor in tasks.tasks[each].reads)
    return all(not tasks.sizes[tensor] or not tasks.users[tensor] & others for tensor in reads)


def _groups(tasks: Tasks, chain: Sequence[int], done: int) -> Iterator[tuple[int, ...]]:
    """The chain in as few groups as there can be."""
    levels, peaks = [0], []
    for number in chain:
        peak, live = tasks.run(number, done, levels[-1])
        done |= 1 << number
        levels.append(live)
        peaks.append(peak)
    fewest = [0]
    starts = [0]
    for end in range(1, len(chain) + 1):
        found = [start for start in range(end) if _holds(levels[start : end + 1], peaks[start:end])]
        start = min(found, key=lambda each: fewest[each])
        fewest.append(fewest[start] + 1)
        starts.append(start)
    cuts = [len(chain)]
    while cuts[-1]:
        cuts.append(starts[cuts[-1]])
    yield from (tuple(chain[low:high]) for low, high in pairwise(reversed(cuts)))


def _holds(levels: Sequence[int], peaks: Sequence[int]) -> bool:
    hill = max(peaks)
    places = (place for place, peak in enumerate(peaks) if peak == hill)
    return any(
        all(each >= levels[0] for each in levels[1 : place + 1])
        and all(each >= levels[-1] for each in levels[place + 1 :])
        for place in places
    )
