"""Loops whose steps a run counts, or as many as a dim says, beside onnxruntime."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from graph.onnx import beside, written
from graph.onnx.beside import Feed

import tirlite as tl

onnx = pytest.importorskip("onnx")
helper, TYPES = onnx.helper, onnx.TensorProto
compare = partial(beside.compare, rtol=1e-4, atol=1e-5)


def body(nodes: str, given: str, made: str) -> str:
    """A graph as an attribute, in the form that ONNX gives it as text."""
    return f"body ({given}) => ({made}) {{ {nodes} }}"


def model(nodes: str, given: str, made: str, **weights: Any) -> Any:
    return written.model(f"({given}) => ({made}) {{ {nodes} }}", **weights)


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


STATE, AFTER = "int64 i, bool c, float[3] h", "bool c2, float[3] h2"
LISTS, LONGER = "int64 i, bool c, float[k, 3] h", "bool c2, float[k, 3] h2"
ROWS = "s = Shape(x) m = Gather<axis = 0>(s, zero)"
KEEPS, ADDED = "c2 = Identity(c)", "row = Gather<axis = 0>(x, i) h2 = Add(h, row)"
SUMMED, PRODUCT = "r = ReduceSum<keepdims = 0>(h2) c2 = Less(r, limit)", "p = MatMul(h, w) h2 = Tanh(p)"


def test_as_many_steps_as_a_dim_says() -> None:
    """Rows are added up; each step gives what they come to, squared."""
    step = body(f"{ADDED} o = Mul(h2, h2) {KEEPS}", STATE, f"{AFTER}, float[3] o")
    given = "float[n, 3] x, float[3] h0"
    made = model(f"{ROWS} h, o = Loop<body = {step}>(m, , h0)", given, "h, o", zero=np.array(0))
    compare(made, ({"x": normal(rows, 3), "h0": normal(3)} for rows in (5, 1, 33)))


# Every second step adds a row, the others take a product of what an input outside holds.
BRANCHES = """
    odd = Mod(i, two) even = Equal(odd, zero)
    h2 = If<
        then_branch = then () => (float[3] t) { row = Gather<axis = 0>(x, i) t = Add(h, row) },
        else_branch = other () => (float[3] e) { e = Mul(h, y) }
    >(even)
