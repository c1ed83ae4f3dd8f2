"""Two sizes in, a proof that one is at most the other out, by cases of their dims: the last resort of checks.

What holds of integers alone, as `n <= 4 * max(2 * n - 1, 0)` from 0 on, no bound of the one by the other shows. Where
a dim is 0 it is arithmetic, and from 1 on maxima collapse.
"""

from __future__ import annotations

from tirlite.sizes.dim import Dim
from tirlite.sizes.evaluate import dims_of, substitute
from tirlite.sizes.poly import SizeLike
from tirlite.sizes.prove import Proof, prove_le

# Dims of which cases are told apart, the first ones.
_MOST = 3


def prove_le_by_cases(a: SizeLike, b: SizeLike) -> Proof:
    """Whether `a <= b`, where `prove_le` may not see it; NO is not looked for.

    Only dims that may be 0 are told apart: what is cut off at 0 is so for these, as a rule. Up to six more proofs.
    """
    if prove_le(a, b) is Proof.YES:
        return Proof.YES
    empty = [dim for dim in dict.fromkeys((*dims_of(a), *dims_of(b))) if dim.low == 0 != dim.high]
    for dim in empty[:_MOST]:
        above = Dim(dim.name, min=dim.multiple_of, max=dim.max, multiple_of=dim.multiple_of)
        cases: tuple[dict[Dim, SizeLike], ...] = ({dim: above + 0}, {dim: 0})
        if all(prove_le(substitute(a, case), substitute(b, case)) is Proof.YES for case in cases):
            return Proof.YES
    return Proof.UNKNOWN
