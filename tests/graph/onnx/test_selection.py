"""Operators that leave as many elements as their operands say, beside onnxruntime, at several shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph.onnx.beside import Feed, compare
from graph.onnx.written import model

import tirlite as tl

pytestmark = pytest.mark.usefixtures("without_effort")

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def few(*shape: int) -> Any:
    """Elements of which many are equal."""
    return np.random.default_rng(sum(shape)).integers(-1, 2, shape).astype(np.float32)


def test_what_is_not_zero() -> None:
    nodes = "i = NonZero(x) t = Transpose<perm = [1, 0]>(i) v = GatherND(x, t) s = Shape(i)"
    made = model(f"(float[a, b] x) => (i, v, s) {{ {nodes} }}")
    nan = np.array([[np.nan, -0.0, np.inf]], np.float32)
    compare(made, ({"x": each} for each in (few(3, 4), few(1, 1), few(0, 3), nan)))


def test_what_one_condition_picks_twice_goes_together() -> None:
    nodes = "a = Compress(x, c) b = Compress(y, c) z = Mul(a, b)"
    made = model(f"(float[n] x, float[n] y, bool[n] c) => (z) {{ {nodes} }}")
    compare(made, [{"x": few(5), "y": few(5) + 2, "c": np.array([1, 0, 1, 1, 0], bool)}])


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_what_a_condition_picks(axis: int | None) -> None:
    node = "Compress" if axis is None else f"Compress<axis = {axis}>"
    made = model(f"(float[a, 3] x, bool[m] c) => (y) {{ y = {node}(x, c) }}")
    compare(made, ({"x": few(4, 3), "c": np.array(c, bool)} for c in ([1, 0, 1], [0, 0], [1])))


def test_as_many_of_the_greatest_as_an_operand_says() -> None:
    made = model("(float[a, b] x, int64[1] k) => (v, i, w) { v, i = TopK(x, k) w = Mul(v, v) }")
    net = compare(made, ({"x": few(3, 6), "k": np.array([k])} for k in (0, 1, 6)))
    with pytest.raises(tl.KernelRunError, match="the extent count was found to be 7, and must be from 0 to 6"):
        net(few(3, 6), np.array([7]))


@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_slices_between_places_that_are_computed(step: int) -> None:
    given = f"(float[a, b] x, int64[1] s, int64[1] e) => (y) <int64[1] axis = {{-1}}, int64[1] step = {{{step}}}>"
    made = model(f"{given} {{ y = Slice(x, s, e, axis, step) }}")
    far = 2**63 - 1
    places = [(0, 7), (2, 5), (-3, 100), (5, 2), (-1, -100), (100, -100), (6, 0), (far, -far), (-far, far)]
    compare(made, ({"x": few(2, 7), "s": np.array([s]), "e": np.array([e])} for s, e in places))


@pytest.mark.parametrize(("start", "stop", "step"), [(-9, -9, -1), (-2, -(2**63), -1), (-(2**63), -5, -3), (-7, 2, -1)])
def test_slices_backwards_from_in_front_of_an_axis(start: int, stop: int, step: int) -> None:
    numbers = {"s": [start], "e": [stop], "axis": [1], "step": [step]}
    made = model("(float[a, b] x) => (y, shape) { y = Slice(x, s, e, axis, step) shape = Shape(y) }", **numbers)
    compare(made, ({"x": few(2, length)} for length in (7, 1, 2)))


def test_a_slice_whose_axes_and_steps_a_run_finds() -> None:
    names = ("s", "e", "axes", "steps")
    given = "float[a, b] x, " + ", ".join(f"int64[2] {name}" for name in names)
    made = model(f"({given}) => (y) {{ y = Slice(x, {', '.join(names)}) }}")
    cases = [
        ((0, 1), (6, 7), (0, 1), (2, 3)),
        ((-1, 1), (-100, 8), (-1, 0), (-2, 1)),
        ((2, 0), (1, 2**63 - 1), (1, 0), (1, -1)),
    ]
    net = compare(made, ({"x": few(6, 7)} | dict(zip(names, map(np.array, case), strict=True)) for case in cases))
    for axes, steps in (((0, 1), (1, 0)), ((1, -1), (1, 1)), ((0, 2), (1, 1))):
        with pytest.raises(
            tl.KernelRunError, match=r"length was found to be -1, .*\n.*\n.*\n.*y = Slice\(x, s, e, axes, steps\)"
        ):
            net(few(6, 7), np.array([0, 0]), np.array([6, 7]), np.array(axes), np.array(steps))


def test_padding_with_a_number_of_the_call() -> None:
    made = model("(float[a, b] x, float fill) => (y) { y = Pad(x, widths, fill) }", widths=[1, 0, -1, 2])
    compare(
        made,
        ({"x": few(*shape), "fill": np.array(fill, np.float32)} for shape, fill in (((2, 3), 7), ((1, 1), -np.inf))),
    )


def test_a_shape_of_which_one_extent_is_computed() -> None:
    nodes = "s = Concat<axis = 0>(k, four) y = Reshape(x, s)"
    made = model(f"(float[a, 8] x, int64[1] k) => (y) {{ {nodes} }}", four=[4])
    net = compare(made, ({"x": few(3, 8), "k": np.array([k])} for k in (6, -1)))
    with pytest.raises(tl.KernelRunError, match="the extent wanted was found to be 5, and must be 6"):
        net(few(3, 8), np.array([5]))


@pytest.mark.parametrize("how", ["", "<sorted = 0>", "<axis = 0>", "<axis = -1, sorted = 0>"])
def test_unique_elements_and_rows(how: str) -> None:
    made = model(f"(float[a, b] x) => (y, i, v, c) {{ y, i, v, c = Unique{how}(x) }}")
    compare(made, ({"x": each} for each in (few(3, 4), few(1, 1), few(9, 2))))


def test_branches_of_different_shapes() -> None:
    nodes = """
        y = If<
            then_branch = then () => (t) { t = Slice(x, zero, two) },
            else_branch = other () => (e) { e2 = Concat<axis = 0>(x, x) e = Softmax(e2) }
        >(c)
        z = Exp(y)
    """
    made = model(f"(float[a, 3] x, bool c) => (y, z) {{ {nodes} }}", zero=[0], two=[2])
    net = compare(made, ({"x": few(rows, 3), "c": np.array(c)} for rows in (1, 3, 5) for c in (True, False)))
    assert str(net.plan.total) == str(net.plan.lower_bound) == "24*a"


def detector() -> Any:
    """A small one: features, boxes and scores of all places, the best boxes, and what they hold."""
    rng = np.random.default_rng(0)
    classes, at = 3, 2
    nodes = """
        f1 = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(image, w1) f2 = Relu(f1) map = Conv(f2, w2)
        rows = Reshape(map, flat) raw, logits = Split<axis = 1>(rows, parts) scores = Sigmoid(logits)
        centres = Transpose<perm = [0, 2, 1]>(raw) boxes = Exp(centres)
        chosen = NonMaxSuppression(boxes, scores, most, iou, least)
        column = Slice(chosen, two, three, one) index = Squeeze(column, one)
        all = Squeeze(boxes, zero) best = Gather<axis = 0>(all, index)
        sums = ReduceSum<keepdims = 0>(best, one) found = Shape(best)
    """
    weights = {
        "w1": rng.standard_normal((6, 3, 3, 3)).astype(np.float32) * 0.4,
        "w2": rng.standard_normal((4 + classes, 6, 1, 1)).astype(np.float32) * 0.5,
        "flat": np.array([1, 4 + classes, -1]),
        "parts": np.array([4, classes]),
        "most": np.array([5]),
        "iou": np.array([0.3], np.float32),
        "least": np.array([0.6], np.float32),
        "zero": np.array([0]),
        "one": np.array([1]),
        "two": np.array([at]),
        "three": np.array([at + 1]),
    }
    return model(f"(float[1, 3, height, width] image) => (chosen, best, sums, found) {{ {nodes} }}", **weights)


def test_a_detector_runs_whole_under_one_plan() -> None:
    rng = np.random.default_rng(3)
    shapes = [(16, 16), (9, 20), (2, 2), (1, 1)]
    net = compare(detector(), ({"image": rng.standard_normal((1, 3, *shape)).astype(np.float32)} for shape in shapes))
    assert {str(dim) for dim in net.plan.problem.dims} == {"height", "width"}
    assert net(rng.standard_normal((1, 3, 16, 16)).astype(np.float32))[0].shape[0] > 3
    nothing = net(np.zeros((1, 3, 8, 8), np.float32))
    assert [each.shape for each in nothing] == [(0, 3), (0, 4), (0,), (2,)]


@pytest.mark.parametrize("center", [0, 1])
def test_suppression_of_many_boxes(center: int) -> None:
    given = "float[n, k, 4] b, float[n, c, k] s, int64[1] most, float[1] iou, float[1] least"
    node = f"NonMaxSuppression<center_point_box = {center}>(b, s, most, iou, least)"
    made = model(f"({given}) => (y) {{ y = {node} }}")
    rng = np.random.default_rng(center)

    def feed(n: int, c: int, k: int, most: int, iou: float, least: float) -> Feed:
        numbers = {"iou": np.array([iou], np.float32), "least": np.array([least], np.float32)}
        boxes = rng.uniform(0, 1, (n, k, 4)).astype(np.float32)
        scores = rng.integers(0, 9, (n, c, k)).astype(np.float32) / 8  # of which many are equal
        return {"b": boxes, "s": scores, "most": np.array([most]), **numbers}

    cases = [(2, 3, 40, 7, 0.4, 0.2), (1, 1, 30, 100, 0.0, 0.0), (1, 2, 5, 0, 0.5, 0.1), (1, 1, 1, 1, 1.0, 2.0)]
    compare(made, (feed(*case) for case in cases))
