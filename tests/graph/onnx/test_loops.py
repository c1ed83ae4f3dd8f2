"""Loops whose steps a run counts, or as many as a dim says, beside onnxruntime."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from graph.onnx import beside
from graph.onnx.beside import Feed, Values, infos, model

import tirlite as tl

onnx = pytest.importorskip("onnx")
helper, TYPES = onnx.helper, onnx.TensorProto
FLOAT, INT64, BOOL = TYPES.FLOAT, TYPES.INT64, TYPES.BOOL
compare = partial(beside.compare, rtol=1e-4, atol=1e-5)


def body(nodes: list[Any], given: Values, made: Values) -> Any:
    return helper.make_graph(nodes, "body", infos(given), infos(made))


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


STATE = {"i": (INT64, []), "c": (BOOL, []), "h": (FLOAT, [3])}
AFTER = {"c2": (BOOL, []), "h2": (FLOAT, [3])}
ROWS = [
    helper.make_node("Shape", ["x"], ["s"]),
    helper.make_node("Gather", ["s", "zero"], ["m"], axis=0),
]


def test_as_many_steps_as_a_dim_says() -> None:
    """Rows are added up; each step gives what they come to, squared."""
    step = body(
        [
            helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
            helper.make_node("Add", ["h", "row"], ["h2"]),
            helper.make_node("Mul", ["h2", "h2"], ["o"]),
            helper.make_node("Identity", ["c"], ["c2"]),
        ],
        STATE,
        {**AFTER, "o": (FLOAT, [3])},
    )
    nodes = [*ROWS, helper.make_node("Loop", ["m", "", "h0"], ["h", "o"], body=step)]
    made = model(nodes, {"x": (FLOAT, ["n", 3]), "h0": (FLOAT, [3])}, ["h", "o"], zero=np.array(0))
    compare(made, ({"x": normal(rows, 3), "h0": normal(3)} for rows in (5, 1, 33)))


MANY = (FLOAT, ["k", 3])
KEEPS = helper.make_node("Identity", ["c"], ["c2"])
ADDED = [helper.make_node("Gather", ["x", "i"], ["row"], axis=0), helper.make_node("Add", ["h", "row"], ["h2"])]
SUMMED = [helper.make_node("ReduceSum", ["h2"], ["r"], keepdims=0), helper.make_node("Less", ["r", "limit"], ["c2"])]
PRODUCT = [helper.make_node("MatMul", ["h", "w"], ["p"]), helper.make_node("Tanh", ["p"], ["h2"])]


def branches() -> list[Any]:
    """Every second step adds a row, the others take a product of what an input outside holds."""
    then = helper.make_graph(
        ADDED[:1] + [helper.make_node("Add", ["h", "row"], ["t"])], "then", [], infos({"t": (FLOAT, [3])})
    )
    other = helper.make_graph([helper.make_node("Mul", ["h", "y"], ["e"])], "other", [], infos({"e": (FLOAT, [3])}))
    nodes = [helper.make_node("Mod", ["i", "two"], ["odd"]), helper.make_node("Equal", ["odd", "zero"], ["even"])]
    return [*nodes, helper.make_node("If", ["even"], ["h2"], then_branch=then, else_branch=other), KEEPS]


@pytest.mark.parametrize("count", [0, 1, 2, 5, 12])
@pytest.mark.parametrize("kind", ["product", "rows", "until", "branches", "number"])
def test_as_many_steps_as_a_constant_says(kind: str, count: int) -> None:
    """Products, sums of rows with results, ones that end early by data or by their number, and ones with branches."""
    ends = [helper.make_node("Less", ["i", "three"], ["c2"])]
    nodes, made = {
        "product": ([*PRODUCT, KEEPS], AFTER),
        "rows": ([*ADDED, helper.make_node("Mul", ["h2", "y"], ["o"]), KEEPS], {**AFTER, "o": (FLOAT, [3])}),
        "until": ([*ADDED, *SUMMED], {**AFTER, "row": (FLOAT, [3])}),
        "branches": (branches(), AFTER),
        "number": ([*PRODUCT, *ends], {**AFTER, "p": (FLOAT, [3])}),
    }[kind]
    outputs = ["h", "o"][: len(made) - 1]
    loop = helper.make_node("Loop", ["m", "", "h0"], outputs, body=body(nodes, STATE, made))
    weights = {"m": np.array(count), "two": np.array(2), "zero": np.array(0), "three": np.array(3)}
    weights |= {"w": normal(3, 3), "limit": np.float32(2)}
    given: Values = {"h0": (FLOAT, [3]), "x": (FLOAT, [12, 3]), "y": (FLOAT, [3])}
    f = tl.from_onnx(model([loop], given, outputs, **weights))
    assert str(f).count("loop def") == (count > 1 or (count == 0 and len(outputs) > 1))
    compare(
        model([loop], given, outputs, **weights),
        [{"h0": normal(3), "x": np.abs(normal(12, 3)), "y": normal(3)}],
        compiled=count in (0, 5),
    )


@pytest.mark.parametrize("count", [4, None])
def test_what_all_steps_hand_on_is_not_carried(count: int | None) -> None:
    """A matrix that each step takes a product with, and hands on by way of an operator that changes nothing."""
    nodes = [
        helper.make_node("MatMul", ["h", "w"], ["p"]),
        helper.make_node("Add", ["p", "v"], ["h2"]),
        helper.make_node("Identity", ["w"], ["w2"]),
        helper.make_node("Identity", ["h"], ["v2"]),
        KEEPS,
    ]
    row, square = (FLOAT, [3]), (FLOAT, [3, 3])
    given = {"i": (INT64, []), "c": (BOOL, []), "w": square, "h": row, "v": row}
    step = body(nodes, given, {"c2": (BOOL, []), "w2": square, "h2": row, "v2": row})
    loop = helper.make_node("Loop", ["m", "", "w0", "h0", "h0"], ["w", "h", "v"], body=step)
    inputs: Values = {"w0": square, "h0": row, **({} if count else {"m": (INT64, [])})}
    made = model([loop], inputs, ["w", "h", "v"], **({"m": np.array(count)} if count else {}))
    assert "carried1: f32[3], w0: f32[3, 3]) -> (i64[()], f32[3], f32[3])" in str(tl.from_onnx(made))
    feeds = [{"w0": normal(3, 3), "h0": normal(3), "m": np.array(steps)} for steps in (4, 0)]
    compare(made, [{name: feed[name] for name in inputs} for feed in feeds])


def test_what_steps_of_a_known_number_tell_is_known_behind_the_loop() -> None:
    """How many elements there are, as a product of extents, and a list that grows by a row with each step."""
    nodes = [
        helper.make_node("Gather", ["extents", "i"], ["extent"], axis=0),
        helper.make_node("Mul", ["k", "extent"], ["k2"]),
        helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
        helper.make_node("Unsqueeze", ["row", "first"], ["rows"]),
        helper.make_node("Concat", ["h", "rows"], ["h2"], axis=0),
        helper.make_node("MatMul", ["g", "w"], ["g2"]),
        KEEPS,
    ]
    number, square = (INT64, []), (FLOAT, [3, 3])
    given = {"i": number, "c": (BOOL, []), "k": number, "h": MANY, "g": square}
    step = body(nodes, given, {"c2": (BOOL, []), "k2": number, "h2": MANY, "g2": square})
    around = [
        helper.make_node("Shape", ["x"], ["extents"]),
        helper.make_node("Loop", ["m", "", "one", "h0", "w"], ["k", "h", "g"], body=step),
        helper.make_node("Unsqueeze", ["k", "first"], ["all"]),
        helper.make_node("Reshape", ["x", "all"], ["y"]),
    ]
    weights = {"m": np.array(2), "one": np.array(1), "first": np.array([0])}
    made = model(around, {"x": (FLOAT, ["n", 3]), "h0": MANY, "w": square}, ["y", "h", "g"], **weights)
    assert str(tl.from_onnx(made).result) == "(f32[3*n], f32[k + 2, 3], f32[3, 3])"
    compare(made, [{"x": normal(4, 3), "h0": normal(1, 3), "w": normal(3, 3)}])


def test_steps_until_a_condition_fails() -> None:
    """Of so many steps as there are rows, those are joined that ran."""
    step = body(
        [
            helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
            helper.make_node("Add", ["h", "row"], ["h2"]),
            helper.make_node("ReduceSum", ["h2"], ["r"], keepdims=0),
            helper.make_node("Less", ["r", "limit"], ["c2"]),
        ],
        STATE,
        {**AFTER, "row": (FLOAT, [3])},
    )
    nodes = [*ROWS, helper.make_node("Loop", ["m", "", "h0"], ["h", "o"], body=step)]
    nodes.append(helper.make_node("Shape", ["o"], ["count"]))
    given = {"x": (FLOAT, ["n", 3]), "h0": (FLOAT, [3])}
    made = model(nodes, given, ["h", "o", "count"], zero=np.array(0), limit=np.float32(2))
    compare(made, ({"x": np.abs(normal(rows, 3)), "h0": np.zeros(3, np.float32)} for rows in (1, 9)))


@pytest.mark.parametrize("limit", ["m", ""])
def test_as_many_steps_as_data_say(limit: str) -> None:
    nodes = [
        helper.make_node("Mul", ["h", "two"], ["h2"]),
        helper.make_node("ReduceSum", ["h2"], ["r"], keepdims=0),
        helper.make_node("Less", ["r", "most"], ["c2"]),
    ]
    step = body(nodes, STATE, AFTER)
    given: Values = {**({"m": (INT64, [])} if limit else {}), "go": (BOOL, []), "h0": (FLOAT, [3])}
    loop = helper.make_node("Loop", [limit, "go", "h0"], ["h"], body=step)
    made = model([loop], given, ["h"], two=np.float32(2), most=np.float32(100))
    cases = [(0, True), (1, True), (4, True), (50, True), (3, False)] if limit else [(50, True), (50, False)]
    feeds = [{"m": np.array(m), "go": np.array(go), "h0": np.abs(normal(3))} for m, go in cases]
    compare(made, ({name: feed[name] for name in given} for feed in feeds))


@pytest.mark.parametrize(
    "how",
    [{}, {"scan_input_directions": [1, 0], "scan_output_directions": [0, 1]}, {"scan_output_axes": [1, 0]}],
    ids=["forwards", "backwards", "axes"],
)
def test_scans_along_a_symbolic_axis(how: dict[str, list[int]]) -> None:
    nodes = [
        helper.make_node("Add", ["h", "a"], ["h2"]),
        helper.make_node("Mul", ["h2", "b"], ["o"]),
        helper.make_node("Identity", ["h2"], ["p"]),
    ]
    row = (FLOAT, [3])
    step = body(nodes, {"h": row, "a": row, "b": row}, {"h2": row, "o": row, "p": row})
    scan = helper.make_node("Scan", ["h0", "x", "y"], ["h", "o", "p"], body=step, num_scan_inputs=2, **how)
    made = model([scan], {"x": (FLOAT, ["n", 3]), "y": (FLOAT, ["n", 3]), "h0": row}, ["h", "o", "p"])
    feeds = [{"x": normal(rows, 3), "y": normal(rows, 3) + 1, "h0": normal(3)} for rows in (5, 1)]
    compare(made, feeds, compiled=bool(how))


def test_extents_that_a_run_finds_in_and_around_a_loop() -> None:
    """What is carried has as many elements as are not zero; each step takes from it how many of its own are not."""
    vector = (FLOAT, ["k"])
    nodes = [
        helper.make_node("NonZero", ["h"], ["q"]),
        helper.make_node("Shape", ["q"], ["shape"]),
        helper.make_node("Cast", ["shape"], ["float"], to=FLOAT),
        helper.make_node("ReduceSum", ["float"], ["sum"], keepdims=0),
        helper.make_node("Sub", ["h", "sum"], ["less"]),
        helper.make_node("Relu", ["less"], ["h2"]),
        helper.make_node("Identity", ["c"], ["c2"]),
    ]
    step = body(nodes, {**STATE, "h": vector}, {**AFTER, "h2": vector})
    around = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Cast", ["places"], ["floats"], to=FLOAT),
        helper.make_node("Squeeze", ["floats", "first"], ["h0"]),
        helper.make_node("Loop", ["m", "", "h0"], ["h"], body=step),
    ]
    made = model(around, {"m": (INT64, []), "x": (FLOAT, ["n"])}, ["h"], first=np.array([0]))
    some = np.array([0, 1, 0, 2, 3, 0, 0, 1, 1], np.float32)
    compare(made, [{"m": np.array(2), "x": some}, {"m": np.array(3), "x": np.zeros(3, np.float32)}])


@pytest.mark.parametrize(
    ("op", "gates", "holes", "how"),
    [
        ("LSTM", 4, True, {"direction": "bidirectional"}),
        ("LSTM", 4, False, {"direction": "reverse", "clip": 0.5}),
        ("GRU", 3, False, {"direction": "bidirectional", "linear_before_reset": 1}),
        ("RNN", 1, False, {"direction": "forward"}),
    ],
    ids=["lstm-peepholes", "lstm-clip", "gru", "rnn"],
)
def test_layers_with_lengths_along_a_symbolic_axis(op: str, gates: int, holes: bool, how: dict[str, Any]) -> None:
    ways, hidden, inputs = (2 if how["direction"] == "bidirectional" else 1), 4, 3
    shapes = {"W": (ways, gates * hidden, inputs), "R": (ways, gates * hidden, hidden), "B": (ways, 2 * gates * hidden)}
    shapes |= {"P": (ways, 3 * hidden)} if holes else {}
    names = ["x", "W", "R", "B", "lengths", "h0", *(["", "P"] if holes else [])]
    node = helper.make_node(op, names, ["y", "h"], hidden_size=hidden, **how)
    given = {"x": (FLOAT, ["time", "batch", inputs]), "lengths": (TYPES.INT32, ["batch"])}
    given |= {"h0": (FLOAT, [ways, "batch", hidden])}
    made = model([node], given, ["y", "h"], **{name: normal(*shape) for name, shape in shapes.items()})
    cases = [((5, 3), [5, 0, 4]), ((1, 1), [1]), ((20, 2), [7, 20])]
    feeds = [
        {"x": normal(*shape, inputs), "lengths": np.array(each, np.int32), "h0": normal(ways, shape[1], hidden)}
        for shape, each in cases
    ]
    compare(made, feeds, compiled=op == "LSTM" and not holes)


GROWS = [
    helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
    helper.make_node("Unsqueeze", ["row", "first"], ["rows"]),
    helper.make_node("Concat", ["h", "rows"], ["h2"], axis=0),
    helper.make_node("ReduceMean", ["h2"], ["mean"], keepdims=0),
    helper.make_node("Less", ["mean", "most"], ["c2"]),
]


@pytest.mark.parametrize(("op", "gates", "states", "holes"), [("LSTM", 4, 2, 3), ("GRU", 3, 1, 0), ("RNN", 1, 1, 0)])
def test_layers_whose_weights_are_inputs_have_one_width(op: str, gates: int, states: int, holes: int) -> None:
    """Each extent has a name of its own, as exporters write that know none of them."""
    shapes = [(4, 2, 5), (1, gates * 3, 5), (1, gates * 3, 3), (1, 2 * gates * 3), (2,)]
    shapes += [(1, 2, 3)] * states + ([(1, holes * 3)] if holes else [])
    names = ["x", "w", "r", "b", "n", *["h", "c"][:states], *["p"][: holes // 3]]
    given = {
        name: (
            TYPES.INT32 if name == "n" else TYPES.FLOAT,
            [1 if not axis and of[0] == 1 else None for axis in range(len(of))],
        )
        for name, of in zip(names, shapes, strict=True)
    }
    made = model([helper.make_node(op, names, ["y", "yh"], hidden_size=3)], given, ["y", "yh"])
    feed = {name: normal(*of) for name, of in zip(names, shapes, strict=True)} | {"n": np.array([4, 2], np.int32)}
    compare(made, [feed], compiled=op == "RNN")
    wide = feed | {"h": normal(1, 2, 4)}
    with pytest.raises(tl.KernelAssertionError, match="demands that"):
        tl.graph.compile(tl.from_onnx(made))(**wide)


def test_steps_may_change_extents_of_what_they_carry() -> None:
    """A list that grows by a row each step, until its mean is large enough: as a decoder's cache does."""
    step = body(GROWS, {**STATE, "h": MANY}, {**AFTER, "h2": MANY, "mean": (FLOAT, [])})
    nodes = [*ROWS, helper.make_node("Loop", ["m", "", "h0"], ["h", "means"], body=step)]
    nodes += [helper.make_node("Relu", ["h"], ["y"]), helper.make_node("Shape", ["y"], ["count"])]
    weights = {"zero": np.array(0), "first": np.array([0]), "most": np.float32(0.5)}
    made = model(nodes, {"x": (FLOAT, ["n", 3]), "h0": MANY}, ["y", "means", "count"], **weights)
    assert str(tl.from_onnx(made)).count("limit: i64") == 1
    compare(made, ({"x": np.abs(normal(n, 3)), "h0": normal(k, 3)} for n, k in ((5, 1), (1, 2), (9, 0))))


