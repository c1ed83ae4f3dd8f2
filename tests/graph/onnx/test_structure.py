"""Models that contradict themselves are refused, with what contradicts what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from every import every

import tirlite as tl

onnx = pytest.importorskip("onnx")
helper, FLOAT, INT64 = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
node = helper.make_node


def model(nodes: list[Any], outputs: list[Any] | None = None, *weights: Any, opset: int = 17, **inputs: Any) -> Any:
    """A model of f32 inputs with these extents, `x` of 4 elements among them."""
    shapes = {"x": [4], **inputs}
    given = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in shapes.items()]
    made = [helper.make_tensor_value_info("y", *each) for each in outputs or []] or [onnx.ValueInfoProto(name="y")]
    graph = helper.make_graph(nodes, "net", given, made, [*weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def constant(name: str, *values: int) -> Any:
    return onnx.numpy_helper.from_array(np.array(values, np.int64), name)


def floats(name: str, count: int) -> Any:
    return onnx.numpy_helper.from_array(np.ones(count, np.float32), name)


def twice(made: Any) -> Any:
    """The node with its first attribute once more."""
    made.attribute.append(made.attribute[0])
    return made


BRANCH = helper.make_graph([node("Neg", ["x"], ["t"])], "branch", [], [onnx.ValueInfoProto(name="t")])
RELU = node("Relu", ["x"], ["y"])
SHAPE = node("Shape", ["x"], ["s"])


@every(
    "given, told",
    [
        (model([node("Neg", ["x"], ["y"]), RELU]), "node 1, Neg, which computes `y`, and node 2, Relu"),
        (model([node("Relu", ["x"], ["x"]), RELU]), "an input called `x`, and node 1"),
        (
            model([node("Neg", ["x"], ["a"], name="n"), node("Abs", ["a"], ["y"], name="n")]),
            "node 1, Neg, called `n`, and node 2, Abs, called `n`",
        ),
        (model([RELU, node("Abs", ["x"], ["w"])], None, floats("w", 1)), "a constant called `w`, and node 2"),
        (model([RELU], None, floats("w", 1), floats("w", 2)), "a constant called `w`, and a constant"),
        (model([RELU], opset=999), "operators of version 999, and those up to"),
        (model([RELU], [(FLOAT, [5])]), r"`y` is f32\[4\], and is declared as f32\[5\]"),
        (model([RELU], [(INT64, [4])]), r"declared as i64\[4\]"),
        (model([RELU], None, floats("w", 3), w=[2]), r"constant `w` is f32\[3\], and declared as f32\[2\]"),
        (model([node("Slice", ["x", "a", "b", "a", "a"], ["y"])], None, constant("a", 0), constant("b", 4)), "step"),
        (model([SHAPE, node("Div", ["s", "z"], ["y"])], None, constant("z", 0)), r"y = Div\(s, z\)`: it divides"),
        (model([SHAPE, node("Mod", ["s", "z"], ["y"])], None, constant("z", 0), x=["n"]), "divides integers by 0"),
        (model([node("Relu", ["x", "x"], ["y"])]), "node 1, Relu: it has 2 inputs, and may have 1"),
        (model([node("Relu", ["x"], ["y", "z"])]), "node 1, Relu: it has 2 results, and may have 1"),
        (model([node("Relu", ["x"], ["y"], slope=0.5)]), "node 1, Relu: there is no attribute `slope` in this version"),
        (model([node("Concat", ["x", "x"], ["y"])]), "node 1, Concat: it has no attribute `axis`, and needs one"),
        (
            model([node("Neg", ["w"], ["y"])]),
            r"(?s)nothing computes `w`.*no input, constant or node here has this name",
        ),
        (
            model([node("Neg", ["w"], ["y"]), node("Abs", ["x"], ["w"])]),
            r"(?s)nothing computes `w`.*y = Neg\(w\).*used here.*w = Abs\(x\).*computed here.*list nodes after",
        ),
        (
            model([node("Add", ["x", "y"], ["v"]), node("Abs", ["v"], ["w"]), node("Neg", ["w"], ["y"])]),
            r"(?s)v = Add\(x, y\).*used here.*y = Neg\(w\).*computed here.*must not depend on themselves",
        ),
        (
            model([node("GRU", ["x", "w", "r"], ["y"], hidden_size=5)], x=[7, 2, 4], w=[1, 15, 4], r=[1, 15, 6]),
            r"y = GRU\(x, w, r\)`: its weights of the state are f32\[1, 15, 6\], and must be f32\[1, 15, 5\]",
        ),
        (
            model([node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3])], x=[1, 2, 9, 9], w=[4, 2, 5, 5]),
            r"y = Conv\(x, w\)`: its kernel_shape is \[3, 3\], and its weights are f32\[4, 2, 5, 5\]",
        ),
        (model([node("Range", ["x", "x", "z"], ["y"])], None, floats("z", 0), x=[]), "step is 0"),
        (model([node("Reshape", ["x", "a"], ["y"])], None, constant("a", 0, 0, -1), x=["n", 0]), "-1 stands beside"),
        (model([node("Einsum", ["x"], ["y"], equation="1->1")]), "equation '1->1' has something else than letters"),
        (model([node("Einsum", ["x"], ["y"], equation="i,i->")]), "terms for 2 operands, and there are 1"),
        (model([node("Einsum", ["x"], ["y"], equation="ij->i")]), r"`ij` of equation 'ij->i' does not fit f32\[4\]"),
        (model([node("Einsum", ["x"], ["y"], equation="i->ii")]), r"node 1: `y = Einsum\(x\)`: equation .* twice"),
        (model([node("Einsum", ["x"], ["y"], equation="i->j")]), "one that no term has"),
        (model([node("Einsum", ["x"], ["y"], equation="ii->i")], x=[2, 3]), "`i` of equation 'ii->i' is 2 and 3"),
        (
            model([node("Einsum", ["x", "w"], ["y"], equation="ij,j->i")], None, floats("w", 4), x=[2, 3]),
            "`j` of equation 'ij,j->i' is 3 in one operand, and 4 in another",
        ),
        (
            model([node("Gather", ["x", "i"], ["y"])], None, constant("i", 3, -5)),
            "index -5 in input `i` lies outside of",
        ),
        (model([node("GatherElements", ["x", "i"], ["y"])], None, constant("i", 4)), "index 4 in input `i`"),
        (model([node("Split", ["x"], ["y", "z"], num_outputs=3)], opset=18), "it makes 3 parts, and has 2 results"),
        (
            model([node("Resize", ["x", "", "w", "a"], ["y"])], None, floats("w", 1), constant("a", 4)),
            "scales and sizes",
        ),
        (model([node("Constant", [], ["y"], value_int=1, value_float=2.0)]), "value_float and value_int, and may have"),
        (model([node("Clip", ["x", "a"], ["y"])], None, constant("a", 0)), "input 1 has elements i64, and input 0 f32"),
        (model([node("Range", ["a", "x", "a"], ["y"])], None, constant("a", 1), x=[]), "elements f32, and input 0 i64"),
        (model([twice(node("Softmax", ["x"], ["y"], axis=0))]), "it has attribute `axis` twice"),
        (model([node("If", ["c"], ["y", "z"], then_branch=BRANCH, else_branch=BRANCH)], c=[1]), "gives 1 results, and"),
        (
            model([node("ScatterElements", ["x", "i", "x"], ["y"])], None, constant("i", 9, 0, 1, 2)),
            "axis 0, of 4 elem",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(given: Any, told: str) -> None:
    with pytest.raises(tl.GraphError, match=told):
        tl.from_onnx(given)


def test_extents_that_are_divided_by_are_demanded_to_be_there() -> None:
    nodes = [SHAPE, node("Shape", ["w"], ["t"]), node("Div", ["s", "t"], ["q"]), node("Expand", ["o", "q"], ["y"])]
    f = tl.from_onnx(model(nodes, None, floats("o", 1), x=["n"], w=["k"]))
    assert [str(each) for each in f.demands] == ["1 <= k"]
    net = tl.graph.compile(f)
    assert net(np.ones(7, np.float32), np.ones(2, np.float32)).shape == (3,)
    for call in (net, net.interpret, lambda *arrays: tl.graph.evaluate(f, *arrays)):
        with pytest.raises(tl.TirliteError, match=r"(?s)`q = Div` demands that 1 <= k.*q = Div\(s, t\)"):
            call(np.ones(7, np.float32), np.ones(0, np.float32))


def test_what_agrees_is_read() -> None:
    given = model([RELU], [(FLOAT, ["m"])], floats("w", 3), w=["k"], x=["n"])
    assert str(tl.from_onnx(given).result) == "f32[n]"
    # Exporters that know too little of a shape declare another number of axes.
    assert str(tl.from_onnx(model([RELU], [(FLOAT, [1, 4])])).result) == "f32[4]"
    # What a caller tells of the dims, the model cannot have known.
    assert str(tl.from_onnx(model([RELU], [(FLOAT, [4])]), shapes={"x": [9]}).result) == "f32[9]"


def test_an_index_that_does_not_exist_is_told_with_its_node_and_input() -> None:
    nodes = [node("Cast", ["r"], ["rows"], to=INT64), node("Gather", ["x", "rows"], ["picked"], name="look")]
    f = tl.from_onnx(model([*nodes, node("Relu", ["picked"], ["y"])], r=["k"]))
    x, rows = np.arange(4, dtype=np.float32), np.array([3, 9], np.float32)
    net = tl.graph.compile(f)
    for call in (net, net.interpret, lambda *arrays: tl.graph.evaluate(f, *arrays)):
        with pytest.raises(
            tl.KernelRunError, match=r"(?s)input `rows`: index 9 .*picked = Gather\(x, rows\)  # look"
        ) as caught:
            call(x, rows)
        assert "kernels/operators" not in str(caught.value)


def test_a_condition_that_is_too_long_is_told_by_its_name() -> None:
    nodes = [
        node("Cast", ["c"], ["wanted"], to=onnx.TensorProto.BOOL),
        node("Compress", ["x", "wanted"], ["y"], axis=0),
    ]
    f = tl.from_onnx(model(nodes, c=["k"]))
    x, c = np.arange(4, dtype=np.float32), np.ones(5, np.float32)
    for call in (tl.graph.compile(f), lambda *arrays: tl.graph.evaluate(f, *arrays)):
        with pytest.raises(tl.KernelRunError, match="input `wanted`: index 4 "):
            call(x, c)


def test_the_greatest_of_no_elements_is_none_of_them() -> None:
    f = tl.from_onnx(model([node("Hardmax", ["x"], ["y"])], x=["n", "k"]))
    assert not f.demands
    x = np.array([[-np.inf, -np.inf], [1, 2], [np.nan, 3]], np.float32)
    for call in (tl.graph.compile(f), lambda *arrays: tl.graph.evaluate(f, *arrays)):
        np.testing.assert_array_equal(call(x), [[1, 0], [0, 1], [1, 0]])
        assert call(np.ones((2, 0), np.float32)).shape == (2, 0)
