"""Operators that leave as many elements as their operands say, beside onnxruntime, at several shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph.onnx.beside import Feed, compare, model

import tirlite as tl

pytestmark = pytest.mark.usefixtures("without_effort")

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
helper, TYPES = onnx.helper, onnx.TensorProto


def few(*shape: int) -> Any:
    """Elements of which many are equal."""
    return np.random.default_rng(sum(shape)).integers(-1, 2, shape).astype(np.float32)


def test_what_is_not_zero() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["i"]),
        helper.make_node("Transpose", ["i"], ["t"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "t"], ["v"]),
        helper.make_node("Shape", ["i"], ["s"]),
    ]
    made = model(nodes, {"x": (TYPES.FLOAT, ["a", "b"])}, ["i", "v", "s"])
    nan = np.array([[np.nan, -0.0, np.inf]], np.float32)
    compare(made, ({"x": each} for each in (few(3, 4), few(1, 1), few(0, 3), nan)))


def test_what_one_condition_picks_twice_goes_together() -> None:
    nodes = [
        helper.make_node("Compress", ["x", "c"], ["a"]),
        helper.make_node("Compress", ["y", "c"], ["b"]),
        helper.make_node("Mul", ["a", "b"], ["z"]),
    ]
    vector = (TYPES.FLOAT, ["n"])
    made = model(nodes, {"x": vector, "y": vector, "c": (TYPES.BOOL, ["n"])}, ["z"])
    compare(made, [{"x": few(5), "y": few(5) + 2, "c": np.array([1, 0, 1, 1, 0], bool)}])


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_what_a_condition_picks(axis: int | None) -> None:
    node = helper.make_node("Compress", ["x", "c"], ["y"], **({} if axis is None else {"axis": axis}))
    made = model([node], {"x": (TYPES.FLOAT, ["a", 3]), "c": (TYPES.BOOL, ["m"])}, ["y"])
    compare(made, ({"x": few(4, 3), "c": np.array(c, bool)} for c in ([1, 0, 1], [0, 0], [1])))


def test_as_many_of_the_greatest_as_an_operand_says() -> None:
    nodes = [helper.make_node("TopK", ["x", "k"], ["v", "i"]), helper.make_node("Mul", ["v", "v"], ["w"])]
    made = model(nodes, {"x": (TYPES.FLOAT, ["a", "b"]), "k": (TYPES.INT64, [1])}, ["v", "i", "w"])
    net = compare(made, ({"x": few(3, 6), "k": np.array([k])} for k in (0, 1, 6)))
    with pytest.raises(tl.KernelRunError, match="the extent count was found to be 7, and must be from 0 to 6"):
        net(few(3, 6), np.array([7]))


@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_slices_between_places_that_are_computed(step: int) -> None:
    node = helper.make_node("Slice", ["x", "s", "e", "axis", "step"], ["y"])
    given = {"x": (TYPES.FLOAT, ["a", "b"]), "s": (TYPES.INT64, [1]), "e": (TYPES.INT64, [1])}
    made = model([node], given, ["y"], axis=np.array([-1]), step=np.array([step]))
    far = 2**63 - 1
    places = [(0, 7), (2, 5), (-3, 100), (5, 2), (-1, -100), (100, -100), (6, 0), (far, -far), (-far, far)]
    compare(made, ({"x": few(2, 7), "s": np.array([s]), "e": np.array([e])} for s, e in places))


@pytest.mark.parametrize(("start", "stop", "step"), [(-9, -9, -1), (-2, -(2**63), -1), (-(2**63), -5, -3), (-7, 2, -1)])
def test_slices_backwards_from_in_front_of_an_axis(start: int, stop: int, step: int) -> None:
    nodes = [helper.make_node("Slice", ["x", "s", "e", "axis", "step"], ["y"])]
    nodes += [helper.make_node("Shape", ["y"], ["shape"])]
    made = model(nodes, {"x": (TYPES.FLOAT, ["a", "b"])}, ["y", "shape"],
                 s=np.array([start]), e=np.array([stop]), axis=np.array([1]), step=np.array([step]))  # fmt: skip
    compare(made, ({"x": few(2, length)} for length in (7, 1, 2)))


def test_a_slice_whose_axes_and_steps_a_run_finds() -> None:
    names = ("s", "e", "axes", "steps")
    node = helper.make_node("Slice", ["x", *names], ["y"])
    made = model([node], {"x": (TYPES.FLOAT, ["a", "b"])} | {name: (TYPES.INT64, [2]) for name in names}, ["y"])
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
    made = model(
        [helper.make_node("Pad", ["x", "widths", "fill"], ["y"])],
        {"x": (TYPES.FLOAT, ["a", "b"]), "fill": (TYPES.FLOAT, [])},
        ["y"],
        widths=np.array([1, 0, -1, 2]),
    )
    compare(
        made,
        ({"x": few(*shape), "fill": np.array(fill, np.float32)} for shape, fill in (((2, 3), 7), ((1, 1), -np.inf))),
    )


def test_a_shape_of_which_one_extent_is_computed() -> None:
    nodes = [helper.make_node("Concat", ["k", "four"], ["s"], axis=0), helper.make_node("Reshape", ["x", "s"], ["y"])]
    given = {"x": (TYPES.FLOAT, ["a", 8]), "k": (TYPES.INT64, [1])}
    made = model(nodes, given, ["y"], four=np.array([4]))
    net = compare(made, ({"x": few(3, 8), "k": np.array([k])} for k in (6, -1)))
    with pytest.raises(tl.KernelRunError, match="the extent wanted was found to be 5, and must be 6"):
        net(few(3, 8), np.array([5]))


@pytest.mark.parametrize("how", [{}, {"sorted": 0}, {"axis": 0}, {"axis": -1, "sorted": 0}], ids=str)
def test_unique_elements_and_rows(how: dict[str, int]) -> None:
    node = helper.make_node("Unique", ["x"], ["y", "i", "v", "c"], **how)
    made = model([node], {"x": (TYPES.FLOAT, ["a", "b"])}, ["y", "i", "v", "c"])
    compare(made, ({"x": each} for each in (few(3, 4), few(1, 1), few(9, 2))))


def test_branches_of_different_shapes() -> None:
    def branch(result: str, *nodes: Any) -> Any:
        return helper.make_graph(list(nodes), result, [], [onnx.ValueInfoProto(name=result)])

    then = branch("t", helper.make_node("Slice", ["x", "zero", "two"], ["t"]))
    other = branch(
        "e", helper.make_node("Concat", ["x", "x"], ["e2"], axis=0), helper.make_node("Softmax", ["e2"], ["e"])
    )
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        helper.make_node("Exp", ["y"], ["z"]),
    ]
    given = {"x": (TYPES.FLOAT, ["a", 3]), "c": (TYPES.BOOL, [])}
    made = model(nodes, given, ["y", "z"], zero=np.array([0]), two=np.array([2]))
    net = compare(made, ({"x": few(rows, 3), "c": np.array(c)} for rows in (1, 3, 5) for c in (True, False)))
    assert str(net.plan.total) == str(net.plan.lower_bound) == "24*a"


def detector() -> Any:
    """A small one: features, boxes and scores of all places, the best boxes, and what they hold."""
    rng = np.random.default_rng(0)
    classes, at = 3, 2
    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["f1"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["f1"], ["f2"]),
        helper.make_node("Conv", ["f2", "w2"], ["map"]),
        helper.make_node("Reshape", ["map", "flat"], ["rows"]),
        helper.make_node("Split", ["rows", "parts"], ["raw", "logits"], axis=1),
        helper.make_node("Sigmoid", ["logits"], ["scores"]),
        helper.make_node("Transpose", ["raw"], ["centres"], perm=[0, 2, 1]),
        helper.make_node("Exp", ["centres"], ["boxes"]),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["chosen"]),
        helper.make_node("Slice", ["chosen", "two", "three", "one"], ["column"]),
        helper.make_node("Squeeze", ["column", "one"], ["index"]),
        helper.make_node("Squeeze", ["boxes", "zero"], ["all"]),
        helper.make_node("Gather", ["all", "index"], ["best"], axis=0),
        helper.make_node("ReduceSum", ["best", "one"], ["sums"], keepdims=0),
        helper.make_node("Shape", ["best"], ["found"]),
    ]
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
    given = {"image": (TYPES.FLOAT, [1, 3, "height", "width"])}
    return model(nodes, given, ["chosen", "best", "sums", "found"], **weights)


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
    node = helper.make_node("NonMaxSuppression", ["b", "s", "most", "iou", "least"], ["y"], center_point_box=center)
    given = {"b": (TYPES.FLOAT, ["n", "k", 4]), "s": (TYPES.FLOAT, ["n", "c", "k"])}
    given |= {"most": (TYPES.INT64, [1]), "iou": (TYPES.FLOAT, [1]), "least": (TYPES.FLOAT, [1])}
    made = model([node], given, ["y"])
    rng = np.random.default_rng(center)

    def feed(n: int, c: int, k: int, most: int, iou: float, least: float) -> Feed:
        numbers = {"iou": np.array([iou], np.float32), "least": np.array([least], np.float32)}
        boxes = rng.uniform(0, 1, (n, k, 4)).astype(np.float32)
        scores = rng.integers(0, 9, (n, c, k)).astype(np.float32) / 8  # of which many are equal
        return {"b": boxes, "s": scores, "most": np.array([most]), **numbers}

    cases = [(2, 3, 40, 7, 0.4, 0.2), (1, 1, 30, 100, 0.0, 0.0), (1, 2, 5, 0, 0.5, 0.1), (1, 1, 1, 1, 1.0, 2.0)]
    compare(made, (feed(*case) for case in cases))
