"""All cases of the operators' kernels."""

from __future__ import annotations

from operator_cases import arrange, conv, elementwise, pool, sampling

from tirlite.kernels.operators import (
    determinant,
    fill,
    gather,
    matmul,
    nonzero,
    normalize,
    order,
    quantize,
    recurrent,
    reduce,
    resize,
    scatter,
    sequence,
    softmax,
    sort,
    suppression,
)
from tirlite.kernels.operators.case import Case

FAMILIES = (
    *(elementwise, matmul, determinant, conv, pool, reduce, softmax, normalize),
    *(arrange, gather, scatter, order, fill, resize, sampling, quantize, recurrent, sequence),
    *(nonzero, sort, suppression),
)
CASES: tuple[Case, ...] = tuple(case for family in FAMILIES for case in family.CASES)
