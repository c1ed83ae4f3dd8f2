"""Every operator's kernel gives what its NumPy reference gives, compiled, and interpreted for a share of the cases."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
from effort import effort
from operator_cases.case import Case
from operator_cases.elementwise import kernel_of
from operator_cases.library import CASES
from random_cases import IS_THOROUGH

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.ir import For, ForKind, statements_of
from tirlite.kernels.operators.byte_sums import conv_bytes
from tirlite.kernels.operators.indexing import gather
from tirlite.kernels.operators.normalize import softmax
from tirlite.kernels.operators.sampling import resize

# Their sums are written in vectors, each way to lay out operands in another one.
PRODUCTS = ("conv", "conv_transpose", "gemm", "matmul")
HIGH = Effort.FULL if IS_THOROUGH else Effort.LITTLE
FIRST = {case.name.split("-")[0]: case for case in reversed(CASES)}
# Each operator is interpreted, and every third of its cases: that takes most of the time.
INTERPRETED = CASES if IS_THOROUGH else (*CASES[::3], *FIRST.values())


@cache
def kernel(case: Case) -> tl.Kernel:
    return tl.compile(case.make())


@cache
def compiled(case: Case) -> tl.Kernel:
    """The kernel, ready to be called. LLVM tries hard for products, and for one case of each other operator."""
    operator = case.name.split("-")[0]
    with effort(HIGH if operator in PRODUCTS or FIRST[operator] is case else Effort.NONE):
        kernel(case)(*inputs(case))
    return kernel(case)


def inputs(case: Case) -> tuple[object, ...]:
    return case.inputs(np.random.default_rng(len(case.name)))


def outputs(given: object) -> tuple[np.ndarray, ...]:
    return tuple(map(np.asarray, given)) if isinstance(given, tuple) else (np.asarray(given),)


def assert_close(result: object, expected: object, tolerance: float) -> None:
    for made, wanted in zip(outputs(result), outputs(expected), strict=True):
        assert made.dtype == wanted.dtype
        assert made.shape == wanted.shape
        if tolerance == 0:
            np.testing.assert_array_equal(made, wanted)
        else:
            largest = np.abs(wanted[np.isfinite(wanted)], dtype=np.float64).max(initial=0)
            np.testing.assert_allclose(made.astype(np.float64), wanted, rtol=0, atol=tolerance * largest)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operators_give_what_numpy_gives_compiled_and_interpreted(case: Case) -> None:
    wanted = case.reference(*inputs(case))
    assert_close(compiled(case)(*inputs(case)), wanted, case.tolerance)
    if case in INTERPRETED:
        assert_close(kernel(case).interpret(*inputs(case)), wanted, case.tolerance)


def test_names_tell_cases_apart() -> None:
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []


@pytest.mark.parametrize("index", [5, -6])
def test_an_index_that_points_outside_stops_the_kernel(index: int) -> None:
    rows = tl.compile(gather(tl.f32[5, 2], tl.i64[1], tl.f32[1, 2], axis=0))
    with pytest.raises(tl.KernelAssertionError, match=f"index {index} does not exist along an axis of 5"):
        rows(np.zeros((5, 2), np.float32), np.array([index]))


def test_names_of_dims_are_of_no_matter() -> None:
    length, x, i = tl.dim("length", multiple_of=8), tl.dim("x"), tl.dim("i")
    made = softmax(tl.f32[x, length, i], tl.f32[x, length, i], axis=1)
    assert [dim.name for dim in made.dims] == ["dim0", "dim1", "dim2"]
    assert made.dims[1].dim is not None
    assert made.dims[1].dim.multiple_of == 8


@pytest.mark.parametrize("op", ["relu", "gelu", "sigmoid"])
def test_element_wise_operators_go_in_place(op: str) -> None:
    n, m = tl.dims("n m")
    made = kernel_of(op, tl.f32[n, 4, m], tl.f32[n, 4, m])

    @tl.kernel
    def twice(x: tl.f32[n, 4, m], y: tl.out[tl.f32[n, 4, m]]):
        a = tl.alloc(tl.f32[n, 4, m])
        b = tl.alloc(tl.f32[n, 4, m])
        made(x, a)
        made(a, b)
        made(b, y)

    assert str(twice.plan.total) == "16*m*n"


def test_a_sum_goes_onto_either_of_its_operands() -> None:
    n, m = tl.dims("n m")
    add = kernel_of("add", tl.f32[n, m], tl.f32[m], tl.f32[n, m])
    relu = kernel_of("relu", tl.f32[n, m], tl.f32[n, m])

    @tl.kernel
    def biased(x: tl.f32[n, m], bias: tl.f32[m], y: tl.out[tl.f32[n, m]]):
        a = tl.alloc(tl.f32[n, m])
        b = tl.alloc(tl.f32[n, m])
        relu(x, a)
        add(a, bias, b)
        relu(b, y)

    assert str(biased.plan.total) == "4*m*n"


def test_columns_of_every_second_place_are_picked_by_vectors() -> None:
    case = next(each for each in CASES if each.name == "conv-depthwise by two in vectors")
    assert "2, 16)]" in str(kernel(case).lowered)  # a ramp in steps of two


def test_the_sums_of_a_single_output_are_vectors() -> None:
    case = next(each for each in CASES if each.name == "conv-one output")
    assert "tl.fma(tl.broadcast(" in str(kernel(case).lowered)


def test_an_odd_number_of_bands_of_bytes_is_halved_for_workers() -> None:
    image, weights, sums = tl.u8[1, 64, 56, 56], tl.i8[64, 3, 3, 64], tl.i32[1, 64, 56, 56]
    made = conv_bytes(image, tl.u8[()], weights, tl.i32[64], sums, strides=(1, 1), pads=(1, 1, 1, 1), dilations=(1, 1))
    pieces = next(loop for loop in statements_of(made.body, For) if loop.kind is ForKind.PARALLEL)
    assert pieces.values is not None
    assert len(pieces.values) % 2 == 0


@pytest.mark.parametrize(("columns", "by_lines"), [(77, True), (5, False)], ids=["wider", "much narrower"])
def test_an_image_is_resized_line_by_line(columns: int, by_lines: bool) -> None:
    """Lines are mixed by vectors, but where most elements of them would be mixed in vain."""
    func = resize(tl.f32[2, 9, 40], tl.f32[2, 12, columns], scales=(None, None, None), mode="linear")
    assert ("line[tl.ramp(" in str(tl.compile(func).lowered)) is by_lines
