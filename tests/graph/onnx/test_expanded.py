"""Models of a few lines that stand for very many nodes or bytes are refused, and say what passed which limit."""

import pytest

import tirlite as tl
from tirlite.diag import GraphError
from tirlite.graph.onnx import model as reading
from tirlite.graph.onnx.budget import Budget

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
    monkeypatch.setattr(reading, "BUDGET", Budget(nodes=1000))
    ladder = [function(f"f{i}", call(f"f{i + 1}", "x", "h"), call(f"f{i + 1}", "h", "y")) for i in range(32)]
    ladder.append(function("f32", helper.make_node("Identity", ["x"], ["y"])))
    with pytest.raises(GraphError, match="onnx-too-large.* more than 1,000 nodes"):
        tl.from_onnx(model([call("f0", "x", "y")], ladder))
    assert tl.from_onnx(model([call("f26", "x", "y")], ladder))


def test_loops_in_loops_are_refused_by_their_nodes(monkeypatch):
    """Each has 1000 steps, on what is known before a run: all of them are computed."""
    monkeypatch.setattr(reading, "BUDGET", Budget(nodes=3000))

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
    count = helper.make_node("Constant", [], ["count"], value_int=1000)
    zero = helper.make_node("Constant", [], ["zero"], value_floats=[0.0] * 4)
    assert tl.from_onnx(model([count, zero, *repeated(inner)("zero", "y")]))
    with pytest.raises(GraphError, match="onnx-too-large.* more than 3,000 nodes"):
        tl.from_onnx(model([count, zero, *repeated(loop(repeated(inner), 0))("zero", "y")]))


def test_a_function_that_calls_itself_is_refused_by_its_depth():
    with pytest.raises(GraphError, match="onnx-too-large.* more than 48 functions and graphs in one another"):
        tl.from_onnx(model([call("f", "x", "y")], [function("f", call("f", "x", "y"))]))


def test_branches_in_branches_are_refused_by_their_nodes(monkeypatch):
    """Each has two of the next kind."""
    monkeypatch.setattr(reading, "BUDGET", Budget(nodes=500))
    of = [helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, [4])]

    def branch(level):
        below = {f"{side}_branch": branch(level - 1) for side in ("then", "else")} if level else {}
        node = helper.make_node("If", ["c"], ["r"], **below) if level else helper.make_node("Relu", ["x"], ["r"])
        return helper.make_graph([node], f"level{level}", [], of)

    def nested(level):
        asked = [helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), helper.make_node("Cast", ["s"], ["c"], to=9)]
        node = helper.make_node("If", ["c"], ["y"], then_branch=branch(level), else_branch=branch(level))
        return model([*asked, node])

    with pytest.raises(GraphError, match="onnx-too-large.* more than 500 nodes"):
        tl.from_onnx(nested(8))
    assert tl.from_onnx(nested(4))


def made_by(op, shape):
    """A model whose node named `t` makes this many elements out of a few."""
    shape = helper.make_node("Constant", [], ["shape"], value_ints=shape)
    one = helper.make_node("Constant", [], ["one"], value_floats=[1.0])
    given = {"ConstantOfShape": ["shape"], "Expand": ["one", "shape"], "Tile": ["one", "shape"]}[op]
    ends = [helper.make_node("ReduceMax", ["t"], ["m"], keepdims=0), helper.make_node("Add", ["x", "m"], ["y"])]
    return model([shape, one, helper.make_node(op, given, ["t"]), *ends])


@pytest.mark.parametrize("op", ["ConstantOfShape", "Expand", "Tile"])
def test_constants_are_refused_by_their_bytes(op, monkeypatch):
    """What passes the limit is shown; what is very large alone stays an operator that runs."""
    monkeypatch.setattr(reading, "BUDGET", Budget(bytes=1000, folded=2000))
    assert tl.from_onnx(made_by(op, [200]))
    with pytest.raises(GraphError, match=f"onnx-too-large.* more than 1,000 bytes of constants(?s:.*)t = {op}"):
        tl.from_onnx(made_by(op, [300]))
    assert tl.from_onnx(made_by(op, [2**40]))


def test_a_model_may_have_some_times_the_bytes_of_its_tensors(monkeypatch):
    monkeypatch.setattr(reading, "BUDGET", Budget(bytes=1000, times=3))
    weights = helper.make_tensor("w", onnx.TensorProto.FLOAT, [400], [1.0] * 400)

    def negated(count):
        names = ["w", *(f"w{number}" for number in range(count))]
        nodes = [helper.make_node("Neg", [a], [b]) for a, b in zip(names, names[1:], strict=False)]
        nodes += [
            helper.make_node("ReduceMax", [names[-1]], ["m"], keepdims=0),
            helper.make_node("Add", ["x", "m"], ["y"]),
        ]
        made = model(nodes)
        made.graph.initializer.append(weights)
        return made

    assert tl.from_onnx(negated(1))
    with pytest.raises(GraphError, match="more than 4,800 bytes of constants"):
        tl.from_onnx(negated(3))


def test_constants_of_known_trip_counts_are_refused_by_their_bytes(monkeypatch):
    """Each step computes one that the body names."""
    monkeypatch.setattr(reading, "BUDGET", Budget(bytes=4000))
    value = helper.make_tensor_value_info
    ends = [value("i", onnx.TensorProto.INT64, []), value("c", onnx.TensorProto.BOOL, []), value("s", 1, [4])]
    back = [value("d", onnx.TensorProto.BOOL, []), value("r", 1, [4])]
    nodes = [
        helper.make_node("Identity", ["c"], ["d"]),
        helper.make_node("Constant", [], ["shape"], value_ints=[100]),
        helper.make_node("ConstantOfShape", ["shape"], ["t"]),
        helper.make_node("ReduceMax", ["t"], ["m"], keepdims=0),
        helper.make_node("Add", ["s", "m"], ["r"]),
    ]
    loop = helper.make_node("Loop", ["count", "", "x"], ["y"], body=helper.make_graph(nodes, "body", ends, back))
    for count, fits in ((5, True), (20, False)):
        made = model([helper.make_node("Constant", [], ["count"], value_int=count), loop])
        if fits:
            assert tl.from_onnx(made)
        else:
            with pytest.raises(GraphError, match="onnx-too-large.* more than 4,000 bytes of constants"):
                tl.from_onnx(made)


def test_the_clock_ends_an_import_that_has_taken_very_long(monkeypatch):
    monkeypatch.setattr(reading, "BUDGET", Budget(seconds=0.0))
    with pytest.raises(GraphError, match="onnx-too-large.* more than 0.0 seconds of work to be read(?s:.*)y = Relu"):
        tl.from_onnx(model([helper.make_node("Relu", ["x"], ["y"])]))
