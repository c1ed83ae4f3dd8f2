"""Integers and symbolic extents: facts, proofs, maxima."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.sizes.cases import fails_at_a_sample, prove_le_by_cases
    from tirlite.sizes.dim import Dim, Scalar
    from tirlite.sizes.evaluate import dims_of, evaluate, substitute
    from tirlite.sizes.exchange import from_sympy, to_sympy
    from tirlite.sizes.extrema import alternatives, maximum, minimum
    from tirlite.sizes.poly import Poly, Size, SizeLike, as_size
    from tirlite.sizes.prove import Proof, lower_bound, prove_divides, prove_eq, prove_le, prove_lt, upper_bound
    from tirlite.sizes.rounding import ceildiv, round_up
else:
    __getattr__ = late_names(
        __name__,
        {
            "cases": "fails_at_a_sample prove_le_by_cases",
            "dim": "Dim Scalar",
            "evaluate": "dims_of evaluate substitute",
            "exchange": "from_sympy to_sympy",
            "extrema": "alternatives maximum minimum",
            "poly": "Poly Size SizeLike as_size",
            "prove": "Proof lower_bound prove_divides prove_eq prove_le prove_lt upper_bound",
            "rounding": "ceildiv round_up",
        },
    )

__all__ = [
    "Dim",
    "Poly",
    "Proof",
    "Size",
    "SizeLike",
    "Scalar",
    "alternatives",
    "as_size",
    "ceildiv",
    "dims_of",
    "evaluate",
    "fails_at_a_sample",
    "from_sympy",
    "lower_bound",
    "maximum",
    "minimum",
    "prove_divides",
    "prove_eq",
    "prove_le",
    "prove_le_by_cases",
    "prove_lt",
    "round_up",
    "substitute",
    "to_sympy",
    "upper_bound",
]
