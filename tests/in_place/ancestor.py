"""The rule of the ancestor, as it stands in TVM: a function in, the pairs that it takes in place out. It is unsound."""

from __future__ import annotations

from tirlite.analysis import Extents
from tirlite.analysis.in_place.candidates import in_place_candidates, taken_by_tvm
from tirlite.ir import Buffer, PrimFunc


def ancestor_in_place(func: PrimFunc) -> list[tuple[Buffer, Buffer]]:
    """Destination and source of each pair that the ancestor would share."""
    extents = Extents(func)
    return [
        (proof.destination, proof.source)
        for proof in taken_by_tvm(func, in_place_candidates(func))
        if proof.destination.dtype == proof.source.dtype
        and extents.bytes(proof.destination) == extents.bytes(proof.source)
    ]
