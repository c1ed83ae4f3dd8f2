"""Shapes that models compute from data, beside onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from graph.onnx import beside, test_loops as loops
from graph.onnx.beside import model

import tirlite as tl

pytestmark = pytest.mark.usefixtures("without_effort")

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
helper, FLOAT, INT64 = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
node = helper.make_node
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def arrays(feed: beside.Feed) -> beside.Feed:
    return {name: np.asarray(value) for name, value in feed.items()}


def compare(made: Any, feeds: Sequence[beside.Feed], refused: Sequence[beside.Feed] = ()) -> Any:
    """What the model gives, as onnxruntime gives it; what that refuses is refused."""
    net = beside.compare(made, map(arrays, feeds), atol=0)
    for feed in map(arrays, refused):
        for run in (lambda feed=feed: net(**feed), lambda feed=feed: tl.graph.evaluate(net.function, *feed.values())):
            with pytest.raises(tl.KernelRunError):
                run()
    return net


def typed(made: Any, *kinds: int) -> Any:
    """The model with the element types of its outputs, which onnxruntime asks for."""
    for value, kind in zip(made.graph.output, kinds, strict=True):
        value.type.tensor_type.elem_type = kind
    return made


def test_range_between_numbers_of_data() -> None:
    ends = {"a": (INT64, []), "b": (INT64, []), "c": (INT64, [])}
    nodes = [node("Range", ["a", "b", "c"], ["y"]), node("Mul", ["y", "y"], ["z"])]
    given = [(0, 5, 1), (3, 3, 1), (5, 0, -2), (7, 0, 3)]
    net = compare(
        typed(model(nodes, ends, ["y", "z"]), INT64, INT64),
        [dict(zip("abc", np.array(each, np.int64), strict=True)) for each in given],
        [{"a": np.int64(0), "b": np.int64(3), "c": np.int64(0)}],
    )
    assert len(net.parts) == 2
    floats = {"a": (FLOAT, []), "b": (FLOAT, []), "c": (FLOAT, [])}
    made = typed(model([node("Range", ["a", "b", "c"], ["y"])], floats, ["y"]), FLOAT)
    compare(made, [dict(zip("abc", np.array(each, np.float32), strict=True)) for each in [(0, 7, 0.3), (5, 0, -2.5)]])


def test_shapes_that_are_operands() -> None:
    matrix, shape = {"x": (FLOAT, ["n", 4])}, {"s": (INT64, [3])}
    expanded = [node("Expand", ["x", "s"], ["y"]), node("Exp", ["y"], ["z"])]
    made = typed(model(expanded, {"x": (FLOAT, ["n", 1]), **shape}, ["z"]), FLOAT)
    feeds = [{"x": X[:, :1], "s": ints(2, 3, 4)}, {"x": X[:, :1], "s": ints(0, 1, 2)}]
    compare(made, feeds, [{"x": X[:, :1], "s": ints(2, 2, 4)}, {"x": X[:, :1], "s": ints(2, 3, -1)}])
    tiled = [node("Tile", ["x", "s"], ["y"]), node("Exp", ["y"], ["z"])]
    made = typed(model(tiled, {**matrix, "s": (INT64, [2])}, ["z"]), FLOAT)
    compare(made, [{"x": X, "s": ints(2, 3)}, {"x": X, "s": ints(0, 1)}], [{"x": X, "s": ints(-1, 1)}])
    filled = [node("ConstantOfShape", ["s"], ["y"]), node("ReduceSum", ["y"], ["z"])]
    compare(typed(model(filled, shape, ["y", "z"]), FLOAT, FLOAT), [{"s": ints(3, 0, 2)}, {"s": ints(1, 2, 3)}])
    shaped = [node("Exp", ["x"], ["e"]), node("Reshape", ["e", "s"], ["y"]), node("Neg", ["y"], ["z"])]
    right = [(2, 3, 2), (0, -1, 2), (12, 1, -1), (0, 0, 1)]
    wrong = [(5, 2, 1), (-1, 5, 1), (-1, -1, 1), (-3, -4, 1)]
    feeds, bad = ([{"x": X, "s": ints(*each)} for each in part] for part in (right, wrong))
    compare(typed(model(shaped, {**matrix, **shape}, ["z"]), FLOAT), feeds, bad)
    split = [node("Split", ["x", "s"], ["a", "b", "c"], axis=0), node("Neg", ["c"], ["d"])]
    feeds, bad = (
        [{"x": X, "s": ints(*each)} for each in part]
        for part in ([(1, 2, 0), (0, 0, 3)], [(2, 2, 2), (2, 2, -1), (4, -1, 0)])
    )
    compare(typed(model(split, {**matrix, **shape}, ["a", "b", "d"]), FLOAT, FLOAT, FLOAT), feeds, bad)


def test_a_shape_of_which_a_part_is_known() -> None:
    """The way exporters write `x.expand(-1, k)`: what stands in the shape for -1 is known from the operand."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["rows"]),
        node("Unsqueeze", ["rows", "zero"], ["r"]),
        node("Unsqueeze", ["k", "zero"], ["c"]),
        node("Concat", ["r", "c"], ["wanted"], axis=0),
        node("Equal", ["wanted", "less"], ["is_less"]),
        node("Where", ["is_less", "ones", "wanted"], ["shape"]),
        node("Expand", ["x", "shape"], ["y"]),
        node("Add", ["y", "x"], ["z"]),
    ]
    weights = {"zero": np.int64(0), "less": ints(-1, -1), "ones": ints(1, 1)}
    made = typed(model(nodes, {"x": (FLOAT, ["n", 1]), "k": (INT64, [])}, ["z"], **weights), FLOAT)
    made.graph.node[2].input[1] = made.graph.node[3].input[1] = "axis"
    made.graph.initializer.append(helper.make_tensor("axis", INT64, [1], [0]))
    assert str(tl.from_onnx(made).result).startswith("f32[n, wanted")
    compare(made, [{"x": X[:, :1], "k": np.int64(k)} for k in (5, 1, 0)])