"""


@pytest.mark.parametrize("count", [0, 1, 2, 5, 12])
@pytest.mark.parametrize("kind", ["product", "rows", "until", "branches", "number"])
def test_as_many_steps_as_a_constant_says(kind: str, count: int) -> None:
    """Products, sums of rows with results, ones that end early by data or by their number, and ones with branches."""
    nodes, more = {
        "product": (f"{PRODUCT} {KEEPS}", ""),
        "rows": (f"{ADDED} o = Mul(h2, y) {KEEPS}", ", float[3] o"),
        "until": (f"{ADDED} {SUMMED}", ", float[3] row"),
        "branches": (f"{BRANCHES} {KEEPS}", ""),
        "number": (f"{PRODUCT} c2 = Less(i, three)", ", float[3] p"),
    }[kind]
    outputs = "h, o" if more else "h"
    loop = f"{outputs} = Loop<body = {body(nodes, STATE, AFTER + more)}>(m, , h0)"
    weights = {"m": np.array(count), "two": np.array(2), "zero": np.array(0), "three": np.array(3)}
    weights |= {"w": normal(3, 3), "limit": np.float32(2)}
    made = model(loop, "float[3] h0, float[12, 3] x, float[3] y", outputs, **weights)
    assert str(tl.from_onnx(made)).count("loop def") == (count > 1 or (count == 0 and bool(more)))
    feeds = [{"h0": normal(3), "x": np.abs(normal(12, 3)), "y": normal(3)}]
    compare(made, feeds, compiled=count in (0, 5))


@pytest.mark.parametrize("count", [4, None])
def test_what_all_steps_hand_on_is_not_carried(count: int | None) -> None:
    """A matrix that each step takes a product with, and hands on by way of an operator that changes nothing."""
    nodes = f"p = MatMul(h, w) h2 = Add(p, v) w2 = Identity(w) v2 = Identity(h) {KEEPS}"
    given = "int64 i, bool c, float[3, 3] w, float[3] h, float[3] v"
    step = body(nodes, given, "bool c2, float[3, 3] w2, float[3] h2, float[3] v2")
    inputs = {"w0": "float[3, 3]", "h0": "float[3]", **({} if count else {"m": "int64"})}
    typed = ", ".join(f"{kind} {name}" for name, kind in inputs.items())
    weights = {"m": np.array(count)} if count else {}
    made = model(f"w, h, v = Loop<body = {step}>(m, , w0, h0, h0)", typed, "w, h, v", **weights)
    assert "carried1: f32[3], w0: f32[3, 3]) -> (i64[()], f32[3], f32[3])" in str(tl.from_onnx(made))
    feeds = [{"w0": normal(3, 3), "h0": normal(3), "m": np.array(steps)} for steps in (4, 0)]
    compare(made, [{name: feed[name] for name in inputs} for feed in feeds])


def test_what_steps_of_a_known_number_tell_is_known_behind_the_loop() -> None:
    """How many elements there are, as a product of extents, and a list that grows by a row with each step."""
    nodes = f"""
        extent = Gather<axis = 0>(extents, i)
        k2 = Mul(k, extent)
        row = Gather<axis = 0>(x, i)
        rows = Unsqueeze(row, first)
        h2 = Concat<axis = 0>(h, rows)
        g2 = MatMul(g, w)
        {KEEPS}
    """
    given = "int64 i, bool c, int64 k, float[k, 3] h, float[3, 3] g"
    step = body(nodes, given, "bool c2, int64 k2, float[k, 3] h2, float[3, 3] g2")
    around = f"""
        extents = Shape(x)
        k, h, g = Loop<body = {step}>(m, , one, h0, w)
        all = Unsqueeze(k, first)
        y = Reshape(x, all)
    """
    weights = {"m": np.array(2), "one": np.array(1), "first": np.array([0])}
    made = model(around, "float[n, 3] x, float[k, 3] h0, float[3, 3] w", "y, h, g", **weights)
    assert str(tl.from_onnx(made).result) == "(f32[3*n], f32[k + 2, 3], f32[3, 3])"
    compare(made, [{"x": normal(4, 3), "h0": normal(1, 3), "w": normal(3, 3)}])


def test_steps_until_a_condition_fails() -> None:
    """Of so many steps as there are rows, those are joined that ran."""
    step = body(f"{ADDED} {SUMMED}", STATE, f"{AFTER}, float[3] row")
    nodes = f"{ROWS} h, o = Loop<body = {step}>(m, , h0) count = Shape(o)"
    given = "float[n, 3] x, float[3] h0"
    made = model(nodes, given, "h, o, count", zero=np.array(0), limit=np.float32(2))
    compare(made, ({"x": np.abs(normal(rows, 3)), "h0": np.zeros(3, np.float32)} for rows in (1, 9)))


@pytest.mark.parametrize("limit", ["m", ""])
def test_as_many_steps_as_data_say(limit: str) -> None:
    step = body("h2 = Mul(h, two) r = ReduceSum<keepdims = 0>(h2) c2 = Less(r, most)", STATE, AFTER)
    given = {**({"m": "int64"} if limit else {}), "go": "bool", "h0": "float[3]"}
    typed = ", ".join(f"{kind} {name}" for name, kind in given.items())
    loop = f"h = Loop<body = {step}>({limit}, go, h0)"
    made = model(loop, typed, "h", two=np.float32(2), most=np.float32(100))
    cases = [(0, True), (1, True), (4, True), (50, True), (3, False)] if limit else [(50, True), (50, False)]
    feeds = [{"m": np.array(m), "go": np.array(go), "h0": np.abs(normal(3))} for m, go in cases]
    compare(made, ({name: feed[name] for name in given} for feed in feeds))


@pytest.mark.parametrize(
    "how",
    ["", ", scan_input_directions = [1, 0], scan_output_directions = [0, 1]", ", scan_output_axes = [1, 0]"],
    ids=["forwards", "backwards", "axes"],
)
def test_scans_along_a_symbolic_axis(how: str) -> None:
    nodes = "h2 = Add(h, a) o = Mul(h2, b) p = Identity(h2)"
    step = body(nodes, "float[3] h, float[3] a, float[3] b", "float[3] h2, float[3] o, float[3] p")
    scan = f"h, o, p = Scan<body = {step}, num_scan_inputs = 2{how}>(h0, x, y)"
    made = model(scan, "float[n, 3] x, float[n, 3] y, float[3] h0", "h, o, p")
    feeds = [{"x": normal(rows, 3), "y": normal(rows, 3) + 1, "h0": normal(3)} for rows in (5, 1)]
    compare(made, feeds, compiled=bool(how))


def test_extents_that_a_run_finds_in_and_around_a_loop() -> None:
    """What is carried has as many elements as are not zero; each step takes from it how many of its own are not."""
    nodes = f"""
        q = NonZero(h)
        shape = Shape(q)
        float = Cast<to = 1>(shape)
        sum = ReduceSum<keepdims = 0>(float)
        less = Sub(h, sum)
        h2 = Relu(less)
        {KEEPS}
    """
    step = body(nodes, "int64 i, bool c, float[k] h", "bool c2, float[k] h2")
    around = f"""
        places = NonZero(x)
        floats = Cast<to = 1>(places)
        h0 = Squeeze(floats, first)
        h = Loop<body = {step}>(m, , h0)
    """
    made = model(around, "int64 m, float[n] x", "h", first=np.array([0]))
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
    given = {"x": (TYPES.FLOAT, ["time", "batch", inputs]), "lengths": (TYPES.INT32, ["batch"])}
    given |= {"h0": (TYPES.FLOAT, [ways, "batch", hidden])}
    made = beside.model([node], given, ["y", "h"], **{name: normal(*shape) for name, shape in shapes.items()})
    cases = [((5, 3), [5, 0, 4]), ((1, 1), [1]), ((20, 2), [7, 20])]
    feeds = [
        {"x": normal(*shape, inputs), "lengths": np.array(each, np.int32), "h0": normal(ways, shape[1], hidden)}
        for shape, each in cases
    ]
    compare(made, feeds, compiled=op == "LSTM" and not holes)


JOINED = "row = Gather<axis = 0>(x, i) rows = Unsqueeze(row, first) h2 = Concat<axis = 0>(h, rows)"
GROWS = f"{JOINED} mean = ReduceMean<keepdims = 0>(h2) c2 = Less(mean, most)"


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
    made = beside.model([helper.make_node(op, names, ["y", "yh"], hidden_size=3)], given, ["y", "yh"])
    feed = {name: normal(*of) for name, of in zip(names, shapes, strict=True)} | {"n": np.array([4, 2], np.int32)}
    compare(made, [feed], compiled=op == "RNN")
    wide = feed | {"h": normal(1, 2, 4)}
    with pytest.raises(tl.KernelAssertionError, match="demands that"):
        tl.graph.compile(tl.from_onnx(made))(**wide)


def test_steps_may_change_extents_of_what_they_carry() -> None:
    """A list that grows by a row each step, until its mean is large enough: as a decoder's cache does."""
    step = body(GROWS, LISTS, f"{LONGER}, float mean")
    nodes = f"{ROWS} h, means = Loop<body = {step}>(m, , h0) y = Relu(h) count = Shape(y)"
    weights = {"zero": np.array(0), "first": np.array([0]), "most": np.float32(0.5)}
    made = model(nodes, "float[n, 3] x, float[k, 3] h0", "y, means, count", **weights)
    assert str(tl.from_onnx(made)).count("limit: i64") == 1
    compare(made, ({"x": np.abs(normal(n, 3)), "h0": normal(k, 3)} for n, k in ((5, 1), (1, 2), (9, 0))))


