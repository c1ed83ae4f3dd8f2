"""Integers and symbolic extents: facts, proofs, maxima."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.sizes.cases import fails_at_a_sample as fails_at_a_sample, prove_le_by_cases as prove_le_by_cases
    from tirlite.sizes.dim import Dim as Dim, Scalar as Scalar
    from tirlite.sizes.evaluate import dims_of as dims_of, evaluate as evaluate, substitute as substitute
    from tirlite.sizes.exchange import from_sympy as from_sympy, to_sympy as to_sympy
    from tirlite.sizes.extrema import alternatives as alternatives, maximum as maximum, minimum as minimum
    from tirlite.sizes.poly import Poly as Poly, Size as Size, SizeLike as SizeLike, as_size as as_size
    from tirlite.sizes.prove import (
        Proof as Proof,
        ceildiv as ceildiv,
        is_at_most as is_at_most,
        lower_bound as lower_bound,
        prove_divides as prove_divides,
        prove_eq as prove_eq,
        prove_le as prove_le,
        prove_lt as prove_lt,
        round_up as round_up,
        upper_bound as upper_bound,
    )
else:
    __getattr__, __all__ = late_names(__name__)