def test_slices_from_a_place_that_only_another_tensor_tells() -> None:
    """Rows of a table of positions behind those of the past, forwards and backwards, of some columns."""
    numbers = {"table": np.arange(80, dtype=np.float32).reshape(20, 4), "axes": ints(0, 1), "by": ints(-1, 2)}
    numbers |= {"one": ints(1), "four": ints(4), "zero": ints(0)}
    nodes = [node("Shape", ["past"], ["p"]), node("Shape", ["x"], ["s"]), node("Add", ["p", "s"], ["e"])]
    nodes += [node("Slice", ["table", "p", "e"], ["rows"]), node("Unsqueeze", ["x", "one"], ["column"])]
    nodes += [node("Add", ["rows", "column"], ["y"])]
    nodes += [node("Concat", ["e", "one"], ["from"], axis=0), node("Concat", ["p", "four"], ["to"], axis=0)]
    nodes += [node("Slice", ["table", "from", "to", "axes", "by"], ["z0"]), node("Neg", ["z0"], ["z"])]
    made = model(nodes, {"x": (FLOAT, ["s"]), "past": (FLOAT, ["t"])}, ["y", "z"], **numbers)
    feeds = [{"x": X[0, :s], "past": X.reshape(-1)[:p]} for s, p in ((1, 0), (3, 5), (2, 12))]
    compare(typed(made, FLOAT, FLOAT), feeds)


def test_loops_whose_steps_nothing_bounds() -> None:
    scaled = "h2 = Mul(h, scale) row = Neg(h2)"
    ends = f"{scaled} most = ReduceMax<keepdims = 0>(h2) c2 = Less(most, limit)"
    state, after = loops.STATE, f"{loops.AFTER}, float[3] row"

    def looped(nodes: str, given: str, count: str) -> Any:
        step = f"body ({state}) => ({after}) <float scale = {{1.5}}, float limit = {{50.0}}> {{ {nodes} }}"
        nodes = f"h, o = Loop<body = {step}>({count}, t, h0) sum = ReduceSum(o)"
        return typed(loops.model(nodes, f"{given}bool t, float[3] h0", "h, o, sum"), FLOAT, FLOAT, FLOAT)

    h0 = np.array([1, 2, 3], np.float32)
    for nodes in (f"c2 = Identity(c) {scaled}", ends):
        made = looped(nodes, "int64 m, ", "m")
        compare(made, [{"m": np.int64(m), "t": np.array(True), "h0": h0} for m in (5, 1, 20)])
    compare(looped(ends, "", ""), [{"t": np.array(True), "h0": np.ones(3, np.float32)}])


def test_extents_of_data_that_an_operator_asks_to_be_equal_are_checked_in_the_run() -> None:
    nodes = [node("NonZero", ["x"], ["p"]), node("NonZero", ["y"], ["q"]), node("Add", ["p", "q"], ["r"])]
    made = typed(
        model([*nodes, node("Concat", ["r", "p"], ["s"], axis=0)], {"x": (FLOAT, ["n"]), "y": (FLOAT, ["m"])}, ["s"]),
        INT64,
    )
    x, y = np.array([1, 0, 2], np.float32), np.array([0, 1, 0, 5], np.float32)
    compare(made, [{"x": x, "y": y}, {"x": 0 * x, "y": 0 * y}], [{"x": x + 1, "y": y}])
    ranged = [node("Range", ["zero", "k", "one"], ["p"]), node("Add", ["p", "x"], ["s"])]
    weights = {"zero": np.float32(0), "one": np.float32(1)}
    made = typed(model(ranged, {"x": (FLOAT, ["n"]), "k": (FLOAT, [])}, ["s"], **weights), FLOAT)
    compare(made, [{"x": x, "k": np.float32(3)}], [{"x": x, "k": np.float32(2)}])