def test_a_loop_that_changes_extents_stands_in_a_branch_and_in_another_loop() -> None:
    """Each step of the outer loop appends as many rows as its number says, or doubles what there is."""
    inner = body(f"{JOINED} {KEEPS}", LISTS, LONGER)
    nodes = f"""
        is_two = Equal(j, two)
        other = Not(is_two)
        g2 = If<
            then_branch = some () => (float[k, 3] u) {{ u = Loop<body = {inner}>(j, , g) }},
            else_branch = twice () => (float[k, 3] v) {{ v = Concat<axis = 0>(g, g) }}
        >(other)
        d2 = Identity(d)
    """
    outer = body(nodes, "int64 j, bool d, float[k, 3] g", "bool d2, float[k, 3] g2")
    given = "float[n, 3] x, int64 m, float[k, 3] h0"
    made = model(f"y = Loop<body = {outer}>(m, , h0)", given, "y", two=np.array(2), first=np.array([0]))
    compare(made, [{"x": normal(5, 3), "m": np.array(m), "h0": normal(1, 3)} for m in (0, 2, 4)])


def test_results_of_steps_may_have_extents_that_the_steps_find() -> None:
    """Each step gives the places that are not zero in its row: as many in each row, or they cannot be joined."""
    nodes = f"row = Gather<axis = 0>(x, i) places = NonZero(row) h2 = Add(h, row) {KEEPS}"
    step = body(nodes, STATE, f"{AFTER}, int64[1, k] places")
    nodes = f"{ROWS} h, all = Loop<body = {step}>(m, , h0)"
    made = model(nodes, "float[n, 3] x, float[3] h0", "h, all", zero=np.array(0))
    alike = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]], np.float32)
    compare(made, [{"x": alike, "h0": normal(3)}, {"x": np.zeros((2, 3), np.float32), "h0": normal(3)}])
    net = tl.graph.compile(tl.from_onnx(made))
    with pytest.raises(
        tl.KernelRunError,
        match=r"unlike-results.*step 2 of `h` gives a result of shape \(1, 3\), those before gave \(1, 2\)",
    ):
        net(np.array([[0, 1, 2], [3, 4, 5]], np.float32), normal(3))


