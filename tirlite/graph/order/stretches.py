"""Splits tasks into the stretches between those that every order runs at the same place."""

from __future__ import annotations

from tirlite.graph.order.tasks import Tasks, members


def stretches(tasks: Tasks) -> list[list[int]]:
    """The tasks in groups that run one after another in any order: each ends with one that all others come before or
    behind, but the last perhaps. What is best for each group is best for all.
    """
    count = len(tasks.tasks)
    above = [0] * count
    for number, direct in enumerate(tasks.before):
        while direct:
            low = direct & -direct
            above[number] |= low | above[low.bit_length() - 1]
            direct ^= low
    below = [0] * count
    for number in reversed(range(count)):
        direct = tasks.before[number]
        while direct:
            low = direct & -direct
            below[low.bit_length() - 1] |= 1 << number | below[number]
            direct ^= low
    cuts = [number for number in range(count) if above[number].bit_count() + below[number].bit_count() == count - 1]
    groups, done = [], 0
    for cut in sorted(cuts, key=lambda number: above[number].bit_count()):
        part = (above[cut] | 1 << cut) & ~done
        groups.append([*members(part)])
        done |= part
    rest = (1 << count) - 1 & ~done
    return [*groups, [*members(rest)]] if rest else groups