def test_a_number_that_is_read_twice_is_one_extent() -> None:
    """Rows and columns of a table are made of the same two numbers, each read several times and in several ways."""
    nodes = [
        node("ConstantOfShape", ["size"], ["zeros"]),
        node("Split", ["size"], ["a", "b"], axis=0, num_outputs=2),
        node("Squeeze", ["a", "first"], ["rows"]),
        node("Gather", ["size", "one"], ["columns"], axis=0),
        node("Range", ["zero", "rows", "one"], ["i"]),
        node("Range", ["zero", "columns", "one"], ["j"]),
        node("Unsqueeze", ["i", "second"], ["i2"]),
        node("Add", ["i2", "j"], ["sums"]),
        node(
            "Cast",
            [
                "sums",
            ],
            ["floats"],
            to=FLOAT,
        ),
        node("Add", ["zeros", "floats"], ["y"]),
        node("Reshape", ["y", "flat"], ["z"]),
        node("Concat", ["b", "a"], ["other"], axis=0),
        node("Reshape", ["z", "other"], ["w"]),
    ]
    weights = {"first": ints(0), "second": ints(1), "zero": np.int64(0), "one": np.int64(1), "flat": ints(-1)}
    made = typed(model(nodes, {"size": (INT64, [2])}, ["w"], **weights), FLOAT)
    f = tl.from_onnx(made)
    assert str(f).count("# from 0 on") == 2
    assert "assume" not in str(f)
    net = compare(made, [{"size": ints(*each)} for each in [(2, 3), (1, 1), (4, 0)]], [{"size": ints(-1, 2)}])
    assert len(net.parts) == 2


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("spatial", [2, 3])
def test_grids_of_a_size_that_is_data(spatial: int, aligned: int) -> None:
    grid = node("AffineGrid", ["theta", "size"], ["y"], align_corners=aligned)
    given = {"theta": (FLOAT, ["n", spatial, spatial + 1]), "size": (INT64, [2 + spatial])}
    made = typed(model([grid], given, ["y"]), FLOAT)
    made.opset_import[0].version = 20
    rng = np.random.default_rng(0)
    feeds = [(1, (5, 4, 3)), (3, (2, 7, 2))]
    compare(
        made,
        [
            {
                "theta": rng.standard_normal((n, spatial, spatial + 1)).astype(np.float32),
                "size": ints(n, 2, *size[:spatial]),
            }
            for n, size in feeds
        ],
        [{"theta": np.zeros((2, spatial, spatial + 1), np.float32), "size": ints(3, 2, *(4,) * spatial)}],
    )


