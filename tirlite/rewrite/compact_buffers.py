"""Shrinks each temporary of a function to the part that is touched under its allocation."""

from __future__ import annotations

from dataclasses import replace

from tirlite.analysis.access import Allocation
from tirlite.analysis.facts import Facts
from tirlite.analysis.temporaries import temporaries
from tirlite.analysis.touched_part import Span, touched_part
from tirlite.ir import Broadcast, Expr, Load, PrimFunc, Ramp, Store, Sub
from tirlite.record import record
from tirlite.rewrite.access_rewrite import Accesses, Reindex
from tirlite.rewrite.affine_exprs import index_expr
from tirlite.rewrite.pipeline import FactsPass
from tirlite.sizes import Proof, Size, maximum, prove_le, prove_lt
from tirlite.sizes.unknown import is_nonnegative

# So many elements less gain nothing for a symbolic extent.
_LITTLE = 64
# A constant from this on is not a tile in place of what is symbolic: it stems from the type of an index.
_MUCH = 1 << 15


@record
class CompactBuffers(FactsPass):
    """Shrinks each temporary to what one execution of the body that it is allocated in touches.

    Along an axis, the least index becomes 0, if all indices move alike with the loops around the body. An axis is left
    as it is where the new extent is not proved to be less, or a symbolic one is less by a constant alone: buffers of
    one shape share storage better. For functions in normal form (see `Normalize`), best after `SinkAllocations`.
    """

    name: str = "compact-buffers"

    def rewritten(self, facts: Facts) -> PrimFunc:
        accesses = Accesses()
        for allocation in temporaries(facts):
            spans = _worthwhile(allocation, facts)
            if any(spans):
                _compact(allocation, spans, facts, accesses)
        return accesses.apply(facts.func)


def _worthwhile(allocation: Allocation, facts: Facts) -> list[Span | None]:
    spans: list[Span | None] = []
    for span, extent in zip(touched_part(allocation, facts.addresses), allocation.buffer.shape, strict=True):
        size = facts.space.extents.size(extent)
        is_less = span is not None and _is_less(span.extent, size)
        spans.append(span if is_less else None)
    return spans


def _is_less(new: Size, old: Size | None) -> bool:
    if isinstance(old, int):
        return prove_lt(new, old) is Proof.YES
    if isinstance(new, int) or old is None:
        return isinstance(new, int) and new < _MUCH
    # Not `prove_lt`: where a dim is small, both may be equal.
    return prove_le(new, old) is Proof.YES and prove_le(old, new + _LITTLE) is not Proof.YES


def _compact(allocation: Allocation, spans: list[Span | None], facts: Facts, accesses: Accesses) -> None:
    old = allocation.buffer
    shape = tuple(
        extent if span is None else facts.space.extents.expr(_counted(span.extent))
        for span, extent in zip(spans, old.shape, strict=True)
    )
    changed: dict[Load | Store, dict[int, Reindex]] = {}
    for touch in allocation.touches:
        node = touch.node
        assert isinstance(node, Load | Store)
        for axis, span in enumerate(spans):
            if span is not None:
                index = _moved(node, axis, span, facts)
                if index is None:
                    return
                changed.setdefault(node, {})[axis] = index
    accesses.reshape(old, replace(old, shape=shape), changed)


def _counted(extent: Size) -> Size:
    """An extent as one may declare it: not below 0, and where nothing is touched for sure, one element."""
    if isinstance(extent, int):
        return max(extent, 1)
    return extent if is_nonnegative(extent) else maximum(extent, 0)


def _moved(node: Load | Store, axis: int, span: Span, facts: Facts) -> Reindex | None:
    """What makes of the index of an access along an axis that index less the start."""
    if span.start == 0:
        return lambda index: index
    if node.indices[axis].dtype.lanes == 1:
        moved = index_expr(facts.addresses.of(node).indices[axis] - span.start, facts.space)
        if moved is not None:
            return lambda index: moved
    start = index_expr(span.start, facts.space)
    return None if start is None else lambda index: _less(index, start)


def _less(index: Expr, start: Expr) -> Expr:
    if isinstance(index, Ramp):
        return Ramp(Sub(index.base, start), index.stride, index.lanes)
    return Sub(index, start if index.dtype.lanes == 1 else Broadcast(start, index.dtype.lanes))
