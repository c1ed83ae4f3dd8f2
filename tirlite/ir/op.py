"""The operations that a Call can name: a closed table."""

from __future__ import annotations

from enum import Enum


class Op(Enum):
    """An operation: its DSL name under `tl.` and its number of arguments (None: any)."""

    ABS = ("abs", 1)
    SQRT = ("sqrt", 1)
    RSQRT = ("rsqrt", 1)
    EXP = ("exp", 1)
    EXP2 = ("exp2", 1)
    EXPM1 = ("expm1", 1)
    LOG = ("log", 1)
    LOG2 = ("log2", 1)
    LOG10 = ("log10", 1)
    LOG1P = ("log1p", 1)
    SIN = ("sin", 1)
    COS = ("cos", 1)
    TAN = ("tan", 1)
    ASIN = ("asin", 1)
    ACOS = ("acos", 1)
    ATAN = ("atan", 1)
    ATAN2 = ("atan2", 2)
    SINH = ("sinh", 1)
    COSH = ("cosh", 1)
    TANH = ("tanh", 1)
    ERF = ("erf", 1)
    SIGMOID = ("sigmoid", 1)
    POW = ("pow", 2)
    FLOOR = ("floor", 1)
    CEIL = ("ceil", 1)
    ROUND = ("round", 1)
    TRUNC = ("trunc", 1)
    FMA = ("fma", 3)
    ISNAN = ("isnan", 1)
    IF_THEN_ELSE = ("if_then_else", 3)
    ADDRESS_OF = ("address_of", 1)
    ACCESS_PTR = ("access_ptr", 4)
    CALL_EXTERN = ("call_extern", None)
    BARRIER = ("barrier", 1)

    def __init__(self, label: str, arity: int | None) -> None:
        self.label = label
        self.arity = arity

    @property
    def is_math(self) -> bool:
        """A pure function of its arguments alone."""
        return self not in _NOT_MATH


_NOT_MATH = frozenset({Op.IF_THEN_ELSE, Op.ADDRESS_OF, Op.ACCESS_PTR, Op.CALL_EXTERN, Op.BARRIER})
