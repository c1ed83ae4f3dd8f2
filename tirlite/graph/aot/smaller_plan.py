"""Compares the plans of one function in two orders: an order is taken only where its plan is not the larger one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tirlite.diag import CapacityError
from tirlite.driver import Kernel
from tirlite.plan.order import samples
from tirlite.sizes import Proof, Size, evaluate, prove_le

if TYPE_CHECKING:
    from tirlite.graph.aot.lower import Lowered
    from tirlite.rewrite.options import Options
    from tirlite.sizes import Dim

# Middling values of the dims first, then small ones, then values that differ.
_SAMPLES = 6


def is_smaller(new: Lowered, old: Lowered, dims: Sequence[Dim], options: Options) -> bool:
    """Whether the storage of `new` is proved to be more for no values of the dims, and that of `old` is not.

    Values that were tried are no proof: plans may change places between them. Plans by shape have no size for all
    values; of those a few decide. What does not fit in its memory is larger.
    """
    kernels = [Kernel(each.func, options) for each in (new, old)]
    if options.strategy == "per_shape":
        return _is_less([[_total_at(each, at) for each in kernels] for at in samples(dims, _SAMPLES)])
    first, second = map(_total, kernels)
    if first is None or second is None:
        return first is not None
    return prove_le(first, second) is Proof.YES and prove_le(second, first) is not Proof.YES


def _total(kernel: Kernel) -> Size | None:
    try:
        return kernel.plan.total
    except CapacityError:
        return None


def _total_at(kernel: Kernel, binding: Mapping[Dim, int]) -> int | None:
    try:
        return evaluate(kernel.plan_at(**{dim.name: value for dim, value in binding.items()}).total, {})
    except CapacityError:
        return None


def _is_less(pairs: Sequence[Sequence[int | None]]) -> bool:
    """Whether the first of some pair is less, and of none is more; None is more than any number."""
    whole = [[float("inf") if each is None else each for each in pair] for pair in pairs]
    return all(a <= b for a, b in whole) and any(a < b for a, b in whole)
