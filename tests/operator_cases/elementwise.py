"""Cases of the element-wise operators: the kernel of each against its NumPy meaning, at the types it is tried at."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, Maker

import tirlite as tl
from tirlite.graph.op import OPS, Attrs
from tirlite.graph.operators.binary import Binary
from tirlite.graph.operators.elementwise import Elementwise
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import cast

n, m = tl.dims("n m")


# Operators and attributes of more cases than one with none.
MORE: dict[str, tuple[str, dict[str, object]]] = {
    "gelu-tanh": ("gelu", {"approximate": True}),
    "leaky_relu": ("leaky_relu", {"alpha": 0.1}),
    "elu": ("elu", {"alpha": 2.0}),
    "celu": ("celu", {"alpha": 2.0}),
    "clip": ("clip", {"low": -0.5, "high": 1.0}),
    "clip-low": ("clip", {"low": -0.5}),
}
INTEGER_UNARY = ("negative", "abs", "sign", "relu")
ON_OTHERS = ("identity", "cast", "bitcast", "bitwise_not", "logical_not")
UNARY = [name for name in vars(Elementwise) if name in OPS and name not in ON_OTHERS]
BINARY = [name for name in vars(Binary) if name in OPS and name != "where"]


def kernel_of(op: str, *types: TensorType, **attrs: object) -> PrimFunc:
    """The kernel of an operator at these types of operands and result."""
    lowering = OPS[op].lowering
    return lowering.make()(*lowering.first, *types, **attrs)


# Where an operator is defined, if not everywhere, and what it takes beside ordinary numbers.
DOMAINS: dict[str, tuple[float, ...]] = {
    **dict.fromkeys("sqrt log log2 log10 log1p rsqrt".split(), (0.1, 0.5, 1.0, 2.0, 30.0, 10000.0)),
    **dict.fromkeys(("asin", "acos"), (-1.0, -0.3, 0.0, 0.2, 0.9)),
    **dict.fromkeys(("atanh",), (-0.9, -0.3, 0.0, 0.001, 0.99)),
    "acosh": (1.0, 1.5, 40.0, 6e4),
    "asinh": (-6e4, -1.5, -1e-3, 0.0, 1e-3, 2.0, 6e4),
    **dict.fromkeys(("isnan", "isinf"), (-np.inf, -1.0, 0.0, np.nan, 2.0, np.inf)),
}
USUAL = (-3.5, -2.5, -1.0, -0.5, 0.25, 0.5, 1.5, 2.5, 4.0)


def unary_case(name: str, dtype: DType, tolerance: float) -> Case:
    op, attrs = MORE.get(name, (name, {}))
    values = np.array(DOMAINS.get(name, USUAL))
    result = tl.bool_ if name in ("isnan", "isinf") else dtype

    def wide(x: np.ndarray) -> np.ndarray:
        return OPS[op].means(OPS[op].attrs(**attrs), x.astype(np.float64)).astype(result.numpy)

    return Case(
        f"{name}-{dtype}",
        lambda: kernel_of(op, dtype[n], result[n], **attrs),
        lambda rng: (values.astype(dtype.numpy),),
        wide,
        tolerance if result is dtype else 0,
    )


COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
ON_BOOL = ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "equal")


def binary_case(name: str, dtype: DType) -> Case:
    result = tl.bool_ if name in COMPARISONS else dtype
    return Case(
        f"{name}-{dtype}",
        lambda: kernel_of(name, dtype[n, m], dtype[m], result[n, m]),
        operands(name, dtype),
        lambda x, y: OPS[name].means(Attrs(), x, y),
        1e-6 if name == "power" and dtype.is_float else 0,
    )


def operands(name: str, dtype: DType) -> Maker:
    """A matrix and a row that `name` is defined for."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        if dtype.is_bool:
            return rng.random((4, 7)) < 0.5, rng.random(7) < 0.5
        x, y = rng.integers(-20, 20, (4, 7)), np.array([1, 2, 3, 5, 7, 33, 40])
        if name == "power":
            x, y = np.abs(x) + 1, y % 5
        elif dtype.is_float or dtype.is_signed:
            y = y if name.startswith("shift") else y * np.array([1, -1, 1, -1, 1, -1, 1])
        else:
            x = np.abs(x)
        x, y = (each.astype(dtype.numpy) for each in (x, y))
        return (x + dtype.numpy.type(0.25), y) if dtype.is_float else (x, y)

    return make


