"""Cases of the operators that put elements elsewhere."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, normal

import tirlite as tl
from tirlite.ir import DType
from tirlite.kernels.operators.arrange import broadcast_to, concat, pad, slice_, split, tile, transpose

n, m, k = tl.dims("n m k")
SIZES = {n: 3, m: 5, k: 2}


def given(shape: tuple) -> tuple[int, ...]:
    """The shape with the sizes that the dims have here."""
    return tuple(SIZES[each] if isinstance(each, tl.ir.Var) else each for each in shape)


def values(*shapes: tuple, dtype: DType = tl.f32):
    """Arrays of these shapes."""
    return normal(*map(given, shapes), dtype=dtype.numpy.type, scale=9.0)


def transpose_case(name: str, shape: tuple, axes: tuple[int, ...], dtype: DType = tl.f32) -> Case:
    types = (dtype[shape], dtype[tuple(shape[axis] for axis in axes)])
    return Case(
        f"transpose-{name}",
        lambda: transpose(*types, axes=axes),
        values(shape, dtype=dtype),
        lambda x: x.transpose(axes),
    )


def concat_case(name: str, axis: int, *shapes: tuple) -> Case:
    total = sum(shape[axis] for shape in shapes[1:]) + shapes[0][axis]
    first = shapes[0]
    axis_ = axis % len(first)
    types = [tl.f32[each] for each in (*shapes, (*first[:axis_], total, *first[axis_ + 1 :]))]
    return Case(
        f"concat-{name}", lambda: concat(*types, axis=axis), values(*shapes), lambda *x: np.concatenate(x, axis)
    )


def split_case(name: str, axis: int, shape: tuple, sizes: tuple) -> Case:
    types = [tl.f32[shape], *(tl.f32[(*shape[:axis], size, *shape[axis + 1 :])] for size in sizes)]
    cuts = np.cumsum(given(sizes))[:-1]
    return Case(
        f"split-{name}", lambda: split(*types, axis=axis), values(shape), lambda x: tuple(np.split(x, cuts, axis))
    )


def slice_case(name: str, shape: tuple, starts: tuple, sizes: tuple, steps: tuple[int, ...]) -> Case:
    def reference(x: np.ndarray) -> np.ndarray:
        picked = [s + step * np.arange(size) for s, size, step in zip(starts, given(sizes), steps, strict=True)]
        return x[np.ix_(*picked)]

    types = (tl.f32[shape], tl.f32[sizes])
    return Case(
        f"slice-{name}", lambda: slice_(*types, starts=starts, sizes=sizes, steps=steps), values(shape), reference
    )


def pad_case(name: str, shape: tuple, before: tuple, after: tuple, *, dtype: DType = tl.f32, **attrs: object) -> Case:
    types = (dtype[shape], dtype[tuple(e + b + a for e, b, a in zip(shape, before, after, strict=True))])
    numpy = {"mode": attrs.get("mode", "constant")} | ({"constant_values": attrs["value"]} if "value" in attrs else {})
    return Case(
        f"pad-{name}",
        lambda: pad(*types, before=before, after=after, **attrs),
        values(shape, dtype=dtype),
        lambda x: np.pad(x, list(zip(before, after, strict=True)), **numpy),
    )


CASES = (
    transpose_case("matrix", (n, m), (1, 0)),
    transpose_case("to the end", (2, 3, 4, 5), (0, 2, 3, 1)),
    transpose_case("heads", (n, m, 2, 4), (0, 2, 1, 3)),
    transpose_case("all", (2, 1, 3, 4), (3, 2, 1, 0)),
    transpose_case("squares of channels", (2, 2, 2, 2, 3, 5), (0, 3, 4, 1, 5, 2)),
    transpose_case("as it is", (2, 3), (0, 1)),
    transpose_case("no axes", (), ()),
    transpose_case("i8", (3, 4), (1, 0), tl.i8),
    transpose_case("f16", (3, 4), (1, 0), tl.f16),
    concat_case("channels", 1, (n, 2, 3), (n, 5, 3), (n, 1, 3)),
    concat_case("symbolic", 0, (n, 4), (m, 4)),
    concat_case("last", -1, (2, 3), (2, 4)),
    concat_case("one", 0, (3,)),
    split_case("middle", 1, (2, 6, 3), (1, 3, 2)),
    split_case("last", 2, (n, m, 4), (2, 2)),
    slice_case("rows", (6, 4, 3), (2, 0, 0), (3, 4, 3), (1, 1, 1)),
    slice_case("steps", (7, 9), (1, 8), (3, 5), (2, -2)),
    slice_case("symbolic", (n, 8, m), (0, 2, 0), (n, 3, m), (1, 1, 1)),
    slice_case("reversed", (5,), (4,), (5,), (-1,)),
    Case(
        "broadcast_to",
        lambda: broadcast_to(tl.f32[n, 1, 3], tl.f32[2, n, 5, 3]),
        values((n, 1, 3)),
        lambda x: np.broadcast_to(x, (2, 3, 5, 3)),
    ),
    Case(
        "tile",
        lambda: tile(tl.f32[n, 4], tl.f32[n * 2, 12], repeats=(2, 3)),
        values((n, 4)),
        lambda x: np.tile(x, (2, 3)),
    ),
    pad_case("constant", (2, 3, 4), (1, 0, 2), (0, 2, 1), value=1.5),
    pad_case("symbolic", (n, m), (1, 2), (2, 0)),
    pad_case("i32", (3,), (1,), (1,), value=7, dtype=tl.i32),
    pad_case("edge", (3, 4), (2, 1), (1, 5), mode="edge"),
    pad_case("reflect", (n, 4), (2, 5), (1, 9), mode="reflect"),
    pad_case("reflect one", (1, 2), (2, 1), (1, 3), mode="reflect"),
    pad_case("wrap", (3, 4), (2, 5), (1, 9), mode="wrap"),
)
