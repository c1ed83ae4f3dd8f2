"""Tells whether an index is proved to lie inside the extent of its axis always, or never."""

from __future__ import annotations

from tirlite.analysis.exactness import stays_exact
from tirlite.analysis.facts import Facts
from tirlite.ir import Expr
from tirlite.sizes import Proof, Size, prove_le, prove_lt
from tirlite.sizes.unknown import ends


class Bounds:
    """The indices of one function, each proof tried once.

    What a test around an access says of its indices does not count.
    """

    def __init__(self, facts: Facts) -> None:
        self._space = facts.space
        self._proofs: dict[tuple[Expr, Expr], Proof] = {}
        self._between: dict[tuple[Size, Size, Size], Proof] = {}

    def proof(self, index: Expr, extent: Expr) -> Proof:
        """YES: in bounds for all values, of a vector all lanes. NO: out of bounds for all. UNKNOWN: a check decides."""
        key = (index, extent)
        if key not in self._proofs:
            self._proofs[key] = self._proved(index, extent)
        return self._proofs[key]

    def _proved(self, index: Expr, extent: Expr) -> Proof:
        size = self._space.extents.size(extent)
        low, high = ends(self._space.size(index, self._space.lane(index.dtype.lanes)))
        if size is None or low is None or high is None or not stays_exact(low, high, size):
            return Proof.UNKNOWN
        between = (low, high, size)
        if between not in self._between:
            self._between[between] = _between(*between)
        return self._between[between]


def _between(low: Size, high: Size, extent: Size) -> Proof:
    if prove_le(0, low) is Proof.YES and prove_lt(high, extent) is Proof.YES:
        return Proof.YES
    is_outside = prove_lt(high, 0) is Proof.YES or prove_le(extent, low) is Proof.YES
    return Proof.NO if is_outside else Proof.UNKNOWN
