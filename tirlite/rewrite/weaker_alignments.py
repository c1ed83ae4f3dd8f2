"""A storage problem with buffers aligned to cache lines in; the same with less alignment, and whose plan to take, out.

A function that hands its buffers to kernels gains nothing by lines that it would have to pay for in bytes: a kernel
expects of an array no more than the alignment of its elements. So where a plan misses the lower bound, lines are given
up. Loops of the function's own keep them: accesses that cross lines take up to a third longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tirlite.ir import PrimFunc, calls_in
from tirlite.ir.shapes import least_alignment
from tirlite.plan import Plan, Request, StorageScope
from tirlite.plan.order import samples
from tirlite.rewrite.storage_problem import LINE_BYTES, StorageProblem
from tirlite.sizes import Proof, evaluate, prove_divides, prove_le


def weaker_problems(func: PrimFunc, found: StorageProblem, *, at_any_price: bool = False) -> Iterator[StorageProblem]:
    """The problem with the largest alignment below a line that divides all sizes, then with that of elements alone.

    None where no buffer is aligned to a line that could be aligned to less, or where `func` calls no kernels; but
    `at_any_price`, where loops of its own give up lines too.
    """
    if not (at_any_price or calls_in(func.body)):
        return
    lined = {each.id: each for each in found.problem.requests if _is_lined(found, each)}
    step = LINE_BYTES
    while step > 1 and any(prove_divides(step, each.size) is not Proof.YES for each in lined.values()):
        step //= 2
    for align in dict.fromkeys((step, 1)):
        if lined and align < LINE_BYTES:
            yield _with_alignment(found, lined, align)


def is_smaller(plan: Plan, other: Plan) -> bool:
    """Whether `plan` is proved to take no more bytes than `other`, and takes fewer at some sample of the dims."""
    if prove_le(plan.total, other.total) is not Proof.YES and not plan.proved_optimal:
        return False
    dims = plan.problem.dims
    bindings = (*samples(dims, 2), *samples(dims, 2, 1))
    return any(evaluate(plan.total, each) < evaluate(other.total, each) for each in bindings)


def _is_lined(found: StorageProblem, request: Request) -> bool:
    is_plain = not StorageScope.parse(request.scope).is_special
    return is_plain and request.align == LINE_BYTES > least_alignment(found.lifetimes[request.id].buffer)


def _with_alignment(found: StorageProblem, lined: dict[str, Request], align: int) -> StorageProblem:
    problem = found.problem
    requests = tuple(
        replace(each, align=max(align, least_alignment(found.lifetimes[each.id].buffer))) if each.id in lined else each
        for each in problem.requests
    )
    return replace(found, problem=replace(problem, requests=requests))