def test_extents_are_checked_where_they_are_used() -> None:
    """A number that is negative is no extent of anything as long as the other branch is taken."""

    def branch(result: str, *nodes: Any) -> Any:
        return helper.make_graph(list(nodes), result, [], [helper.make_tensor_value_info(result, FLOAT, ["k"])])

    then = branch("t", node("Reshape", ["m", "first"], ["m1"]), node("ConstantOfShape", ["m1"], ["t"]))
    other = branch("e", node("Cast", ["m"], ["f"], to=FLOAT), node("Reshape", ["f", "first"], ["e"]))
    nodes = [node("Greater", ["m", "zero"], ["c"]), node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    made = typed(model(nodes, {"m": (INT64, [])}, ["y"], zero=np.int64(0), first=ints(1)), FLOAT)
    compare(made, [{"m": np.int64(3)}, {"m": np.int64(-3)}])


def test_classes_diagonals_and_borders_of_numbers_of_data() -> None:
    given = {"x": (FLOAT, ["n", "m"]), "i": (INT64, ["n"]), "k": (INT64, []), "pads": (INT64, [4])}
    nodes = [
        node("OneHot", ["i", "k", "values"], ["hot"]),
        node("Trilu", ["x", "k"], ["upper"]),
        node("Pad", ["x", "pads", "fill"], ["padded"]),
    ]
    outputs = ["hot", "upper", "padded"]
    weights = {"values": np.array([-1, 1], np.float32), "fill": np.float32(7)}
    made = typed(model(nodes, given, outputs, **weights), FLOAT, FLOAT, FLOAT)
    feeds = [(2, ints(0, 1, 2, 0)), (5, ints(0, 0, 0, 0)), (1, ints(3, 0, 0, 2))]
    compare(made, [{"x": X, "i": ints(0, 2, 1), "k": np.int64(k), "pads": pads} for k, pads in feeds])


def test_extents_of_one_go_with_all_others_of_their_letter() -> None:
    nodes = [
        node("Einsum", ["x", "y"], ["rows"], equation="ij,jk->ik"),
        node("Einsum", ["y", "x", "y"], ["sums"], equation="...k,i...,mk->i..."),
    ]
    made = typed(model(nodes, {"x": (FLOAT, ["n", 1]), "y": (FLOAT, ["m", "k"])}, ["rows", "sums"]), FLOAT, FLOAT)
    rng = np.random.default_rng(0)
    shapes = [(2, 3, 4), (1, 1, 1), (3, 1, 2)]
    compare(made, [{"x": rng.random((n, 1), np.float32), "y": rng.random((m, k), np.float32)} for n, m, k in shapes])


def test_each_letter_has_one_extent() -> None:
    """That two products of extents are equal was all that was demanded: 2 x 3 went with 3 x 2."""
    nodes = [node("Einsum", ["x", "y"], ["z"], equation="bij,bjk->ik"), node("Einsum", ["x"], ["d"], equation="bii->b")]
    f = tl.from_onnx(model(nodes, {"x": (FLOAT, ["b", "i", "j"]), "y": (FLOAT, ["c", "m", "k"])}, ["z", "d"]))
    assert [str(each) for each in f.demands] == ["b == c", "j == m", "i == j"]
    x, y = np.ones((2, 3, 3), np.float32), np.ones((2, 3, 4), np.float32)
    net = tl.graph.compile(f)
    np.testing.assert_allclose(net(x, y)[0], np.einsum("bij,bjk->ik", x, y))
    np.testing.assert_allclose(net(x, y)[1], np.einsum("bii->b", x))
    with pytest.raises(tl.KernelAssertionError, match=r"z = .*demands that b == c \(2 and 3\)"):
        net(x, y.reshape(3, 2, 4))


def test_diagonals_of_dims() -> None:
    nodes = [
        node("MatMul", ["x", "y"], ["square"]),
        node("Einsum", ["square"], ["trace"], equation="bii->b"),
        node("Einsum", ["square", "square"], ["diagonals"], equation="bii,bij->ij"),
    ]
    given = {"x": (FLOAT, ["b", "n", "m"]), "y": (FLOAT, ["b", "m", "n"])}
    made = typed(model(nodes, given, ["trace", "diagonals"]), FLOAT, FLOAT)
    rng = np.random.default_rng(0)
    shapes = [(2, 3, 4), (1, 1, 1)]
    compare(
        made,
        [{"x": rng.random((b, n, m), np.float32), "y": rng.random((b, m, n), np.float32)} for b, n, m in shapes],
    )


def test_pads_that_are_computed_cut_where_they_are_below_zero() -> None:
    given = {"x": (FLOAT, ["n", "m"]), "pads": (INT64, [4])}
    made = typed(model([node("Pad", ["x", "pads"], ["y"])], given, ["y"]), FLOAT)
    widths = [(0, 1, 2, 0), (0, -1, 0, 0), (-1, -2, 1, 1), (1, 0, -2, -1)]
    compare(made, [{"x": X, "pads": ints(*each)} for each in widths])


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_pads_that_are_computed_repeat_what_is_inside(mode: str) -> None:
    given = {"x": (FLOAT, ["n", "m"]), "pads": (INT64, [4])}
    made = typed(model([node("Pad", ["x", "pads"], ["y"], mode=mode)], given, ["y"]), FLOAT)
    widths = [(0, 1, 2, 0), (0, 0, 0, 0), (2, 3, 1, 2), (0, 1, -1, 0)]
    compare(made, [{"x": X, "pads": ints(*each)} for each in widths])


def test_a_mean_of_integers_along_dims() -> None:
    made = typed(
        model([node("ReduceMean", ["x", "axes"], ["y"])], {"x": (INT64, ["n", "m"])}, ["y"], axes=ints(0)), INT64
    )
    compare(made, [{"x": ints(*range(-7, 5)).reshape(shape)} for shape in ((3, 4), (12, 1))])


def test_a_picture_is_put_in_the_middle_of_a_larger_or_smaller_one() -> None:
    nodes = [
        node("Shape", ["x"], ["here"]),
        node("Shape", ["y"], ["there"]),
        node("Sub", ["there", "here"], ["more"]),
        node("Div", ["more", "two"], ["before"]),
        node("Sub", ["more", "before"], ["after"]),
        node("Concat", ["before", "after"], ["pads"], axis=0),
        node("Pad", ["x", "pads"], ["moved"]),
        node("Add", ["moved", "y"], ["z"]),
    ]
    given = {"x": (FLOAT, ["n", "m"]), "y": (FLOAT, ["a", "b"])}
    made = typed(model(nodes, given, ["z"], two=ints(2, 2)), FLOAT)
    compare(made, [{"x": X, "y": np.ones(each, np.float32)} for each in [(3, 4), (6, 9), (6, 2), (1, 9)]])
