"""Weights of products that are turned over once, or cut into panels, when a network is compiled."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tirlite as tl
from tirlite.graph import Builder, Function, compile, evaluate  # noqa: A004
from tirlite.graph.aot.laid_out import LAYOUTS
from tirlite.graph.aot.lower import lower
from tirlite.graph.operators.laid_out import are_bytes, groups_of_pairs, panels as cut
from tirlite.ir import callees

# Values are compared, and how weights lie: how hard LLVM tries is of no matter.
pytestmark = pytest.mark.usefixtures("without_effort")

RNG = np.random.default_rng(0)
n = tl.dim("n")
WEIGHTS, BIAS = RNG.standard_normal((30, 70), np.float32), RNG.standard_normal(150, np.float32)


def layer(rows: object, *, is_read: bool = False) -> Function:
    g = Builder("layer")
    x, w = g.input("x", tl.f32[rows, 70]), g.constant(WEIGHTS, name="w")
    made = {"y": g.relu(g.dense(x, w, BIAS[:30]))}
    return g.function(made | {"z": g.add(w, w)} if is_read else made)


@pytest.mark.parametrize("rows", [3, 40, n])
def test_a_product_of_rows_takes_transposed_weights_as_they_lie(rows: object) -> None:
    net = compile(layer(rows))
    assert "w_transposed" in str(net.ir)
    assert "30, 70" not in str(net.ir)
    x = RNG.standard_normal((40 if rows is n else rows, 70), np.float32)
    np.testing.assert_allclose(net(x), evaluate(layer(rows), x), rtol=0, atol=1e-4)


@pytest.mark.parametrize("columns", [30, 150])
def test_one_row_takes_them_as_the_model_has_them(columns: int) -> None:
    g = Builder("layer")
    w = g.constant(RNG.standard_normal((columns, 70), np.float32), name="w")
    made = str(compile(g.function(g.dense(g.input("x", tl.f32[1, 70]), w))).ir)
    assert "w_transposed" not in made
    assert "w_panels" not in made


def test_one_row_takes_panels_of_a_matrix() -> None:
    g = Builder("layer")
    x, weights = g.input("x", tl.f32[1, 70]), np.ascontiguousarray(RNG.standard_normal((150, 70), np.float32).T)
    function = g.function(g.matmul(x, g.constant(weights, name="w")))
    assert "w_panels" in str(compile(function).ir)
    row = RNG.standard_normal((1, 70), np.float32)
    np.testing.assert_allclose(compile(function)(row), row @ weights, rtol=0, atol=1e-4)


def test_weights_that_are_read_elsewhere_stay_too() -> None:
    x = RNG.standard_normal((5, 70), np.float32)
    y, z = compile(layer(5, is_read=True))(x)
    np.testing.assert_allclose(y, np.maximum(x @ WEIGHTS.T + BIAS[:30], 0), rtol=0, atol=1e-4)
    np.testing.assert_array_equal(z, 2 * WEIGHTS)


def test_a_pickled_network_has_them_so() -> None:
    x = RNG.standard_normal((5, 70), np.float32)
    net = compile(layer(5))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(net))(x), net(x))


def in_panels(rows: object, columns: int, *, is_turned: bool) -> Function:
    weights = RNG.standard_normal((columns, 40), np.float32)
    g = Builder("layer")
    x = g.input("x", tl.f32[2, rows, 40])
    w = g.constant(weights if is_turned else np.ascontiguousarray(weights.T), name="w")
    if is_turned:
        made = g.gelu(g.dense(g.reshape(x, (2 * rows, 40)), w, g.constant(BIAS[:columns])))  # type: ignore[operator]
    else:
        made = g.add(g.relu(g.add(g.matmul(x, w), g.constant(BIAS[:columns]))), 0.5)
    return g.function(made)


@pytest.mark.parametrize(("columns", "panels"), [(96, (3, 32)), (192, (6, 32)), (512, (8, 64))])
def test_few_columns_are_cut_into_narrow_panels_so_that_workers_end_together(columns: int, panels: object) -> None:
    made = cut(np.zeros((40, columns), np.float32))
    assert (len(made), made.shape[2]) == panels


@pytest.mark.parametrize(
    ("columns", "panels"), [(1000, (16, 64)), (544, (9, 64)), (150, (3, 64)), (70, (3, 32)), (37, (3, 16))]
)
def test_the_last_panel_of_columns_is_filled_up(columns: int, panels: object) -> None:
    weights = RNG.standard_normal((5, columns), np.float32)
    made = cut(weights)
    assert (len(made), made.shape[2]) == panels
    whole = made.swapaxes(0, 1).reshape(5, -1)
    np.testing.assert_array_equal(whole[:, :columns], weights)
    assert not whole[:, columns:].any()
    np.testing.assert_array_equal(LAYOUTS["panels of transpose"].function(np.ascontiguousarray(weights.T)), made)


@pytest.mark.parametrize("is_turned", [True, False])
@pytest.mark.parametrize(("rows", "columns"), [(1, 96), (5, 96), (40, 96), (n, 96), (1, 150), (2, 37), (n, 100)])
def test_columns_by_the_dozen_are_cut_into_panels_of_which_whole_ones_are_not_copied(
    rows: object, columns: int, is_turned: bool
) -> None:
    function = in_panels(rows, columns, is_turned=is_turned)
    net = compile(function)
    assert "w_panels" in str(net.ir)
    assert columns != 96 or "packed" not in "".join(map(str, callees(net.lowered)))
    x = RNG.standard_normal((2, 7 if rows is n else rows, 40), np.float32)
    np.testing.assert_allclose(net(x), evaluate(function, x), rtol=0, atol=1e-4)
    if rows == 5:
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(net))(x), net(x))


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
def test_rows_share_what_is_read_of_a_panel(target: str) -> None:
    g = Builder("layer")
    w = g.constant(RNG.standard_normal((150, 70), np.float32), name="w")
    function = g.function(g.dense(g.input("x", tl.f32[3, 70]), w, g.constant(BIAS)))
    assert "lefts[0, i + 2, p]" in str(compile(function, target=tl.Target(target)).lowered)


@pytest.mark.skipif(tl.Target.host().processor.family != "x86-64", reason="no dot products of bytes or halves")
@pytest.mark.parametrize(
    ("target", "group"), [*[("host", 4)] * ("u8 s8" in tl.Target.host().processor.dots), ("x86-64-v3", 2)]
)
@pytest.mark.parametrize("rows", [1, 5, n])
@pytest.mark.parametrize("dtype", [tl.u8, tl.i8])
@pytest.mark.parametrize(("terms", "columns"), [(40, 96), (40, 100), (38, 64), (37, 64)])
def test_columns_of_bytes_are_cut_into_panels_by_groups(
    rows: object, dtype: tl.ir.DType, terms: int, columns: int, target: str, group: int
) -> None:
    weights = RNG.integers(-128, 127, (terms, columns), np.int8, endpoint=True)
    g = Builder("layer")
    x = g.input("x", dtype[2, rows, terms])
    zero, none = g.constant(np.array(7, dtype.numpy)), g.constant(np.zeros(columns, np.int8))
    function = g.function(g.matmul_integer(x, g.constant(weights, name="w"), zero, none))
    net = compile(function, target=tl.Target(target))
    assert ("product_bytes" in str(net.ir)) is (terms % group == 0)
    limits = np.iinfo(dtype.numpy)
    x = RNG.integers(limits.min, limits.max, (2, 7 if rows is n else rows, terms), dtype.numpy, endpoint=True)
    np.testing.assert_array_equal(net(x), evaluate(function, x))
    if rows == 1:
        np.testing.assert_array_equal(net.interpret(x), evaluate(function, x))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(net))(x), net(x))


def grouped(image: int, groups: int, outputs: int, size: int = 3) -> Function:
    weights = RNG.standard_normal((groups * outputs, 16, size, size), np.float32)
    g = Builder("layer")
    x = g.input("x", tl.f32[1, 16 * groups, image, image])
    return g.function(g.relu(g.conv(x, g.constant(weights, name="w"), stride=2, pad=size // 2, groups=groups)))


@pytest.mark.parametrize(
    ("image", "groups", "outputs", "is_cut"),
    [(7, 4, 16, True), (14, 1, 32, True), (14, 5, 16, False), (7, 8, 8, False), (112, 4, 16, False)],
)
def test_windows_on_small_images_go_by_panels_where_these_are_whole_and_even(
    image: int, groups: int, outputs: int, is_cut: bool
) -> None:
    function = grouped(image, groups, outputs)
    net = compile(function)
    assert ("panels" in str(net.ir)) is is_cut
    assert not is_cut or "packed" not in "".join(map(str, callees(net.lowered)))
    x = RNG.standard_normal((1, 16 * groups, image, image), np.float32)
    np.testing.assert_allclose(net(x), evaluate(function, x), rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("image", "outputs", "target", "panels"),
    [
        (14, 64, "x86-64-v3", (4, 16)),
        (14, 64, "x86-64-v4", (2, 32)),
        (14, 96, "x86-64-v4", (6, 16)),
        (14, 160, "x86-64-v4", (5, 32)),
        (112, 64, "x86-64-v4", (2, 32)),
    ],
)
def test_panels_of_windows_are_wide_where_rows_of_tiles_are_and_workers_end_together(
    image: int, outputs: int, target: str, panels: tuple[int, int]
) -> None:
    function = grouped(image, 1, outputs)
    count, size = panels
    assert f"w: tl.f32[{count}, 16, 3, 3, {size}]" in str(compile(function, target=tl.Target(target)).ir)
    x = RNG.standard_normal((1, 16, image, image), np.float32)
    np.testing.assert_allclose(compile(function)(x), evaluate(function, x), rtol=0, atol=1e-3)


@pytest.mark.parametrize("size", [(3, 3), (3, 2), (2, 1)])
@pytest.mark.parametrize(("gap", "pads"), [(2, (2, 1)), (3, (1, 1, 3, 1))])
def test_rows_go_without_taps_that_lie_outside_of_the_image(size: tuple[int, int], gap: int, pads: object) -> None:
    g, weights = Builder("layer"), RNG.standard_normal((32, 8, *size), np.float32)
    x, w = g.input("x", tl.f32[1, 8, 5, 3]), g.constant(weights, name="w")
    function = g.function(g.conv(x, w, pad=pads, dilation=(gap, 1)))
    net, x = compile(function, target=tl.Target("x86-64-v4")), RNG.standard_normal((1, 8, 5, 3), np.float32)
    assert "w_panels" in str(net.ir)
    made = "".join(map(str, callees(net.lowered)))
    assert "packed" not in made
    assert "16)] = tl.fma(tl.broadcast(" in made
    np.testing.assert_allclose(net.interpret(x), evaluate(function, x), rtol=0, atol=1e-4)


def test_panels_of_convolutions_begin_where_lines_of_caches_do() -> None:
    weights = RNG.standard_normal((32, 16, 3, 3), np.float32)
    for name, layout in LAYOUTS.items():
        if name.endswith(("of outputs", "of few outputs")):
            assert not layout.function(weights).ctypes.data % 64


@pytest.mark.parametrize(
    ("image", "outputs", "size", "step", "gap", "pads", "is_bare"),
    [
        ((9, 52), 48, (4, 4), 4, 1, 0, True),
        ((4, 30), 32, (2, 2), 2, 1, 0, True),
        ((5, 33), 16, (3, 3), 2, 1, 0, True),
        ((2, 27), 16, (1, 5), 1, 1, 0, True),
        ((9, 17), 16, (3, 2), 1, 3, 0, True),
        ((5, 33), 16, (3, 3), 2, 1, (0, 0, 1, 1), True),
        ((6, 34), 16, (3, 3), 2, 1, (0, 0, 1, 1), False),
        ((6, 34), 16, (3, 3), 2, 1, 1, False),
    ],
)
def test_windows_of_few_weights_without_padding_go_by_rows_and_copy_no_image(
    image: tuple[int, int], outputs: int, size: tuple[int, int], step: int, gap: int, pads: object, *, is_bare: bool
) -> None:
    g, weights = Builder("layer"), RNG.standard_normal((outputs, 3, *size), np.float32)
    x, w = g.input("x", tl.f32[n, 3, *image]), g.constant(weights, name="w")
    function = g.function(g.conv(x, w, BIAS[:outputs], stride=step, dilation=gap, pad=pads))
    net, x = compile(function, target=tl.Target("x86-64-v4")), RNG.standard_normal((2, 3, *image), np.float32)
    made = "".join(map(str, callees(net.lowered)))
    assert ("band" in made) is ("held" not in made) is is_bare
    assert "interleave" in made or not is_bare
    np.testing.assert_allclose(net.interpret(x), evaluate(function, x), rtol=0, atol=1e-4)
    np.testing.assert_allclose(compile(function)(x), evaluate(function, x), rtol=0, atol=1e-4)


def test_images_that_are_read_in_place_are_those_without_padding() -> None:
    g, weights = Builder("layer"), RNG.standard_normal((128, 16, 3, 3), np.float32)
    x = g.input("x", tl.f32[2, 32, 9, 9])
    w = g.constant(weights, name="w")
    function = g.function(g.conv(x, w, stride=2, groups=2))
    net, x = compile(function), RNG.standard_normal((2, 32, 9, 9), np.float32)
    made = "".join(map(str, callees(net.lowered)))
    assert "w_panels" in str(net.ir)
    assert "held" not in made
    np.testing.assert_allclose(net(x), evaluate(function, x), rtol=0, atol=1e-3)


def test_an_image_that_would_take_much_storage_is_not_copied_for_windows() -> None:
    assert "panels" not in str(compile(grouped(136, 1, 64), target=tl.Target("x86-64-v4")).ir)


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("groups", "outputs"), [(1, 64), (1, 208), (1, 72), (4, 16)])
def test_points_of_which_some_are_left_out_go_by_the_panels_that_are_whole(
    groups: int, outputs: int, target: str
) -> None:
    function = grouped(4, groups, outputs, size=1)
    net, x = compile(function, target=tl.Target(target)), RNG.standard_normal((1, 16 * groups, 4, 4), np.float32)
    is_whole = outputs % (32 if target == "x86-64-v4" else 16) == 0
    assert ("panels" in str(net.ir)) is (groups == 1 and is_whole)
    np.testing.assert_allclose(net.interpret(x), evaluate(function, x), rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("image", "outputs", "size", "pads", "extra", "is_cut"),
    [
        ((3, 4), 32, 4, 1, 0, True),
        ((5, 3), 32, 3, (1, 0, 1, 2), 1, True),
        ((4, 4), 48, 4, 1, 0, True),
        ((2, 3), 32, 5, (3, 3, 0, 2), (0, 1), True),
        ((3, 1), 64, 3, 1, 0, True),
        ((17, 16), 32, 2, 0, 0, False),
        ((5, 13), 32, 2, 0, 0, False),
        ((7, 6), 48, 2, 0, 0, False),
        ((4, 4), 16, 4, 1, 0, False),
        ((4, 4), 32, 1, 0, 1, False),
    ],
)
def test_transposes_of_convolutions_by_steps_of_two_go_by_panels(
    image: tuple[int, int], outputs: int, size: int, pads: object, extra: object, is_cut: bool
) -> None:
    g = Builder("layer")
    x, w = g.input("x", tl.f32[2, 8, *image]), g.constant(RNG.standard_normal((8, outputs, size, size), np.float32))
    bias = RNG.standard_normal(outputs, np.float32)
    made = g.conv_transpose(x, w, bias, stride=2, pad=pads, output_padding=extra)
    function = g.function(g.relu(made))
    net, value = compile(function), RNG.standard_normal((2, 8, *image), np.float32)
    assert ("panels" in str(net.ir)) is is_cut
    assert not is_cut or "packed" not in "".join(map(str, callees(net.lowered)))
    np.testing.assert_allclose(net(value), evaluate(function, value), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("operator", "layout", "weights", "how"),
    [
        ("conv", "winograd", (48, 40, 3, 3), {"pad": 1}),
        ("conv", "panels", (32, 40, 3, 3), {"pad": 1, "stride": 2}),
        ("conv_transpose", "panels", (40, 32, 4, 4), {"pad": 1, "stride": 2}),
    ],
)
def test_weights_of_halves_are_laid_out_as_f32(
    operator: str, layout: str, weights: tuple[int, ...], how: dict[str, int]
) -> None:
    rng = np.random.default_rng(0)
    weight = (rng.standard_normal(weights) / 20).astype(np.float16)
    value = rng.standard_normal((2, 40, 13, 12), np.float32)
    bias = rng.standard_normal(weights[operator == "conv_transpose"], np.float32)

    def layer_of(dtype: tl.DType) -> Function:
        g = Builder("layer")
        x, b = g.input("x", dtype[2, 40, 13, 12]), bias.astype(dtype.numpy)
        return g.function(getattr(g, operator)(x, g.constant(weight.astype(dtype.numpy), name="w"), b, **how))

    net, halves = compile(layer_of(tl.f16)), value.astype(np.float16)
    assert f"w_{layout}" in str(net.ir)
    np.testing.assert_allclose(net(halves), evaluate(layer_of(tl.f32), halves.astype(np.float32)), rtol=0, atol=4e-3)


def test_points_of_halves_are_not_widened_anew_for_each_panel() -> None:
    g = Builder("layer")
    weight = RNG.standard_normal((64, 16, 1, 1), np.float32).astype(np.float16)
    net = compile(g.function(g.conv(g.input("x", tl.f16[1, 16, 7, 7]), g.constant(weight, name="w"))))
    assert "panels" not in str(net.ir)


@pytest.mark.parametrize("size", [(5, 3), (7, 7)])
@pytest.mark.parametrize(("target", "is_in_registers"), [("x86-64-v3", False), ("x86-64-v4", True)])
def test_long_rows_of_depthwise_convolutions_stand_in_registers_where_lanes_are_permuted(
    target: str, is_in_registers: bool, size: tuple[int, int]
) -> None:
    g = Builder("layer")
    weights = RNG.standard_normal((3, 1, *size), np.float32)
    x = g.input("x", tl.f32[2, 3, 19, 21])
    function = g.function({"y": g.conv2d(x, g.constant(weights, name="w"), pad=(size[0] // 2, size[1] // 2), groups=3)})
    net = compile(function, target=tl.Target(target))
    assert ("w_rows_in_registers" in str(net.ir)) == is_in_registers
    image = RNG.standard_normal((2, 3, 19, 21), np.float32)
    np.testing.assert_allclose(compile(function)(image), evaluate(function, image), rtol=0, atol=1e-4)


def test_all_constants_are_laid_out_once_a_function_is_lowered() -> None:
    g = Builder("convolutions")
    x = g.input("x", tl.f32[1, 24, 28, 28])
    for number, channels in enumerate((24, 40, 64)):
        taken = x.tensor.shape[1]
        x = g.conv(x, g.constant(RNG.standard_normal((channels, taken, 3, 3), np.float32), name=f"w{number}"), pad=1)
    small = g.conv(x, g.constant(RNG.standard_normal((64, 64, 3, 3), np.float32), name="w3"), stride=4)
    lowered = lower(g.function(small), fuse=True, winograd=True)
    assert {layout for layout, _ in lowered.layouts.values()} >= {"winograd", "panels of outputs"}
    for constant, (layout, source) in lowered.layouts.items():
        np.testing.assert_array_equal(constant.value, LAYOUTS[layout].function(source.value))
        assert not constant.value.flags.writeable


@pytest.mark.parametrize(("batches", "ways", "width", "is_cut"), [(1, 1, 128, True), (7, 2, 8, True), (1, 1, 8, False)])
def test_recurrent_layers_of_several_sequences_go_by_panels(batches: int, ways: int, width: int, is_cut: bool) -> None:
    g = Builder("layer")
    sums = g.input("sums", tl.f32[3, batches, ways * 4 * width])
    weights = RNG.standard_normal((ways, width, 4 * width), np.float32) / np.float32(width)
    states = (g.input(name, tl.f32[ways, batches, width]) for name in ("hidden", "cell"))
    function = g.function([*g.lstm(sums, g.constant(weights, name="w"), *states, reverse=ways == 1)])
    for target in ("x86-64-v3", "x86-64-v4"):
        cut = "w_panels_of_ways" in str(compile(function, target=tl.Target(target)).ir)
        assert cut == (is_cut and target == "x86-64-v4")
    given = [RNG.standard_normal(param.tensor.shape, np.float32) for param in function.params]
    for found, wanted in zip(compile(function)(*given), evaluate(function, *given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_groups_of_four_rows_have_the_same_bytes_as_pairs() -> None:
    def rows(weights: np.ndarray) -> np.ndarray:
        return weights.transpose(0, 2, 4, 1, 3).reshape(2, -1, 12)

    pairs = RNG.integers(-128, 128, (2, 3, 3, 4, 2)).astype(np.int16)
    made = rows(groups_of_pairs(pairs))
    np.testing.assert_array_equal(made[:, :6], rows(pairs))
    assert not made[:, 6:].any()
    pairs[0, 0, 0, 0, 0] = 127
    assert are_bytes(pairs)
    assert not are_bytes(pairs + np.int16(1))