def spread_case(name: str, *shapes: tuple, result: tuple) -> Case:
    """`where` at operands of different shapes, in which n is 3 and m is 4."""
    known = {n: 3, m: 4}
    given = [tuple(known.get(each, each) for each in shape) for shape in shapes]
    types = [dtype[shape] for dtype, shape in zip((tl.bool_, tl.f32, tl.f32), shapes, strict=True)]

    def make(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        values = [rng.standard_normal(shape).astype(np.float32) for shape in given]
        return np.asarray(values[0] > 0), values[1], values[2]

    return Case(f"where-{name}", lambda: kernel_of("where", *types, tl.f32[result]), make, np.where)


def cast_case(source: DType, target: DType) -> Case:
    numbers = (-300.0, -2.5, -1.0, 0.0, 0.5, 1.0, 2.5, 127.0, 300.0)
    fitting = np.array([v for v in numbers if not target.is_integer or target.min <= v <= target.max])

    def make(rng: np.random.Generator) -> tuple[np.ndarray]:
        unsigned = not source.is_float and not source.is_signed
        return ((np.abs(fitting) if unsigned else fitting).astype(source.numpy),)

    def reference(x: np.ndarray) -> np.ndarray:
        return x.astype(target.numpy)

    return Case(f"cast-{source}-{target}", lambda: cast(source[n], target[n]), make, reference)


def integer_case(op: str, dtype: DType, **attrs: object) -> Case:
    values = np.array([-5, -1, 0, 1, 100]).astype(dtype.numpy)
    return Case(
        f"{op}-{dtype}",
        lambda: kernel_of(op, dtype[n], dtype[n], **attrs),
        lambda rng: (values,),
        lambda x: OPS[op].means(OPS[op].attrs(**attrs), x),
    )


ON_NUMBERS = tuple(name for name in BINARY if not name.startswith(("logical", "bitwise", "shift")))
ON_INTEGERS = tuple(name for name in BINARY if not name.startswith("logical") and name not in ("divide", "prelu"))

CASES = (
    *(unary_case(name, tl.f32, 1e-6) for name in dict.fromkeys([*UNARY, *MORE])),
    *(unary_case(name, tl.f64, 1e-14) for name in ("exp", "erf", "asinh", "acosh", "atanh", "gelu")),
    *(unary_case(name, tl.f16, 1e-3) for name in ("exp", "sigmoid", "relu", "gelu", "isinf")),
    *(integer_case(name, tl.i32) for name in INTEGER_UNARY),
    integer_case("sign", tl.u8),
    integer_case("bitwise_not", tl.i16),
    integer_case("logical_not", tl.bool_),
    integer_case("clip", tl.i64, low=-1, high=9),
    *(binary_case(name, tl.f32) for name in ON_NUMBERS),
    *(binary_case(name, tl.i32) for name in ON_INTEGERS),
    *(binary_case(name, tl.u8) for name in ("add", "multiply", "power", "floor_divide", "maximum", "less")),
    *(binary_case(name, tl.f16) for name in ("add", "divide", "maximum", "greater")),
    *(binary_case(name, tl.bool_) for name in ON_BOOL),
    spread_case("scalar", (n, 1), (), (n, m), result=(n, m)),
    spread_case("ranks", (2, 1, m), (n, m), (2, 1, 1, 1), result=(2, 2, n, m)),
    spread_case("rows and columns", (n, 1), (m,), (1, 1), result=(n, m)),
    *(cast_case(tl.f32, each) for each in (tl.f16, tl.f64, tl.i8, tl.i64, tl.u8, tl.bool_)),
    *(cast_case(each, tl.f32) for each in (tl.bool_, tl.i8, tl.u64, tl.f16)),
    *(cast_case(tl.i64, each) for each in (tl.i8, tl.u32, tl.bool_)),
)
