"""The table of formulas by operation and type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TypeAlias

from tirlite.ir.dtype import DType, f32
from tirlite.ir.formula import Term
from tirlite.ir.op import Op

Formula: TypeAlias = Callable[..., Term]
# The module of a formula, which is imported at first use, and its name there.
_Home: TypeAlias = tuple[str, str]


def _homes(prefix: str = "", **modules: str) -> dict[Op, _Home]:
    """The homes of operations, by modules with formulas of the same names, or of others: `pow=power`."""
    entries = [(module, *each.partition("=")[::2]) for module, names in modules.items() for each in names.split()]
    return {Op[f"{prefix}{op}".upper()]: (module, name or op) for module, op, name in entries}


_FORMULAS: Mapping[Op, _Home] = _homes(
    exponential="exp exp2 expm1 sinh cosh tanh sigmoid",
    logarithm="log log2 log10 log1p pow=power rsqrt",
    trigonometry="sin cos tan",
    inverse="asin acos atan atan2",
    error_function="erf",
    reciprocals="reciprocal",
)
_OF_F32: Mapping[Op, _Home] = _homes(
    single="exp exp2 expm1 sinh cosh tanh sigmoid log log2 log10 log1p pow=power rsqrt",
    single_angles="sin cos tan asin acos atan atan2",
    error_function="erf=single_erf",
    reciprocals="reciprocal",
)
# Variants that are at least 1.3 times as fast; otherwise the exact function is used.
_FAST: Mapping[Op, _Home] = _homes(
    "fast_",
    fast="expm1 sinh cosh tanh sigmoid rsqrt",
    fast_angles="sin cos tan asin acos atan atan2",
)
_FAST_OF_F32: Mapping[Op, _Home] = {
    **_FAST,
    **_homes(
        "fast_",
        fast_single="exp tanh sigmoid",
        fast="exp2 log log2 log10 log1p",
        error_function="erf=fast_erf",
        reciprocals="reciprocal=fast_reciprocal rsqrt=fast_rsqrt",
    ),
}


def has_fast(op: Op, dtype: DType) -> bool:
    """Whether `op` has a fast variant for values of type f32 or f64."""
    return op.fast in (_FAST_OF_F32 if dtype == f32 else _FAST)


def formula_of(op: Op, dtype: DType) -> Formula | None:
    """The formula of `op` for f32 or f64; None for operations that the machine has."""
    if op.is_fast:
        chosen = _FAST_OF_F32 if dtype == f32 else _FAST
        if op not in chosen:
            return formula_of(op.exact, dtype)
    else:
        chosen = _OF_F32 if dtype == f32 else _FORMULAS
    if op not in chosen:
        return None
    module, name = chosen[op]
    formula: Formula = getattr(import_module(f"tirlite.ir.functions.{module}"), name)
    return formula
