"""All cases of the operators' kernels."""

from __future__ import annotations

from operator_cases import (
    arrange,
    conv,
    determinant,
    elementwise,
    fill,
    gather,
    matmul,
    nonzero,
    normalize,
    order,
    panels,
    pool,
    quantize,
    reduce,
    resize,
    sampling,
    scatter,
    sequence,
    softmax,
    sort,
    suppression,
)
from operator_cases.case import Case

FAMILIES = (
    *(elementwise, matmul, panels, determinant, conv, pool, reduce, softmax, normalize),
    *(arrange, gather, scatter, order, fill, resize, sampling, quantize, sequence),
    *(nonzero, sort, suppression),
)
CASES: tuple[Case, ...] = tuple(case for family in FAMILIES for case in family.CASES)
