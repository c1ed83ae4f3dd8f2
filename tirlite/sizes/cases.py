"""Two sizes in, a proof that one is at most the other out, by cases: the last resort of checks.

A storage is as large as the largest of what it holds, and `b` is at most `max(a, b, c)` whatever maxima stand within
`b`: each operand is tried by itself. What holds of integers alone, as `n <= 4 * max(2 * n - 1, 0)` from 0 on, no bound
of the one by the other shows. Where a dim is 0 it is arithmetic, and from 1 on maxima collapse.
"""

from __future__ import annotations

from tirlite.diag import KernelError
from tirlite.sizes.dim import Dim
from tirlite.sizes.evaluate import dims_of, evaluate, sample_bindings, substitute
from tirlite.sizes.extrema import alternatives
from tirlite.sizes.poly import SizeLike
from tirlite.sizes.prove import Proof, prove_le

# Dims of which cases are told apart, the first ones.
_MOST = 3


def prove_le_by_cases(a: SizeLike, b: SizeLike) -> Proof:
    """Whether `a <= b`, where `prove_le` may not see it; NO is not looked for.

    Maxima are taken apart, a few dozen operands at most. Only dims that may be 0 are told apart: what is cut off at 0
    is so for these, as a rule. What fails at a sample of the dims costs little.
    """
    if prove_le(a, b) is Proof.YES:
        return Proof.YES
    if fails_at_a_sample(a, b):
        return Proof.UNKNOWN
    if _by_operands(a, b):
        return Proof.YES
    dims = dict.fromkeys((*dims_of(a), *dims_of(b)))
    empty = [dim for dim in dims if dim.low == 0 != dim.high]
    for dim in empty[:_MOST]:
        above = Dim(dim.name, min=dim.multiple_of, max=dim.max, multiple_of=dim.multiple_of)
        cases: tuple[dict[Dim, SizeLike], ...] = ({dim: above + 0}, {dim: 0})
        if all(_by_operands(substitute(a, case), substitute(b, case)) for case in cases):
            return Proof.YES
    return Proof.UNKNOWN


def _by_operands(a: SizeLike, b: SizeLike) -> bool:
    """Whether `a`, or each operand of the maximum `a`, is at most some operand of the maximum `b`, or all of it."""
    tops = alternatives(b)
    if any(prove_le(a, top) is Proof.YES for top in (b, *tops)):
        return True
    return all(any(prove_le(part, top) is Proof.YES for top in tops) for part in alternatives(a))


def fails_at_a_sample(a: SizeLike, b: SizeLike) -> bool:
    """Whether `a > b` at one of a few bindings of the dims. If not, `a <= b` may hold, proved or not."""
    try:
        samples = sample_bindings((*dims_of(a), *dims_of(b)))
        return any(evaluate(a, binding) > evaluate(b, binding) for binding in samples)
    except KernelError:  # a division by zero
        return False