def test_what_changes_its_number_of_axes_from_step_to_step_is_refused_with_its_node() -> None:
    grows = f"h = Loop<body = {body(f'{KEEPS} h2 = Unsqueeze(h, first)', STATE, AFTER)}>(m, , h0)"
    with pytest.raises(tl.GraphError, match=r"node 1.*a step of it makes f32\[1, 3\] of f32\[3\]"):
        tl.from_onnx(model(grows, "int64 m, float[3] h0", "h", first=np.array([0])))


@pytest.mark.parametrize("op", ["Loop", "Scan"])
@pytest.mark.parametrize("demand", ["windows", "weights", "names"])
def test_what_a_step_demands_stops_no_call_without_steps(op: str, demand: str) -> None:
    """Windows of 5 that must fit, weights of 3 elements, and two inputs whose extents have different names."""
    nodes = {
        "windows": "p = AveragePool<kernel_shape = [5]>(h) w = ReduceMax<keepdims = 1>(p)",
        "weights": "w = Neg(three)",
        "names": "w = Neg(v)",
    }[demand] + " h2 = Add(h, w)"
    if op == "Loop":
        step = body(f"{nodes} {KEEPS}", "int64 i, bool c, float[1, 1, k] h", "bool c2, float[1, 1, k] h2")
        node, count = f"y = Loop<body = {step}>(m, , h0)", "int64 m"
    else:
        step = body(f"{nodes} b = Neg(a)", "float[1, 1, k] h, float a", "float[1, 1, k] h2, float b")
        node, count = f"y, z = Scan<body = {step}, num_scan_inputs = 1>(h0, m)", "float[t] m"
    three = np.arange(3, dtype=np.float32).reshape(1, 1, 3)
    made = model(node, f"float[1, 1, n] h0, float[1, 1, j] v, {count}", "y", three=three)
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