def test_a_loop_that_changes_extents_stands_in_a_branch_and_in_another_loop() -> None:
    """Each step of the outer loop appends as many rows as its number says, or doubles what there is."""
    inner = body(GROWS[:3] + [helper.make_node("Identity", ["c"], ["c2"])], {**STATE, "h": MANY}, {**AFTER, "h2": MANY})
    some = helper.make_graph(
        [helper.make_node("Loop", ["j", "", "g"], ["u"], body=inner)], "some", [], infos({"u": MANY})
    )
    twice = helper.make_graph([helper.make_node("Concat", ["g", "g"], ["v"], axis=0)], "twice", [], infos({"v": MANY}))
    nodes = [
        helper.make_node("Equal", ["j", "two"], ["is_two"]),
        helper.make_node("Not", ["is_two"], ["other"]),
        helper.make_node("If", ["other"], ["g2"], then_branch=some, else_branch=twice),
        helper.make_node("Identity", ["d"], ["d2"]),
    ]
    outer = body(nodes, {"j": (INT64, []), "d": (BOOL, []), "g": MANY}, {"d2": (BOOL, []), "g2": MANY})
    given = {"x": (FLOAT, ["n", 3]), "m": (INT64, []), "h0": MANY}
    made = model(
        [helper.make_node("Loop", ["m", "", "h0"], ["y"], body=outer)],
        given,
        ["y"],
        two=np.array(2),
        first=np.array([0]),
    )
    compare(made, [{"x": normal(5, 3), "m": np.array(m), "h0": normal(1, 3)} for m in (0, 2, 4)])


