"""Chooses the accesses whose indices are checked as vectors gather them, instead of all at once beforehand.

Checking beforehand takes a third of the time of a product with a sparse matrix, or more. Only workers that share rows
need it, so that the stores before a fault are those of the serial loop; a single worker runs rows in order anyway.
"""

from __future__ import annotations

from tirlite.analysis.entry_space import Scan, is_only_read
from tirlite.analysis.facts import Facts
from tirlite.analysis.in_bounds.safety import Demand, Judged, Safety, Verdict
from tirlite.analysis.loops.regrouping import updates_in
from tirlite.ir.dtype import i32, i64
from tirlite.ir.expr import Cast, Expr, Load, Var
from tirlite.ir.stmt import For, ForKind, Let
from tirlite.ir.walk import loads_in, mentions, walk
from tirlite.record import replace
from tirlite.rewrite.vectors.gathered import gathers
from tirlite.sizes import dims_of


def checked_at_gathers(facts: Facts, safety: Safety) -> Safety:
    """The same safety, but rows bounded by memory check their indices in vectors, see `rewrite/vectors/gathered`.

    An array is still scanned beforehand if anything else depends on its elements.
    """
    turned: set[Judged] = set()
    dropped: set[Var] = set()
    for scan in safety.scans:
        users = [each for each in safety.judged if each.demand is not None and _asks(each.demand, scan, safety)]
        is_relied_on = scan.least in safety.scalars or scan.greatest in safety.scalars
        if not is_relied_on and all(_is_gathered(each, facts) for each in users):
            turned.update(users)
            dropped |= {scan.least, scan.greatest}
    if not turned:
        return safety
    judged = tuple(
        replace(each, verdict=Verdict.CHECKED, demand=None) if each in turned else each for each in safety.judged
    )
    asked = {each.demand for each in judged}
    return replace(
        safety,
        judged=judged,
        demands=tuple(each for each in safety.demands if each in asked),
        scans=tuple(each for each in safety.scans if each.least not in dropped),
    )


def _asks(demand: Demand, scan: Scan, safety: Safety) -> bool:
    images = safety.images or {}
    dims = {dim for size in (*demand.sizes, *demand.reached) for dim in dims_of(size)}
    return any(images.get(dim) in (scan.least, scan.greatest) for dim in dims)


def _is_gathered(judged: Judged, facts: Facts) -> bool:
    """Whether an element is loaded for each term of a row, at an index from memory."""
    access = judged.access
    node, around = access.node, access.around
    if not isinstance(node, Load) or judged.axis != len(node.indices) - 1 or len(around.loops) < 2:
        return False
    loop = around.loops[-1]
    index = node.indices[-1]
    index = index.value if isinstance(index, Cast) else index
    is_row = loop.kind is ForKind.REDUCE and loop.step == 1 and access.stmt in loop.body.stmts
    is_row = is_row and any(isinstance(each, Load) for each in walk(loop.start, loop.stop))
    return is_row and index.dtype in (i32, i64) and _is_left_in_order(loop, index, around.loops[:-1], facts)


def _is_left_in_order(loop: For, index: Expr, around: tuple[For, ...], facts: Facts) -> bool:
    """Whether a row is vectorized along its own terms, and the loops around it are not vectorized."""
    updates = updates_in(loop, facts)
    if not isinstance(updates, tuple) or not updates or not gathers(loop, updates):
        return False
    own = {store.buffer for update in updates for store in update.stores}
    loads = [node for node in loads_in(loop.body) if node.buffer not in own]
    variables = {each.var for each in around}
    are_alike = not any(mentions(load.indices, variables) for load in loads)
    read = {param for param, each in facts.params.items() if is_only_read(each)}
    named = {stmt.var for stmt in loop.body.stmts if isinstance(stmt, Let)}
    is_from_memory = any(isinstance(node, Load) or node in named for node in walk(index))
    return are_alike and is_from_memory and all(load.buffer in read for load in loads)
