"""Cases of the kernels whose constants lie by panels: `tirlite.kernels.operators.panels`, and products of matrices."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, integers, joined, normal

import tirlite as tl
from tirlite.graph.operators.convolution import Conv, conv
from tirlite.kernels.operators.matmul import product, product_bytes
from tirlite.kernels.operators.panels import conv_bytes, convolution


def product_case(name: str, rows: tuple, terms: int, columns: int, size: int, c: tuple | None) -> Case:
    """A case of `product` of so many columns, the last panel of which may have more, with 2 times something to add."""
    blocks = -(-columns // size)

    def reference(a: np.ndarray, w: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
        made = a @ w.swapaxes(0, 1).reshape(terms, blocks * size)[:, :columns]
        return made if c is None else made + 2 * c

    shapes = ((*rows, terms), (blocks, terms, size), c, (*rows, columns))
    types = [None if shape is None else tl.f32[shape] for shape in shapes]
    inputs = normal(*(shape for shape in shapes[:3] if shape is not None))
    return Case(f"product-{name}", lambda: product(*types, beta=2.0), inputs, reference, 1e-5)


def bytes_case(name: str, rows: tuple, terms: int, columns: int, size: int) -> Case:
    """A case of `product_bytes` of so many columns, the last panel of which may have more."""
    blocks = -(-columns // size)

    def reference(a: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        whole = np.moveaxis(w, (1, 3, 0, 2), range(4)).reshape(terms, blocks * size)
        return a.astype(np.int32) @ whole[:, :columns].astype(np.int32) + b

    types = tl.u8[*rows, terms], tl.i8[blocks, terms // 4, size, 4], tl.i32[columns], tl.i32[*rows, columns]
    inputs = joined(
        integers(0, 256, (*rows, terms), dtype=np.uint8),
        integers(-128, 128, (blocks, terms // 4, size, 4), dtype=np.int8),
        integers(-999, 999, (columns,), dtype=np.int32),
    )
    return Case(f"product_bytes-{name}", lambda: product_bytes(*types), inputs, reference)


def conv_case(
    name: str, x: tuple, outputs: int, size: int, *, groups: int = 1, window: tuple = (1, 1), has_bias: bool
) -> Case:
    """A case of `convolution` with so many outputs in a panel; windows go by steps of (2, 1), padded."""
    taken, is_point = x[1] // groups, window == (1, 1)
    attrs = Conv((1, 1) if is_point else (2, 1), (0,) * 4 if is_point else (1, 1, 0, 1), (1, 1), groups)

    def reference(x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
        weights = np.moveaxis(w, -1, 1).reshape(outputs, taken, *window)
        return conv(attrs, x, weights, b)

    places = x[2:] if is_point else ((x[2] + 1 - window[0]) // 2 + 1, x[3] + 3 - window[1])
    shapes = (x, (outputs // size, taken, *window, size), (outputs,) if has_bias else None, (x[0], outputs, *places))
    types = [None if shape is None else tl.f32[shape] for shape in shapes]
    inputs = normal(*(shape for shape in shapes[:3] if shape is not None))
    given = {"strides": attrs.strides, "pads": attrs.pads, "dilations": (1, 1), "groups": groups}
    return Case(f"convolution-{name}", lambda: convolution(*types, **given), inputs, reference, 1e-5)


def image_case(name: str, x: tuple, outputs: int, more: int, given: dict[str, tuple[int, ...]]) -> Case:
    """A case of `conv_bytes` by 3 x 3 in panels of 16 outputs, with more inputs in the weights."""
    groups = (x[1] + more) // 4
    pads, steps = given["pads"], given["strides"]
    places = [(x[2 + at] + pads[at] + pads[2 + at] - 3) // steps[at] + 1 for at in range(2)]

    def reference(x: np.ndarray, z: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        weights = np.moveaxis(w, (4, 5), (1, 5)).reshape(outputs, 3, 3, -1)[..., : x.shape[1]]
        (above, left, below, right) = pads
        padded = np.pad(x, ((0, 0), (0, 0), (above, below), (left, right)), constant_values=z)
        plain = Conv(steps, (0, 0, 0, 0), (1, 1), 1)
        return conv(plain, padded.astype(np.int32), np.moveaxis(weights, -1, 1).astype(np.int32)) + b.reshape(-1, 1, 1)

    shapes = x, (), (outputs // 16, 3, 3, groups, 16, 4), (outputs,), (x[0], outputs, *places)
    types = [kind[shape] for kind, shape in zip((tl.u8, tl.u8, tl.i8, tl.i32, tl.i32), shapes, strict=True)]
    inputs = joined(
        integers(0, 256, shapes[0], (), dtype=np.uint8),
        lambda rng: (
            np.where(np.arange(4 * groups).reshape(groups, 1, 4) < x[1], rng.integers(-128, 128, shapes[2]), 0).astype(
                np.int8
            ),
        ),
        integers(-999, 999, shapes[3], dtype=np.int32),
    )
    return Case(f"conv_bytes_panels-{name}", lambda: conv_bytes(*types, dilations=(1, 1), **given), inputs, reference)


CASES = (
    product_case("alone", (3, 5), 9, 64, 32, None),
    product_case("bias", (20,), 5, 128, 64, (128,)),
    product_case("bias of rows", (7,), 5, 64, 64, (7, 1)),
    product_case("sum", (7,), 5, 64, 32, (7, 64)),
    product_case("rest", (7,), 5, 73, 32, (73,)),
    product_case("rest of one row", (1,), 5, 40, 16, (1, 40)),
    product_case("rest of one column", (3,), 5, 33, 16, (33,)),
    product_case("rest of one element", (1,), 5, 33, 16, None),
    bytes_case("one row", (1,), 8, 64, 32),
    bytes_case("filled up", (2, 7), 12, 100, 64),
    image_case("one", (1, 4, 3, 7), 32, 0, {"strides": (1, 1), "pads": (1, 1, 1, 1)}),
    image_case("steps", (2, 6, 5, 4), 16, 2, {"strides": (2, 1), "pads": (1, 0, 0, 1)}),
    conv_case("alone", (1, 9, 3, 5), 64, 32, has_bias=False),
    conv_case("several images", (2, 5, 2, 5), 64, 64, has_bias=True),
    conv_case("groups", (1, 6, 5, 5), 32, 16, groups=2, window=(3, 3), has_bias=True),
    conv_case("groups of several images", (2, 6, 4, 3), 64, 16, groups=2, window=(2, 3), has_bias=False),
    conv_case("two columns", (1, 3, 3, 5), 32, 16, window=(1, 2), has_bias=True),
    conv_case("two columns of two rows", (1, 3, 4, 5), 32, 16, window=(2, 2), has_bias=False),
    conv_case("parts", (1, 64, 2, 1), 16, 16, window=(3, 3), has_bias=True),
    conv_case("parts, two columns", (1, 160, 1, 1), 16, 16, window=(1, 2), has_bias=True),
    conv_case("parts, two columns of two rows", (1, 96, 2, 1), 16, 16, window=(2, 2), has_bias=True),
)
