"""Operators: each has a meaning, a method of the builder, and a type that its values have."""

from __future__ import annotations

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.graph.op import OPS

FLOATS = "exp tanh sigmoid relu gelu hard_swish softplus erf round mish rsqrt".split()


def test_each_operator_has_a_meaning_and_a_kernel() -> None:
    """Those without a NumPy function are checked against loops over single elements, in `operator_cases`."""
    of_kernels = {name for name, op in OPS.items() if op.meaning is None}
    assert of_kernels == {
        *("lstm", "lstm_bytes", "gru", "rnn"),
        *("grid_sample", "max_pool_indices", "non_max_suppression", "roi_align"),
    }
    assert [name for name, op in OPS.items() if op.lowering is None] == ["reshape", "assume", "sizes"]
    assert [name for name, op in OPS.items() if op.lowering is not None and not callable(op.lowering.make())] == []


def test_a_kernel_that_stands_for_an_operator_tells_where_it_is_called() -> None:
    g = tl.graph.Builder("boxes")
    boxes, scores = g.input("boxes", tl.f32[1, 3, 4]), g.input("scores", tl.f32[1, 1, 3])
    f = g.function([*g.non_max_suppression(boxes, scores, np.array(3), np.float32(0.5), np.float32(0), 1)])
    apart = np.array([[[0, 0, 1, 1], [5, 5, 6, 6], [9, 9, 10, 10]]], np.float32)
    with pytest.raises(tl.KernelIndexError, match="out of bounds.*\n.*test_operators.py"):
        tl.graph.evaluate(f, apart, np.ones((1, 1, 3), np.float32))


@every("name", OPS)
def test_each_operator_is_a_method_of_the_builder(name: str) -> None:
    assert getattr(tl.graph.Builder, name).__doc__


@pytest.mark.parametrize("dtype", [tl.f16, tl.f32, tl.f64], ids=str)
@pytest.mark.parametrize("name", FLOATS)
def test_values_have_the_inferred_type(name: str, dtype: tl.ir.DType) -> None:
    g = tl.graph.Builder("one")
    f = g.function(getattr(g, name)(g.input("x", dtype[4])))
    result = tl.graph.evaluate(f, np.array([-1, 0, 0.5, 3], dtype.numpy))
    assert isinstance(result, np.ndarray)
    assert (result.shape, result.dtype) == ((4,), dtype.numpy)


def test_numbers_take_the_type_of_what_they_stand_beside() -> None:
    g = tl.graph.Builder("weak")
    x = g.input("x", tl.u8[3])
    assert [g.add(x, 1).dtype, g.subtract(7, x).dtype, g.where(g.less(x, 2), 5, x).dtype] == [tl.u8] * 3


def test_broadcasting_keeps_symbolic_extents() -> None:
    n, m = tl.dims("n m")
    g = tl.graph.Builder("wide")
    x, y = g.input("x", tl.f32[n, 1, 4]), g.input("y", tl.f32[m, 1])
    assert str(g.add(x, y).type) == "f32[n, m, 4]"
    assert str(g.add(x, g.input("z", tl.f32[()])).type) == "f32[n, 1, 4]"


def test_matmul_follows_numpy() -> None:
    rng = np.random.default_rng(0)
    for a, b in [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 1, 3, 4), (6, 4, 5))]:
        g = tl.graph.Builder("product")
        product = g.matmul(g.input("a", tl.f64[a]), g.input("b", tl.f64[b]))
        arrays = rng.random(a), rng.random(b)
        result = tl.graph.evaluate(g.function(product), *arrays)
        np.testing.assert_array_equal(result, np.matmul(*arrays))
        assert product.shape == np.shape(result)


def test_products_take_transposes_as_they_lie() -> None:
    g = tl.graph.Builder("turned")
    a, b = g.input("a", tl.f32[2, 4, 3]), g.input("b", tl.f32[5, 4])
    f = g.function(g.matmul(g.transpose(a, (0, 2, 1)), g.transpose(b)))
    assert "transpose(" not in str(f)
    arrays = [np.random.default_rng(0).random(shape, np.float32) for shape in ((2, 4, 3), (5, 4))]
    wanted = np.matmul(arrays[0].swapaxes(1, 2), arrays[1].T)
    for result in (tl.graph.evaluate(f, *arrays), tl.graph.compile(f)(*arrays)):
        np.testing.assert_allclose(result, wanted, rtol=1e-6)


