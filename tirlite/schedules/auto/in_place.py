"""Decides whether a convolution reads windows in place, in rows that are a little longer than those of its results."""

from __future__ import annotations

from math import prod

from tirlite.analysis.facts import Facts
from tirlite.ir import For
from tirlite.ir.walk import mentions
from tirlite.schedules.auto.contraction import Contraction
from tirlite.schedules.auto.tiling import Tiling, count_of, is_known
from tirlite.schedules.rows_in_place import moves_along

Sizes = tuple[tuple[str, int | str], ...]

# Copying the windows of a column takes as long as computing this many rows of results, or longer. It is saved, but the
# columns between rows of results are computed in vain.
_ROWS_OF_COPY = 4
# Shorter sums leave too little to do for each vector that is stored across the end of a row.
_FEWEST_TERMS = 128
# More rows of windows than this may be too many that lie a power of two apart for the second-level cache.
_MOST_ROWS = 384
# Of fewer columns, the last block is too large a part.
_FEWEST_COLUMNS = 1024


def sizes_in_place(nest: Contraction, facts: Facts, tiling: Tiling) -> Sizes | None:
    """The conditions for reading windows in place to pay, where constants do not decide; None if it never does."""
    flat, packed, columns = nest.around, nest.packed, nest.columns
    special = (nest.halves, nest.cut, nest.keeper)
    if flat is None or any(each is not None for each in special) or len(packed.indices) < 2:
        return None
    gap = facts.space.size(packed.buffer.shape[-1]) - facts.space.size(columns.count)
    if not (isinstance(gap, int) and gap >= 0 and moves_along(packed, flat.var, columns.var)):
        return None
    wanted: list[tuple[tuple[For, ...], int, tuple[For, ...], int]] = [
        (nest.rows, 1, (), tiling.strided_rows),
        (nest.terms, 1, (), _FEWEST_TERMS),
        ((), _MOST_ROWS, tuple(each for each in nest.terms if not mentions(packed.indices[-1], each.var)), 1),
        ((columns,), 1, (), tiling.row_bytes // nest.element // 2),
        ((flat, columns), 1, (), _FEWEST_COLUMNS),
        ((columns,), _ROWS_OF_COPY, nest.rows, gap),
    ]
    found: list[tuple[str, int | str]] = []
    for loops, factor, others, least in wanted:
        if all(map(is_known, (*loops, *others))):
            if factor * prod(map(count_of, loops)) < least * prod(map(count_of, others)):
                return None
            continue
        more, few = _product(factor, loops), _product(least, others)
        found.append((str(more), int(few) if few.isdigit() else few))
    return tuple(found)


def _product(factor: int, loops: tuple[For, ...]) -> str:
    """The product of a factor and of the iterations of loops, as `specialize` takes it."""
    known = factor * prod(count_of(each) for each in loops)
    names = [each.var.name for each in loops if not is_known(each)]
    return " * ".join(([str(known)] if known != 1 or not names else []) + names)
