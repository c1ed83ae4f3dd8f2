"""Models of a few lines that stand for very many nodes are refused, and say why."""

import pytest

import tirlite as tl
from tirlite.diag import GraphError
from tirlite.graph.onnx import translation

onnx = pytest.importorskip("onnx")
helper = onnx.helper


def model(nodes, functions=()):
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in "xy")
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y]), functions=list(functions), opset_imports=opsets)


def function(name, *nodes):
    return helper.make_function(
        "own", name, ["x"], ["y"], list(nodes), [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    )


def call(name, given, made):
    return helper.make_node(name, [given], [made], domain="own")


def test_functions_that_call_others_twice_are_refused_by_their_nodes(monkeypatch):
    monkeypatch.setattr(translation, "_MOST_NODES", 1000)
    ladder = [function(f"f{i}", call(f"f{i + 1}", "x", "h"), call(f"f{i + 1}", "h", "y")) for i in range(32)]
    ladder.append(function("f32", helper.make_node("Identity", ["x"], ["y"])))
    with pytest.raises(GraphError, match="onnx-too-large.* more than 1000 nodes"):
        tl.from_onnx(model([call("f0", "x", "y")], ladder))
    assert tl.from_onnx(model([call("f26", "x", "y")], ladder))


def test_loops_in_loops_are_refused_by_their_nodes(monkeypatch):
    """Each has 1000 steps, which alone are unrolled."""
    monkeypatch.setattr(translation, "_MOST_NODES", 3000)

    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)

    def loop(inside, place):
        names = [f"i{place}", f"c{place}", f"s{place}", f"d{place}", f"r{place}"]
        kinds = [onnx.TensorProto.INT64, onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT]
        ends = [value(name, kind, shape) for name, kind, shape in zip(names, kinds, ([], [], [4]), strict=False)]
        back = [value(names[3], kinds[1], []), value(names[4], kinds[2], [4])]
        kept = helper.make_node("Identity", [names[1]], [names[3]])
        return helper.make_graph([kept, *inside(names[2], names[4])], f"body{place}", ends, back)

    def repeated(body):
        return lambda given, made: [helper.make_node("Loop", ["count", "", given], [made], body=body)]

    inner = loop(lambda given, made: [helper.make_node("Relu", [given], [made])], 1)
    outer = repeated(loop(repeated(inner), 0))("x", "y")
    count = helper.make_node("Constant", [], ["count"], value_int=1000)
    with pytest.raises(GraphError, match="onnx-too-large.* more than 3000 nodes"):
        tl.from_onnx(model([count, *outer]))


def test_a_function_that_calls_itself_is_refused_by_its_depth():
    with pytest.raises(GraphError, match="onnx-too-large.* more than 48 functions and graphs in one another"):
        tl.from_onnx(model([call("f", "x", "y")], [function("f", call("f", "x", "y"))]))