def test_products_leave_other_orders_of_axes_to_transposes() -> None:
    g = tl.graph.Builder("heads")
    a = g.input("a", tl.f32[4, 4, 4])
    assert "transpose(" in str(g.function(g.matmul(a, g.transpose(a, (2, 1, 0)))))


def test_bfloat16_is_rounded_after_each_operator() -> None:
    g = tl.graph.Builder("brain")
    x = g.input("x", tl.bf16[2])
    f = g.function(g.cast(g.add(x, x), tl.f32))
    bits = np.array([0x3F81, 0x7F7F], np.uint16)
    np.testing.assert_array_equal(tl.graph.evaluate(f, bits), np.array([2.015625, np.inf], np.float32))


def test_bfloat16_of_another_library_is_taken_as_it_is() -> None:
    brain = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    g = tl.graph.Builder("brain")
    f = g.function(g.cast(g.input("x", tl.bf16[2, 1]), tl.f32))
    given = np.array([[1.5], [-2]]).astype(brain)
    np.testing.assert_array_equal(tl.graph.evaluate(f, given), tl.graph.compile(f)(given))
    plain = tl.graph.Builder("plain")
    rectified = plain.function(plain.relu(plain.input("y", tl.f32[2, 1])))
    with pytest.raises(tl.CallTypeError, match="was given bfloat16"):
        tl.graph.evaluate(rectified, given)


def test_numbers_beside_bfloat16_are_rounded_to_it() -> None:
    g = tl.graph.Builder("brain")
    x = g.input("x", tl.bf16[1])
    f = g.function(g.cast(g.multiply(x, 1.5), tl.f32))
    np.testing.assert_array_equal(tl.graph.evaluate(f, np.array([0x4000], np.uint16)), [3.0])


def test_an_index_for_each_axis_picks_a_single_element() -> None:
    g = tl.graph.Builder("pick")
    f = g.function(g.gather_nd(g.input("x", tl.f32[2, 3]), g.input("i", tl.i64[2])))
    result = tl.graph.evaluate(f, np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 2]))
    assert (result.shape, result.item()) == ((), 5)


def test_integers_divide_as_asked() -> None:
    x, y = np.array([-7, 7, -8], np.int32), np.array([2, -2, 2], np.int32)
    g = tl.graph.Builder("division")
    a, b = g.input("x", tl.i32[3]), g.input("y", tl.i32[3])
    f = g.function([g.floor_divide(a, b), g.floor_mod(a, b), g.trunc_divide(a, b), g.trunc_mod(a, b)])
    shown = [each.tolist() for each in tl.graph.evaluate(f, x, y)]
    assert shown == [[-4, -4, -4], [1, -1, 0], [-3, -3, -4], [-1, 1, 0]]


def test_nothing_is_dropped_outside_of_training() -> None:
    g = tl.graph.Builder("trained")
    y = g.dropout(g.input("x", tl.f32[2, 3]))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(tl.graph.evaluate(g.function(y), x), x)


@pytest.mark.parametrize(
    ("name", "at_minus_one"),
    [
        ("leaky_relu", -0.01),
        ("elu", np.expm1(-1)),
        ("celu", np.expm1(-1)),
        ("selu", 1.0507009873554805 * 1.6732632423543772 * np.expm1(-1)),
        ("gelu", -0.15865525393145707),
        ("hard_sigmoid", 0.3),
        ("clip", -1),
    ],
)
def test_attributes_have_the_defaults_of_the_standard(name: str, at_minus_one: float) -> None:
    g = tl.graph.Builder("one")
    f = g.function(getattr(g, name)(g.input("x", tl.f64[1])))
    assert tl.graph.evaluate(f, np.float64([-1])) == pytest.approx(at_minus_one, rel=1e-6)


def test_a_method_names_what_it_does_not_take() -> None:
    g = tl.graph.Builder("one")
    x = g.input("x", tl.f32[2, 3, 4, 4])
    for wrong, told in (
        (lambda: g.exp(x, x), r"exp\(\) takes 2 positional"),  # type: ignore[call-arg]
        (lambda: g.elu(x, beta=1), r"elu\(\) got an unexpected keyword argument 'beta'"),  # type: ignore[call-arg]
        (lambda: g.conv(x, x, strides=2), r"conv\(\) got an unexpected keyword argument 'strides'"),  # type: ignore[call-arg]
        (lambda: g.max_pool(x, 3, pads=1), r"max_pool\(\) got an unexpected keyword argument 'pads'"),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError, match=told):
            wrong()