def test_results_of_steps_may_have_extents_that_the_steps_find() -> None:
    """Each step gives the places that are not zero in its row: as many in each row, or they cannot be joined."""
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
        helper.make_node("NonZero", ["row"], ["places"]),
        helper.make_node("Add", ["h", "row"], ["h2"]),
        helper.make_node("Identity", ["c"], ["c2"]),
    ]
    step = body(nodes, STATE, {**AFTER, "places": (INT64, [1, "k"])})
    nodes = [*ROWS, helper.make_node("Loop", ["m", "", "h0"], ["h", "all"], body=step)]
    made = model(nodes, {"x": (FLOAT, ["n", 3]), "h0": (FLOAT, [3])}, ["h", "all"], zero=np.array(0))
    alike = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]], np.float32)
    compare(made, [{"x": alike, "h0": normal(3)}, {"x": np.zeros((2, 3), np.float32), "h0": normal(3)}])
    net = tl.graph.compile(tl.from_onnx(made))
    with pytest.raises(
        tl.KernelRunError,
        match=r"unlike-results.*step 2 of `h` gives a result of shape \(1, 3\), those before gave \(1, 2\)",
    ):
        net(np.array([[0, 1, 2], [3, 4, 5]], np.float32), normal(3))


def test_what_changes_its_number_of_axes_from_step_to_step_is_refused_with_its_node() -> None:
    nodes = [helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Unsqueeze", ["h", "first"], ["h2"])]
    grows = helper.make_node("Loop", ["m", "", "h0"], ["h"], body=body(nodes, STATE, AFTER))
    with pytest.raises(tl.GraphError, match=r"node 1.*a step of it makes f32\[1, 3\] of f32\[3\]"):
        tl.from_onnx(model([grows], {"m": (INT64, []), "h0": (FLOAT, [3])}, ["h"], first=np.array([0])))


@pytest.mark.parametrize("op", ["Loop", "Scan"])
@pytest.mark.parametrize("demand", ["windows", "weights", "names"])
def test_what_a_step_demands_stops_no_call_without_steps(op: str, demand: str) -> None:
    """Windows of 5 that must fit, weights of 3 elements, and two inputs whose extents have different names."""
    nodes = {
        "windows": [
            helper.make_node("AveragePool", ["h"], ["p"], kernel_shape=[5]),
            helper.make_node("ReduceMax", ["p"], ["w"], keepdims=1),
        ],
        "weights": [helper.make_node("Neg", ["three"], ["w"])],
        "names": [helper.make_node("Neg", ["v"], ["w"])],
    }[demand]
    nodes.append(helper.make_node("Add", ["h", "w"], ["h2"]))
    state, row = (FLOAT, [1, 1, "k"]), (FLOAT, [])
    given: Values = {"h0": (FLOAT, [1, 1, "n"]), "v": (FLOAT, [1, 1, "j"])}
    if op == "Loop":
        step = body(
            [*nodes, helper.make_node("Identity", ["c"], ["c2"])], {**STATE, "h": state}, {**AFTER, "h2": state}
        )
        node = helper.make_node("Loop", ["m", "", "h0"], ["y"], body=step)
        given["m"] = (INT64, [])
    else:
        step = body([*nodes, helper.make_node("Neg", ["a"], ["b"])], {"h": state, "a": row}, {"h2": state, "b": row})
        node = helper.make_node("Scan", ["h0", "m"], ["y", "z"], body=step, num_scan_inputs=1)
        given["m"] = (FLOAT, ["t"])
    three = np.arange(3, dtype=np.float32).reshape(1, 1, 3)
    made = model([node], given, ["y"], three=three)
    fits, other = {"windows": (6, 2), "weights": (3, 5), "names": (3, 2)}[demand]

    def feed(extent: int, steps: int) -> Feed:
        count = np.array(steps) if op == "Loop" else np.zeros(steps, np.float32)
        return {"h0": normal(1, 1, extent), "v": normal(1, 1, 3), "m": count}

    def added(h: Any) -> Any:
        means = np.lib.stride_tricks.sliding_window_view(h, 5, axis=2).mean(-1) if demand == "windows" else h
        return {"windows": means.max(), "weights": -three, "names": -normal(1, 1, 3)}[demand]

    f = tl.from_onnx(made)
    assert not f.demands
    names, net = [param.name for param in f.params], tl.graph.compile(f)
    for call in (net, lambda *arrays: tl.graph.evaluate(f, *arrays)):
        for extent, steps in ((fits, 2), (fits, 0), (other, 0)):
            arrays = feed(extent, steps)
            wanted = arrays["h0"]
            for _ in range(steps):
                wanted = wanted + added(wanted)
            np.testing.assert_allclose(call(*(arrays[name] for name in names)), wanted, rtol=1e-5)
        with pytest.raises(tl.KernelRunError):
            call(*(feed(other, 1)[name] for name in names))
