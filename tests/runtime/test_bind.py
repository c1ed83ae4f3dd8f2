"""Arguments of a call: what is taken, what is refused and how, and that nothing is written then."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from small_functions import scale

import tirlite as tl
from tirlite.ir import f32, f64
from tirlite.ir.builder import Builder

n, m = tl.dims("n m")
k = tl.dim("k", min=2, max=16, multiple_of=2)


@tl.kernel
def shaped(x: tl.f32[n], y: tl.f32[n + 1, 3], z: tl.f32[k, 4]):
    for i in range(n):
        y[i, 0] = x[i] + z[0, 1]


X = np.arange(6, dtype=np.float32).reshape(2, 3)
HEAD = "scale(x: f32[n, m], factor: f32, y: out[f32[n, m]])"


def refusal(call: Callable[[], object], kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, tl.CallError)
    return str(caught.value)


def test_an_output_that_is_left_out_is_returned() -> None:
    result = scale(X, 2)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, 2 * X)


@tl.kernel
def every_other(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(0, n, 2):
        y[i] = x[i]


@tl.kernel
def positive(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        if x[i] > 0:
            y[i] = x[i]


@tl.kernel
def one_by_rows(x: tl.f32[m, n], y: tl.out[tl.f32[n]]):
    for _row in range(m):
        for i in range(n):
            y[i] = 1


def leave(size: int) -> None:
    """Leaves sevens in memory that the next array of this size gets."""
    np.full(size, 7, np.float32)


@pytest.mark.parametrize(
    ("kernel", "x", "y"),
    [
        (every_other, [1, 2, 3, 4, 5], [1, 0, 3, 0, 5]),
        (positive, [-1, 2, -3, 4, 5], [0, 2, 0, 4, 5]),
        (one_by_rows, np.zeros((0, 5)), [0, 0, 0, 0, 0]),
    ],
)
@pytest.mark.parametrize("debug", [False, True])
def test_what_is_not_stored_of_an_output_that_is_left_out_is_0(
    kernel: tl.Kernel, x: list[float], y: list[float], *, debug: bool
) -> None:
    made = tl.compile(kernel, debug=debug)
    leave(5)
    assert made(np.array(x, np.float32)).tolist() == y
    given = np.full(5, 7, np.float32)
    made(np.array(x, np.float32), given)
    assert given.tolist() == [value or 7 for value in y]


def test_an_output_that_is_given_is_filled_and_not_returned() -> None:
    y = np.empty_like(X)
    assert scale(X, 2, y) is None
    np.testing.assert_array_equal(y, 2 * X)


def test_arguments_go_by_position_or_by_name() -> None:
    for result in (scale(X, factor=3), scale(factor=3, x=X)):
        np.testing.assert_array_equal(result, 3 * X)
    y = np.empty_like(X)
    scale(X, y=y, factor=4)
    np.testing.assert_array_equal(y, 4 * X)


def test_two_outputs_come_as_a_tuple_in_the_order_of_the_parameters() -> None:
    b = Builder("both")
    first = b.param("first", f32[2], out=True)
    x = b.param("x", f32[2])
    second = b.param("second", f64[2], out=True)
    with b.for_("i", 0, 2) as i:
        b.store(first, i, x[i])
        b.store(second, i, x[i] * 2)
    kernel = tl.compile(b.build())
    a, c = kernel(np.array([1, 2], np.float32))
    assert (a.tolist(), a.dtype, c.tolist(), c.dtype) == ([1, 2], np.float32, [2, 4], np.float64)
    given = np.empty(2, np.float32)
    (c,) = [kernel(x=np.ones(2, np.float32), first=given)]
    assert (given.tolist(), c.tolist()) == ([1, 1], [2, 2])


def test_a_parameter_may_be_called_self() -> None:
    kernel = tl.compile(tl.parse("@tl.kernel\ndef f(self: tl.f32[2], y: tl.out[tl.f32[2]]):\n    y[0] = self[1]"))
    for call in (kernel, kernel, kernel.interpret):
        np.testing.assert_array_equal(call(self=np.float32([3, 4])), [4, 0])
    assert "self" in kernel.arguments(self=np.float32([3, 4]))
    assert kernel.profile(self=np.float32([3, 4])) is not None


def test_the_number_and_names_of_arguments() -> None:
    assert refusal(lambda: scale(X), TypeError) == (
        f"error[missing-argument]: scale() got no argument for `factor`\n  = help: call it as {HEAD}"
    )
    assert refusal(lambda: scale(X, 1, X, X), TypeError) == (
        f"error[argument-count]: scale() takes 3 arguments, and got 4\n  = help: call it as {HEAD}"
    )
    assert "got two arguments for `x`" in refusal(lambda: scale(X, 1, x=X), TypeError)
    text = refusal(lambda: scale(X, facto=1), TypeError)
    assert "scale() has no parameter `facto`" in text
    assert "did you mean `factor`?" in text


TYPES = [
    ([1.0], "an array of float32, and is a list", "pass np.asarray(x, np.float32)"),
    (3, "an array of float32, and is an int", "pass np.asarray(x, np.float32)"),
    (X[0, 0], "an array of float32, and is a float32", "pass np.asarray(x, np.float32)"),
    ("text", "an array of float32, and is a str", ""),
    (None, "an array of float32, and is a NoneType", ""),
    (X.astype(np.float64), "an array of float32, and is an array of float64", "pass x.astype(np.float32)"),
    (X.astype(">f4"), "is an array of >f4, with its bytes swapped", "pass x.astype(np.float32)"),
    (np.ma.masked_array(X), "an array of float32, and is a MaskedArray", "its mask would be lost: pass x.filled()"),
]


@pytest.mark.parametrize(("given", "problem", "help"), TYPES, ids=lambda value: str(value)[:20])
def test_the_type_of_an_array(given: object, problem: str, help: str) -> None:
    y = np.zeros_like(X)
    text = refusal(lambda: scale(given, 2, y), TypeError)
    assert text.startswith("error[argument-type]: `x` must be ")
    assert problem in text
    assert help in text
    assert not y.any()


def test_subclasses_of_ndarray_that_keep_its_meaning_are_taken(tmp_path) -> None:
    mapped = np.memmap(tmp_path / "data", np.float32, "w+", shape=(2, 3))
    mapped[:] = X
    np.testing.assert_array_equal(scale(mapped, 2), 2 * X)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_is_an_array_of_two_axes() -> None:
    for given in (np.matrix(X), np.matrix(X.T).T, np.matrix(np.repeat(X, 2, axis=1))[:, ::2]):
        y = np.matrix(np.zeros_like(X))
        for call in (scale, scale.interpret) * 2:
            y[...] = 0
            call(given, 2, y)
            np.testing.assert_array_equal(y, 2 * X)
            assert type(call(given, 2)) is np.ndarray


def test_the_layout_of_an_array() -> None:
    y = np.zeros_like(X)
    wide = np.zeros((2, 6), np.float32)
    turned = np.broadcast_to(wide[:, :1], (2, 3))
    turned.flags.writeable = True
    assert "copy it back afterwards" in refusal(lambda: scale(X, 2, turned), ValueError)
    y.flags.writeable = False
    assert "`y` must be writable, as the kernel writes it" in refusal(lambda: scale(X, 2, y), ValueError)
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(scale(frozen, 2), 2 * X)
    skewed = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    assert "`y` must be aligned to 4 bytes" in refusal(lambda: scale(X, 2, skewed), ValueError)


def test_what_is_only_read_need_not_be_aligned() -> None:
    """As arrays are that came in a message, and fields of packed records."""
    skewed = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    skewed[...] = X
    records = np.zeros((2, 3), np.dtype([("flag", "u1"), ("value", "f4")]))
    records["value"] = X
    for given in (skewed, skewed[:, ::-1], records["value"], records[:, ::2]["value"]):
        for _ in range(2):  # the quick call comes second
            np.testing.assert_array_equal(scale(given, 2), 2 * given)


def test_a_promised_alignment_is_checked_and_kept_by_what_is_allocated() -> None:
    b = Builder("aligned")
    x, y = b.param("x", f32[4], alignment=128), b.param("y", f32[4], out=True, alignment=256)
    with b.for_("i", 0, 4) as i:
        b.store(y, i, x[i])
    kernel = tl.compile(b.build())
    room = np.zeros(64, np.float32)
    start = -(room.ctypes.data // 4) % 32
    assert kernel(room[start : start + 4]).ctypes.data % 256 == 0
    text = refusal(lambda: kernel(room[start + 1 : start + 5]), ValueError)
    assert "`x` must be aligned to 128 bytes" in text


def test_shapes() -> None:
    y = np.zeros_like(X)
    assert refusal(lambda: scale(X[0], 2, y), ValueError) == (
        "error[argument-rank]: `x` must have the shape (n, m), and has the shape (3,)\n  = help: `x` has 2 axes"
    )
    assert refusal(lambda: scale(X, 2, np.zeros((2, 4), np.float32)), ValueError) == (
        "error[argument-shape]: axis 1 of `y` must be `m` = 3, and is 4\n  = help: `m` is 3 by axis 1 of `x`"
    )


def call_shaped(x: int = 5, y: tuple[int, ...] = (6, 3), z: tuple[int, ...] = (4, 4)) -> np.ndarray:
    arrays = [np.zeros(shape, np.float32) for shape in (x, y, z)]
    shaped(*arrays)
    return arrays[1]


def test_extents_that_are_constants_or_expressions() -> None:
    assert call_shaped().shape == (6, 3)
    assert refusal(lambda: call_shaped(y=(6, 4)), ValueError) == (
        "error[argument-shape]: axis 1 of `y` must be 3, and is 4\n  = help: `y` is declared with the shape (n + 1, 3)"
    )
    assert "axis 0 of `y` must be `n + 1` = 6, and is 5" in refusal(lambda: call_shaped(y=(5, 3)), ValueError)


def test_facts_of_dims() -> None:
    assert refusal(lambda: call_shaped(z=(0, 4)), ValueError) == (
        "error[dim-fact]: `k` is 0, and was declared to be at least 2\n  = help: `k` was taken from axis 0 of `z`"
    )
    assert "`k` is 18, and was declared to be at most 16" in refusal(lambda: call_shaped(z=(18, 4)), ValueError)
    assert "`k` is 7, and was declared to be a multiple of 2" in refusal(lambda: call_shaped(z=(7, 4)), ValueError)


def test_a_dim_that_only_an_omitted_output_has() -> None:
    b = Builder("fill")
    y = b.param("y", f32[tl.dim("p")], out=True)
    b.store(y, 0, 1)
    text = refusal(lambda: tl.compile(b.build())(), TypeError)
    assert "`y` was left out, and `p` in its shape is known from no other" in text


def test_arrays_that_overlap() -> None:
    room = np.zeros((4, 3), np.float32)
    text = refusal(lambda: scale(room[:2], 2, room[1:3]), ValueError)
    assert text.startswith("error[overlapping-arguments]: `y`, which the kernel writes, overlaps `x`")
    assert "overlaps" in refusal(lambda: scale(room[1:3], 2, room[:2]), ValueError)
    scale(room[:2], 2, room[2:])


def test_arrays_that_are_only_read_may_be_one() -> None:
    b = Builder("add")
    x, y, z = b.param("x", f32[n]), b.param("y", f32[n]), b.param("z", f32[n], out=True)
    with b.for_("i", 0, n) as i:
        b.store(z, i, x[i] + y[i])
    kernel = tl.compile(b.build())
    a = np.arange(4, dtype=np.float32)
    assert kernel(a, a).tolist() == [0, 2, 4, 6]
    assert "overlaps" in refusal(lambda: kernel(a, a, a), ValueError)


def test_an_output_that_cannot_be_allocated() -> None:
    b = Builder("grow")
    k, l = b.param("k", tl.i64), b.param("l", tl.i64)
    b.param("y", f32[k - 1, l], out=True)
    kernel = tl.compile(b.build())
    assert kernel(3, 2).shape == (2, 2)
    assert refusal(lambda: kernel(0, 2), ValueError) == (
        "error[negative-output]: grow() would allocate `y` with the shape (-1, 2)\n"
        "  = help: `y` is declared with the shape (k - 1, l)"
    )
    for rows, columns in ((2**31, 2**31), (2**32 + 2, 2**32), (2**61 + 129, 8)):
        text = refusal(partial(kernel, rows, columns), ValueError)
        assert f"would allocate {4 * (rows - 1) * columns} bytes for `y`" in text


def test_a_dim_that_no_array_has_may_be_given_by_name() -> None:
    rows = tl.dim("rows", max=4)

    @tl.kernel
    def repeated(x: tl.f32[n], y: tl.out[tl.f32[rows, n]]):
        for i in range(rows):
            for j in range(n):
                y[i, j] = x[j] + i

    x = np.float32([1, 2])
    np.testing.assert_array_equal(repeated(x, rows=2), [[1, 2], [2, 3]])
    np.testing.assert_array_equal(repeated.interpret(x=x, rows=np.int64(2)), [[1, 2], [2, 3]])
    assert repeated(x, rows=1, n=2).shape == (1, 2)
    assert repeated(x, rows=0).shape == (0, 2)
    with pytest.raises(tl.CallValueError, match="`n` cannot be 3: it is 2 by axis 0 of `x`"):
        repeated(x, rows=1, n=3)
    with pytest.raises(tl.CallValueError, match="`rows` is 5, and was declared to be at most 4"):
        repeated(x, rows=5)
    with pytest.raises(tl.CallValueError, match="`rows` cannot be 2.5"):
        repeated(x, rows=2.5)
    with pytest.raises(tl.CallTypeError, match="no parameter `row`"):
        repeated(x, row=2)
