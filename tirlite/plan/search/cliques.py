"""Lists, as bits, the maximal cliques of a graph of rows of bits, those first that begin with what weighs most.

Source: Bron and Kerbosch (1973), with the pivot of Tomita, Tanaka and Takahashi (2006).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def cliques(rows: Sequence[int], weights: Sequence[int], within: int, steps: int) -> Iterator[int]:
    """The sets among `within` of which any two are neighbours, and to which nothing can be added; `steps` at most."""
    stack = [(0, within, 0)]
    while stack and steps:
        steps -= 1
        chosen, left, met = stack.pop()
        if not left:
            if not met:
                yield chosen
            continue
        pivot = max(_bits(left | met), key=lambda v: (rows[v] & left).bit_count())
        following = []
        for v in sorted(_bits(left & ~rows[pivot]), key=lambda v: -weights[v]):
            following.append((chosen | 1 << v, left & rows[v], met & rows[v]))
            left, met = left & ~(1 << v), met | 1 << v
        stack += reversed(following)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
