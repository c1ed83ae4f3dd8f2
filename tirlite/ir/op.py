"""The operations that a Call can name: a closed table."""

from __future__ import annotations

from enum import Enum


class Op(Enum):
    """An operation: its DSL name under `tl.`, its number of arguments (None: any), whether it is a fast variant.

    A fast variant is written `tl.sin(x, fast=True)`.
    """

    ABS = ("abs", 1)
    SQRT = ("sqrt", 1)
    RSQRT = ("rsqrt", 1)
    RECIPROCAL = ("reciprocal", 1)
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
    FAST_RSQRT = ("rsqrt", 1, True)
    FAST_RECIPROCAL = ("reciprocal", 1, True)
    FAST_EXP = ("exp", 1, True)
    FAST_EXP2 = ("exp2", 1, True)
    FAST_EXPM1 = ("expm1", 1, True)
    FAST_LOG = ("log", 1, True)
    FAST_LOG2 = ("log2", 1, True)
    FAST_LOG10 = ("log10", 1, True)
    FAST_LOG1P = ("log1p", 1, True)
    FAST_SIN = ("sin", 1, True)
    FAST_COS = ("cos", 1, True)
    FAST_TAN = ("tan", 1, True)
    FAST_ASIN = ("asin", 1, True)
    FAST_ACOS = ("acos", 1, True)
    FAST_ATAN = ("atan", 1, True)
    FAST_ATAN2 = ("atan2", 2, True)
    FAST_SINH = ("sinh", 1, True)
    FAST_COSH = ("cosh", 1, True)
    FAST_TANH = ("tanh", 1, True)
    FAST_ERF = ("erf", 1, True)
    FAST_SIGMOID = ("sigmoid", 1, True)
    FLOOR = ("floor", 1)
    CEIL = ("ceil", 1)
    ROUND = ("round", 1)
    TRUNC = ("trunc", 1)
    FMA = ("fma", 3)
    ISNAN = ("isnan", 1)
    IF_THEN_ELSE = ("if_then_else", 3)
    ANY = ("any", 1)
    INTERLEAVE_LOW = ("interleave_low", 2)
    INTERLEAVE_HIGH = ("interleave_high", 2)
    DOT = ("dot", 3)
    CHECKED = ("checked", 1)
    MASKED = ("masked", 2)
    ADDRESS_OF = ("address_of", 1)
    ACCESS_PTR = ("access_ptr", 4)
    CALL_EXTERN = ("call_extern", None)
    BARRIER = ("barrier", 1)
    PRINT = ("print", None)

    def __init__(self, label: str, arity: int | None, is_fast: bool = False) -> None:
        self.label = label
        self.arity = arity
        self.is_fast = is_fast

    @property
    def is_math(self) -> bool:
        """Whether it is a pure function of its arguments."""
        return self not in _NOT_MATH

    @property
    def takes_fast(self) -> bool:
        """Whether the DSL accepts `fast=True`: for elementary functions."""
        return self.fast is not self or self.is_fast or self is Op.POW

    @property
    def fast(self) -> Op:
        """The variant with an error of up to 4 ULP; the operation itself if there is none."""
        return self if self.is_fast else Op.__members__.get(f"FAST_{self.name}", self)

    @property
    def exact(self) -> Op:
        """The operation that this is the fast variant of, else itself."""
        return Op[self.name.removeprefix("FAST_")]


INTERLEAVES = (Op.INTERLEAVE_LOW, Op.INTERLEAVE_HIGH)
_NOT_MATH = frozenset(
    {
        *INTERLEAVES,
        Op.DOT,
        Op.ANY,
        Op.IF_THEN_ELSE,
        Op.CHECKED,
        Op.MASKED,
        Op.ADDRESS_OF,
        Op.ACCESS_PTR,
        Op.CALL_EXTERN,
        Op.BARRIER,
        Op.PRINT,
    }
)
