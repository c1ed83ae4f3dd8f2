"""Models become functions: shapes are folded, dims keep their names, and what is wrong is told where it stands."""

from __future__ import annotations

import contextlib
import random
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tirlite as tl

# What models mean is compared: how hard LLVM tries is of no matter.
pytestmark = pytest.mark.usefixtures("without_effort")

onnx = pytest.importorskip("onnx")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT


def model(nodes: list[Any], inputs: dict[str, list[Any]], outputs: list[str], *weights: Any, opset: int = 18) -> Any:
    """A model of f32 inputs with these extents; texts are names of dims."""
    given = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()]
    made = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "net", given, made, [*weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def integers(name: str, values: list[int]) -> Any:
    return onnx.numpy_helper.from_array(np.array(values, np.int64), name)


def steps(function: tl.graph.Function) -> list[str]:
    """The operators that are left."""
    calls = [step for step in tl.graph.program(function).steps() if isinstance(step, tl.graph.Call)]
    return [call.op.name for call in calls]


def test_named_extents_become_dims() -> None:
    node = helper.make_node("Add", ["x", "y"], ["z"])
    f = tl.from_onnx(model([node], {"x": ["batch", 4], "y": ["batch", 1]}, ["z"]))
    assert [str(param.type) for param in f.params] == ["f32[batch, 4]", "f32[batch, 1]"]
    assert str(f.result) == "f32[batch, 4]"
    assert f.outputs == ("z",)


def test_arithmetic_of_shapes_is_folded() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "axes"], ["row"]),
        helper.make_node("Mul", ["row", "two"], ["twice"]),
        helper.make_node("Concat", ["twice", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]),
    ]
    weights = [onnx.numpy_helper.from_array(np.int64(0), "zero"), integers("axes", [0])]
    weights += [integers("two", [2]), integers("rest", [-1])]
    f = tl.from_onnx(model(nodes, {"x": ["n", 6]}, ["y"], *weights))
    assert str(f.result) == "f32[2*n, 3]"
    assert steps(f) == ["reshape"]


def test_squares_and_cubes_are_products() -> None:
    node = helper.make_node("Pow", ["x", "e"], ["y"])
    for exponent, wanted in ((2, ["multiply"]), (3, ["multiply", "multiply"]), (2.5, ["power"])):
        weight = onnx.numpy_helper.from_array(np.float32(exponent), "e")
        assert steps(tl.from_onnx(model([node], {"x": ["n", 6]}, ["y"], weight))) == wanted


def test_sizes_that_are_data_are_computed_from_the_dims() -> None:
    nodes = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Cast", ["shape"], ["y"], to=FLOAT)]
    f = tl.from_onnx(model(nodes, {"x": ["n", 6]}, ["y"]))
    np.testing.assert_array_equal(tl.graph.evaluate(f, np.zeros((5, 6), np.float32)), [5.0, 6.0])


def test_the_branch_that_is_known_is_taken() -> None:
    branches = {}
    for name, op in (("then_branch", "Relu"), ("else_branch", "Neg")):
        body = helper.make_graph([helper.make_node(op, ["x"], [op])], name, [], [onnx.ValueInfoProto(name=op)])
        branches[name] = body
    known = onnx.numpy_helper.from_array(np.array(False), "c")
    f = tl.from_onnx(model([helper.make_node("If", ["c"], ["y"], **branches)], {"x": ["n"]}, ["y"], known))
    assert steps(f) == ["negative"]


def test_outputs_may_be_picked_by_name() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Exp", ["a"], ["y"])]
    f = tl.from_onnx(model(nodes, {"x": [3]}, ["y"]), outputs=["a"])
    assert steps(f) == ["relu"]


@pytest.mark.parametrize("given", [{"shapes": {"z": [3]}}, {"constants": {"z": 1}}, {"dims": {"z": 3}}], ids=str)
def test_names_that_the_model_does_not_have_are_refused(given: dict[str, Any]) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    with pytest.raises(tl.GraphError, match="onnx-bad-model"):
        tl.from_onnx(model([node], {"x": ["n"]}, ["y"]), **given)


def test_dims_may_be_bound() -> None:
    f = tl.from_onnx(model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["n", "m"]}, ["y"]), dims={"n": 3})
    assert str(f.result) == "f32[3, m]"


@pytest.mark.parametrize(
    ("extent", "code"), [(2.5, "bad-graph-extent"), ("4", "bad-graph-extent"), (-2, "negative-graph-extent")]
)
def test_what_no_dim_can_be_is_refused(extent: Any, code: str) -> None:
    relu = model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["n", "m"]}, ["y"])
    with pytest.raises(tl.GraphError) as caught:
        tl.from_onnx(relu, dims={"n": extent})
    assert caught.value.code == code
    assert str(Path(tl.__file__).parent) not in str(caught.value)


def test_all_that_is_missing_is_named_at_once() -> None:
    nodes = [
        helper.make_node("ImageDecoder", ["x"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("StringNormalizer", ["x"], ["c"]),
        helper.make_node("Add", ["b", "c"], ["y"]),
    ]
    with pytest.raises(tl.GraphError) as caught:
        tl.from_onnx(model(nodes, {"x": [3]}, ["y"]))
    text = str(caught.value)
    assert "2 parts" in text
    assert "ImageDecoder" in text
    assert "StringNormalizer" in text


def test_what_is_missing_behind_what_is_missing_is_named_too() -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["x"], ["s"], name="first"),
        helper.make_node("SequenceAt", ["s", "i"], ["y"], name="second"),
    ]
    given = model(nodes, {"x": [3]}, ["y"], integers("i", [0]))
    given.graph.input.append(helper.make_tensor_value_info("t", onnx.TensorProto.STRING, [1]))
    with pytest.raises(tl.GraphError) as caught:
        tl.from_onnx(given)
    text = str(caught.value)
    assert "input `t`: it is a tensor of string" in text
    assert "node 1: `s = SequenceConstruct(x)  # first`: there are no sequences of tensors here" in text
    assert "node 2: `y = SequenceAt(s, i)  # second`: there are no sequences of tensors here" in text


def test_the_last_window_of_a_norm_may_lie_beyond_the_end() -> None:
    node = helper.make_node("LpPool", ["x"], ["y"], kernel_shape=[2], strides=[2], ceil_mode=1)
    f = tl.from_onnx(model([node], {"x": [1, 1, 3]}, ["y"]))
    np.testing.assert_allclose(tl.graph.evaluate(f, np.ones((1, 1, 3), np.float32)), [[[np.sqrt(2), 1]]], rtol=1e-6)


def test_indices_may_take_less_of_other_axes_than_there_is() -> None:
    node = helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1)
    made = model([node], {"x": ["n", 4]}, ["y"])
    made.graph.input.append(helper.make_tensor_value_info("i", onnx.TensorProto.INT64, ["m", 2]))
    net = tl.graph.compile(tl.from_onnx(made))
    x, i = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([[3, 0], [1, 1]])
    np.testing.assert_array_equal(net(x, i), [[3, 0], [5, 5]])
    with pytest.raises(tl.KernelAssertionError, match="axis 0 of the indices has 2 elements, and there are 1"):
        net(x[:1], i)


def test_layers_padded_to_the_same_extents_follow_one_another() -> None:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((2, 2, 3, 2)).astype(np.float32)
    same = {"strides": [2, 3], "auto_pad": "SAME_UPPER"}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], **same),
        helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[3, 2], strides=[2, 3], auto_pad="SAME_LOWER"),
        helper.make_node("AveragePool", ["b"], ["y"], kernel_shape=[2, 3], ceil_mode=1, **same),
    ]
    f = tl.from_onnx(model(nodes, {"x": ["n", 2, "h", "w"]}, ["y"], onnx.numpy_helper.from_array(weight, "w")))
    assert str(f.result) == "f32[n, 2, (h + 7)//8, (w + 26)//27]"
    net = tl.graph.compile(f)
    for h, w in ((1, 1), (8, 5), (13, 31)):
        x = rng.standard_normal((1, 2, h, w)).astype(np.float32)
        bound = tl.from_onnx(model(nodes, {"x": [1, 2, h, w]}, ["y"], onnx.numpy_helper.from_array(weight, "w")))
        wanted = tl.graph.evaluate(bound, x)
        np.testing.assert_allclose(net(x), wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(tl.graph.evaluate(f, x), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("groups", [1, 3])
def test_windows_on_integers_are_padded_to_the_same_extents(padding: str, groups: int) -> None:
    """By as much as the extents of a call ask for; weights for channels of their own and for all."""
    how = {"auto_pad": padding, "strides": [2, 2], "group": groups}
    names = ["x", "s", "z", "w", "s", "p", "s", "z"]
    numbers = {"s": np.float32(0.1), "z": np.uint8(7), "p": np.int8(0)}
    numbers["w"] = np.random.default_rng(0).integers(-9, 9, (6, 3 // groups, 3, 2)).astype(np.int8)
    weights = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in numbers.items()]
    given = helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, ["n", 3, "h", "w"])
    nodes = [helper.make_node("QLinearConv", names, ["y"], **how)]
    graph = helper.make_graph(nodes, "net", [given], [onnx.ValueInfoProto(name="y")], weights)
    f = tl.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    net = tl.graph.compile(f)
    for shape in ((1, 3, 7, 4), (2, 3, 8, 9)):
        x = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
        assert np.array_equal(net(x), tl.graph.evaluate(f, x))


@pytest.mark.parametrize(
    ("op", "factor", "size"), [("Mul", 1.5, "n + n//2"), ("Div", 3.0, "n//3"), ("Mul", 0.75, "(3*n)//4")]
)
def test_sizes_are_followed_through_floats(op: str, factor: float, size: str) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Cast", ["shape"], ["float"], to=FLOAT),
        helper.make_node(op, ["float", "factor"], ["scaled"]),
        helper.make_node("Floor", ["scaled"], ["whole"]),
        helper.make_node("Cast", ["whole"], ["rows"], to=onnx.TensorProto.INT64),
        helper.make_node("ConstantOfShape", ["rows"], ["y"]),
        helper.make_node("Squeeze", ["whole"], ["end"]),
        helper.make_node("Range", ["zero", "end", "half"], ["r"]),
    ]
    weights = [onnx.numpy_helper.from_array(np.float32(v), k) for k, v in (("zero", 0), ("half", 0.5))]
    weights.append(onnx.numpy_helper.from_array(np.array([factor], np.float32), "factor"))
    f = tl.from_onnx(model(nodes, {"x": ["n"]}, ["y", "r"], *weights))
    assert str(f.result.fields[0]) == f"f32[{size}]"  # type: ignore[union-attr]
    assert [each.is_most for each in f.demands] == [True]
    for n in (1, 2, 5, 14):
        y, r = tl.graph.evaluate(f, np.zeros(n, np.float32))
        whole = int(n * factor if op == "Mul" else n / factor)
        assert y.shape == (whole,)
        np.testing.assert_array_equal(r, np.arange(0, whole, 0.5, np.float32))


def test_sizes_that_floats_would_round_elsewhere_are_data() -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Cast", ["s"], ["f"], to=FLOAT)]
    nodes.append(helper.make_node("Mul", ["f", "tenth"], ["t"]))
    nodes.append(helper.make_node("Cast", ["t"], ["rows"], to=onnx.TensorProto.INT64))
    nodes.append(helper.make_node("ConstantOfShape", ["rows"], ["y"]))
    tenth = onnx.numpy_helper.from_array(np.array([0.1], np.float32), "tenth")
    f = tl.from_onnx(model(nodes, {"x": ["n"]}, ["y"], tenth))
    assert str(f.result) == "f32[wanted]"
    for n in (9, 10, 30, 70):
        whole = int(np.float32(n) * np.float32(0.1))
        assert tl.graph.evaluate(f, np.zeros(n, np.float32)).shape == (whole,)  # type: ignore[union-attr]


def squeezed() -> list[Any]:
    """`squeeze` as exporters write it: without the last axis if that has one element, as it is otherwise."""
    then = helper.make_graph(
        [helper.make_node("Squeeze", ["x", "axis"], ["a"])], "then", [], [onnx.ValueInfoProto(name="a")]
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["b"])], "other", [], [onnx.ValueInfoProto(name="b")]
    )
    return [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "axis"], ["last"]),
        helper.make_node("Equal", ["last", "one"], ["is_one"]),
        helper.make_node("If", ["is_one"], ["y"], then_branch=then, else_branch=other),
    ]


def test_the_branch_without_an_axis_is_taken_by_demand() -> None:
    weights = [integers("axis", [-1]), integers("one", [1])]
    pool = helper.make_node("MaxPool", ["given"], ["x"], kernel_shape=[4], strides=[4], ceil_mode=1)
    f = tl.from_onnx(model([pool, *squeezed()], {"given": ["n", 2, "s"]}, ["y"], *weights))
    assert str(f.result) == "f32[n, 2]"
    assert [str(each) for each in f.demands] == ["1 <= s", "(s + 3)//4 == 1"]
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    np.testing.assert_array_equal(tl.graph.evaluate(f, x), x.max(2))
    with pytest.raises(tl.KernelAssertionError, match="`y = If, of 2 axes where that holds, else of 3` demands that"):
        tl.graph.evaluate(f, np.zeros((2, 2, 5), np.float32))


def test_facts_take_the_branch_with_all_axes() -> None:
    weights = [integers("axis", [-1]), integers("one", [1])]
    f = tl.from_onnx(model(squeezed(), {"x": ["n", "s"]}, ["y"], *weights), dims={"s": tl.dim("s", min=2)})
    assert str(f.result) == "f32[n, s]"
    assert not f.demands


def test_numbers_of_axes_that_data_decide_are_told() -> None:
    made = model([squeezed()[-1]], {"x": ["n", 1]}, ["y"], integers("axis", [-1]))
    made.graph.input.append(helper.make_tensor_value_info("is_one", onnx.TensorProto.BOOL, []))
    with pytest.raises(tl.GraphError, match=r"`then_branch` gives f32\[n\], its `else_branch` f32\[n, 1\]"):
        tl.from_onnx(made)


@pytest.mark.parametrize(
    "ways",
    [
        {"coordinate_transformation_mode": "half_pixel"},
        {"coordinate_transformation_mode": "align_corners"},
        {"coordinate_transformation_mode": "half_pixel_symmetric"},
        {"exclude_outside": 1, "antialias": 1},
    ],
)
def test_cubic_resizing_of_symbolic_extents_is_that_of_numbers(ways: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    ways = {"mode": "cubic", "cubic_coeff_a": -0.5, **ways}
    given = [helper.make_node("Resize", ["x", "", "scales"], ["y"], **ways)]
    scales = onnx.numpy_helper.from_array(np.array([1, 2, 3], np.float32), "scales")
    f = tl.from_onnx(model(given, {"x": [2, "h", "w"]}, ["y"], scales))
    x = rng.standard_normal((2, 4, 5)).astype(np.float32)
    wanted = tl.graph.evaluate(tl.from_onnx(model(given, {"x": [2, 4, 5]}, ["y"], scales)), x)
    # Code is made of the most general way: it takes seconds.
    net = tl.graph.compile(f) if "antialias" in ways else partial(tl.graph.evaluate, f)
    np.testing.assert_allclose(net(x), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("extent", "scale", "wanted"), [(10, 0.7, 7), (100, 0.29, 29), (9, 1.3, 11), (7, 10 / 7, 10)])
@pytest.mark.parametrize("known", [True, False])
def test_scales_are_the_fractions_that_were_rounded_to_f32(extent: int, scale: float, wanted: int, known: bool) -> None:
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], coordinate_transformation_mode="asymmetric")
    scales = onnx.numpy_helper.from_array(np.array([1, scale], np.float32), "scales")
    f = tl.from_onnx(model([node], {"x": [1, extent if known else "w"]}, ["y"], scales))
    assert tl.graph.evaluate(f, np.zeros((1, extent), np.float32)).shape == (1, wanted)


def test_the_nearest_elements_of_a_region_take_nothing_of_others() -> None:
    ways = {"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize"}
    node = helper.make_node("Resize", ["x", "region", "", "sizes"], ["y"], **ways)
    region = onnx.numpy_helper.from_array(np.array([0, 0, 0.5, 1], np.float32), "region")
    f = tl.from_onnx(model([node], {"x": [5, 4]}, ["y"], region, integers("sizes", [3, 4])))
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    x[4, 1] = np.nan
    np.testing.assert_array_equal(tl.graph.compile(f)(x), x[:3])


@pytest.mark.parametrize("length", [None, 5, 12])
def test_fourier_transforms_along_an_extent_that_a_call_tells(length: int | None) -> None:
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((2, 7, 3, 2)).astype(np.float32)
    numbers, axis = parts[..., 0] + 1j * parts[..., 1], integers("axis", 1)
    stored = [axis] if length is None else [axis, integers("length", length)]
    for compiled, how, transform in (
        (12, {}, np.fft.fft),
        (None, {"inverse": 1}, np.fft.ifft),
        (5, {"inverse": 1, "onesided": 1}, np.fft.irfft),
    ):
        node = helper.make_node("DFT", ["x", "" if length is None else "length", "axis"], ["y"], **how)
        f = tl.from_onnx(model([node], {"x": ["b", "t", 3, 2]}, ["y"], *stored, opset=20))
        wanted = transform(numbers, length, 1)
        shown = np.stack([wanted.real, wanted.imag], -1) if np.iscomplexobj(wanted) else wanted[..., None]
        net = tl.graph.compile(f) if length == compiled else partial(tl.graph.evaluate, f)
        np.testing.assert_allclose(net(parts), shown, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["pytorch_half_pixel", "align_corners", "asymmetric"])
def test_resizing_without_aliases_weighs_all_that_an_element_stands_for(mode: str, coordinates: str) -> None:
    ways = {"mode": mode, "coordinate_transformation_mode": coordinates, "antialias": 1}
    nodes = [helper.make_node("Resize", ["x", "", *names], ["y"], **ways) for names in (["scales"], ["", "sizes"])]
    scales = onnx.numpy_helper.from_array(np.array([1, 0.6, 2], np.float32), "scales")
    x = np.random.default_rng(0).standard_normal((2, 9, 7)).astype(np.float32)
    for node, stored in ((nodes[0], scales), (nodes[1], integers("sizes", [2, 4, 3]))):
        known, told = (tl.from_onnx(model([node], {"x": shape}, ["y"], stored)) for shape in ([2, 9, 7], [2, "h", "w"]))
        np.testing.assert_allclose(tl.graph.evaluate(told, x), tl.graph.evaluate(known, x), rtol=1e-5, atol=1e-6)


def test_a_recurrent_layer_wants_three_axes() -> None:
    weights = [onnx.numpy_helper.from_array(np.zeros((1, 8, 2), np.float32), name) for name in ("w", "r")]
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=2)
    with pytest.raises(tl.GraphError, match="its input has 2 axes, and must have 3"):
        tl.from_onnx(model([node], {"x": [5, 2]}, ["y"], *weights))


@pytest.mark.parametrize(
    ("op", "numbers", "told"),
    [("Unsqueeze", [0, 0], "an axis stands twice"), ("Reshape", [-1, -1], "-1 stands for more than one extent")],
)
def test_what_stands_twice_where_once_is_right_is_refused(op: str, numbers: list[int], told: str) -> None:
    node = helper.make_node(op, ["x", "numbers"], ["y"])
    with pytest.raises(tl.GraphError, match=f"node 1.*{told}"):
        tl.from_onnx(model([node], {"x": [6]}, ["y"], integers("numbers", numbers)))


def external(location: str, **more: str) -> Any:
    weights = helper.make_tensor("w", FLOAT, [4], bytes(16), raw=True)
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    for key, value in ({"location": location} | more).items():
        weights.external_data.add(key=key, value=value)
    return model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [4]}, ["y"], weights)


def test_external_data_are_read_from_the_folder(tmp_path: Path) -> None:
    np.arange(8, dtype=np.float32).tofile(tmp_path / "w.bin")
    (tmp_path / "m.onnx").write_bytes(external("w.bin", offset="16", length="16").SerializeToString())
    f = tl.from_onnx(tmp_path / "m.onnx")
    np.testing.assert_array_equal(tl.graph.evaluate(f, np.zeros(4, np.float32)), [4, 5, 6, 7])


@pytest.mark.parametrize(
    "location", ["../w.bin", "/etc/passwd", "link.bin", "in/../../w.bin", "..\\w.bin", "C:\\w", ""]
)
def test_external_data_never_leave_the_folder(tmp_path: Path, location: str) -> None:
    inside = tmp_path / "model"
    inside.mkdir()
    np.zeros(4, np.float32).tofile(tmp_path / "w.bin")
    (inside / "link.bin").symlink_to(tmp_path / "w.bin")
    (inside / "m.onnx").write_bytes(external(location).SerializeToString())
    with pytest.raises(tl.GraphError, match="onnx-bad-tensor"):
        tl.from_onnx(inside / "m.onnx")


@pytest.mark.parametrize("more", [{"offset": "8"}, {"length": "99"}, {"offset": "-4"}, {"offset": str(1 << 64)}])
def test_external_data_never_reach_beyond_their_file(tmp_path: Path, more: dict[str, str]) -> None:
    np.zeros(4, np.float32).tofile(tmp_path / "w.bin")
    (tmp_path / "m.onnx").write_bytes(external("w.bin", **more).SerializeToString())
    with pytest.raises(tl.GraphError, match="onnx-bad-tensor"):
        tl.from_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize("dims", [[-1], [1 << 40, 1 << 40], [3]])
def test_tensors_that_contradict_themselves_are_refused(dims: list[int]) -> None:
    weights = helper.make_tensor("w", FLOAT, [4], bytes(16), raw=True)
    weights.dims[:] = dims
    with pytest.raises(tl.GraphError, match="onnx-bad-tensor"):
        tl.from_onnx(model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [4]}, ["y"], weights))


def test_inputs_whose_size_wraps_are_refused() -> None:
    with pytest.raises(tl.GraphError, match="onnx-bad-model"):
        tl.from_onnx(model([helper.make_node("Relu", ["x"], ["y"])], {"x": [1 << 40, 1 << 40]}, ["y"]))


def test_dims_that_must_be_equal_become_one() -> None:
    nodes = [helper.make_node("MatMul", ["x", "y"], ["p"]), helper.make_node("Concat", ["p", "z"], ["out"], axis=1)]
    f = tl.from_onnx(model(nodes, {"x": ["batch", "n"], "y": [None, 3], "z": ["rows", "k"]}, ["out"]))
    assert [str(param.type) for param in f.params] == ["f32[batch, n]", "f32[n, 3]", "f32[batch, k]"]
    assert str(f.result) == "f32[batch, k + 3]"


def test_a_dim_that_must_be_a_number_becomes_one() -> None:
    weight = onnx.numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    f = tl.from_onnx(model([node], {"x": ["batch", "channels", "h", None]}, ["y"], weight))
    assert str(f.result) == "f32[batch, 4, h, x_3]"


def test_what_dims_cannot_mend_is_told_with_the_extents_that_they_became() -> None:
    nodes = [helper.make_node("Add", ["x", "y"], ["s"]), helper.make_node("MatMul", ["s", "s"], ["p"])]
    nodes += [helper.make_node("Reshape", ["p", "shape"], ["out"])]
    given = model(nodes, {"x": ["n", "n"], "y": ["m", 4]}, ["out"], integers("shape", [5, 5]))
    with pytest.raises(tl.GraphError, match="16 elements become 25"):
        tl.from_onnx(given)


def test_all_nodes_that_contradict_their_operands_are_told_at_once() -> None:
    weights = [onnx.numpy_helper.from_array(np.ones((k, 5), np.float32), f"w{k}") for k in (3, 6)]
    nodes = [helper.make_node("MatMul", ["x", f"w{k}"], [f"p{k}"]) for k in (3, 6)]
    nodes.append(helper.make_node("Add", ["p3", "p6"], ["y"]))
    with pytest.raises(tl.GraphError, match=r"(?s)`p3 = .*4 and 3.*`p6 = .*4 and 6"):
        tl.from_onnx(model(nodes, {"x": ["n", 4]}, ["y"], *weights))


def test_each_extent_without_a_name_is_its_own_and_names_stay_apart() -> None:
    given = {"x": ["a+b", "?", -1], "y": ["a-b", "?", -1]}
    nodes = [helper.make_node("Relu", [name], [f"{name}_out"]) for name in given]
    f = tl.from_onnx(model(nodes, given, ["x_out", "y_out"]), dims={"a-b": 4, "x_2": tl.dim("x_2", max=9)})
    assert [str(param.type) for param in f.params] == ["f32[a_b, x_1, x_2]", "f32[4, y_1, y_2]"]
    assert str(f).startswith("# x_2: max=9\n")


def test_divisions_of_what_may_be_negative_go_towards_zero() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Sub", ["shape", "eight"], ["room"]),
        helper.make_node("Div", ["room", "four"], ["steps"]),
        helper.make_node("Cast", ["steps"], ["y"], to=FLOAT),
    ]
    weights = [integers("eight", [8]), integers("four", [4])]
    f = tl.from_onnx(model(nodes, {"x": ["n"]}, ["y"], *weights))
    found = [float(np.asarray(tl.graph.evaluate(f, np.zeros(n, np.float32)))[0]) for n in (1, 5, 7, 8, 12, 31)]
    assert found == [-1, 0, 0, 0, 1, 5]


def test_operands_that_contradict_each_other_are_told_with_their_node() -> None:
    weights = [onnx.numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in (("w", 4), ("r", 4))]
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)
    told = r"(?s)node 1: `y = LSTM\(x, w, r\)`: its weights are f32\[4\], and must be f32\[1, 16, 4\]"
    with pytest.raises(tl.GraphError, match=told) as caught:
        tl.from_onnx(model([node], {"x": [3, 1, 4]}, ["y"], *weights))
    assert caught.value.code == "onnx-unsupported"


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_are_refused_or_read(seed: int) -> None:
    draw = random.Random(seed)
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["p"])]
    nodes += [helper.make_node("Reshape", ["p", "shape"], ["y"])]
    whole = model(nodes, {"x": ["n", 6]}, ["y"], integers("shape", [-1])).SerializeToString()
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        with contextlib.suppress(tl.GraphError):
            tl.from_onnx(bytes(damaged))


def counted(limit: int) -> Any:
    """A loop without a count that adds 1 to 0 until `limit` is reached."""
    scalars = [("n", onnx.TensorProto.INT64), ("c", onnx.TensorProto.BOOL), ("i", onnx.TensorProto.INT64)]
    nodes = [helper.make_node("Add", ["i", "one"], ["j"]), helper.make_node("Less", ["j", "limit"], ["on"])]
    given = [helper.make_tensor_value_info(name, kind, []) for name, kind in scalars]
    body = helper.make_graph(nodes, "body", given, [onnx.ValueInfoProto(name=name) for name in ("on", "j")])
    known = {"one": 1, "limit": limit, "zero": 0}
    made = [helper.make_node("Constant", [], [name], value_int=value) for name, value in known.items()]
    made += [helper.make_node("Less", ["zero", "limit"], ["go"]), helper.make_node("Loop", ["", "go", "zero"], ["k"])]
    made[-1].attribute.append(helper.make_attribute("body", body))
    return model([*made, helper.make_node("Cast", ["k"], ["y"], to=FLOAT)], {"x": [1]}, ["y"])


def test_a_loop_ends_where_its_condition_does() -> None:
    for limit, count in ((1024, 0), (1025, 1)):  # beyond 1024 steps it is not written out
        f = tl.from_onnx(counted(limit))
        assert str(f).count("loop def") == count
        assert tl.graph.evaluate(f, np.zeros(1, np.float32)) == limit


@pytest.mark.parametrize(
    ("start", "stop", "step", "left"),
    [(0, 1 << 62, 1, 6), (0, -(1 << 62), 1, 0), (5, -(1 << 62), -1, 6), (5, 1 << 62, -1, 6), (-(1 << 62), 4, 1, 4)],
)
def test_stops_beyond_all_places(start: int, stop: int, step: int, left: int) -> None:
    weights = [integers(name, [value]) for name, value in zip("sept", (start, stop, 0, step), strict=True)]
    node = helper.make_node("Slice", ["x", *"sept"], ["y"])
    f = tl.from_onnx(model([node], {"x": ["n", 3]}, ["y"], *weights))
    assert tl.graph.evaluate(f, np.zeros((6, 3), np.float32)).shape == (left, 3)


@pytest.mark.parametrize(("how", "first"), [("NOTSET", 1), ("SAME_LOWER", 1), ("SAME_UPPER", 0)])
def test_what_a_transposed_convolution_makes_too_much_is_cut_off(how: str, first: int) -> None:
    """One element more than asked for: it is cut off in front, unless SAME_UPPER is asked for."""
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], auto_pad=how, output_shape=[3])
    f = tl.from_onnx(model([node], {"x": [1, 1, 3], "w": [1, 1, 2]}, ["y"]))
    x, w = np.float32([[[1, 10, 100]]]), np.float32([[[1, 2]]])
    whole = [1, 12, 120, 200]
    assert tl.graph.evaluate(f, x, w).ravel().tolist() == whole[first : first + 3]


def test_a_branch_makes_no_fact_of_a_dim() -> None:
    """That it needs an even extent holds where it is taken alone."""

    def branch(result: str, *nodes: Any) -> Any:
        return helper.make_graph(list(nodes), result, [], [onnx.ValueInfoProto(name=result)])

    then = branch(
        "t",
        helper.make_node("MaxPool", ["x"], ["half"], kernel_shape=[2], strides=[2]),
        helper.make_node("Concat", ["half", "half"], ["both"], axis=2),
        helper.make_node("Add", ["x", "both"], ["t"]),
    )
    other = branch("e", helper.make_node("Neg", ["x"], ["e"]))
    chosen = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    made = model([chosen], {"x": [1, 1, "n"]}, ["y"])
    made.graph.input.append(helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []))
    f = tl.from_onnx(made)
    assert not f.demands
    net, odd, even = tl.graph.compile(f), np.ones((1, 1, 5), np.float32), np.ones((1, 1, 6), np.float32)
    np.testing.assert_array_equal(net(odd, np.array(False)), -odd)
    np.testing.assert_array_equal(net(even, np.array(True)), 2 * even)
    with pytest.raises(tl.KernelRunError, match=r"`t` demands that .* \(4 and 5\)"):
        net(odd, np.array(True))


def test_a_branch_that_needs_many_elements_leaves_the_other_one_alone() -> None:
    """Where it is not taken, that its windows do not fit does not matter: -3 elements were asked for."""

    def branch(result: str, *nodes: Any) -> Any:
        return helper.make_graph(list(nodes), result, [], [onnx.ValueInfoProto(name=result)])

    pool = helper.make_node("AveragePool", ["x"], ["p"], kernel_shape=[5])
    total, back = helper.make_node("ReduceSum", ["p"], ["s"]), helper.make_node("Add", ["x", "s"], ["t"])
    x, c = {"x": [1, 1, "n"]}, helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])
    for then, expected in ((branch("p", pool), "taken"), (branch("t", pool, total, back), "n")):
        other = branch("e", helper.make_node("Neg", ["x"], ["e"]))
        chosen = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
        made = model([chosen, helper.make_node("Exp", ["y"], ["z"])], x, ["z"])
        made.graph.input.append(c)
        f = tl.from_onnx(made)
        assert (str(f.result), f.demands) == (f"f32[1, 1, {expected}]", ())
        few, many = np.ones((1, 1, 2), np.float32), np.ones((1, 1, 6), np.float32)
        net = tl.graph.compile(f)
        for call in (net, net.interpret, lambda *arrays, of=f: tl.graph.evaluate(of, *arrays)):
            np.testing.assert_allclose(call(few, np.array(False)), np.exp(-few), 1e-6)
            assert call(many, np.array(True)).shape == (1, 1, 2 if expected == "taken" else 6)
            with pytest.raises(tl.KernelRunError, match="and must be (at least 5|from 0 to 2)"):
                call(few, np.array(True))


def test_what_a_branch_demands_is_checked_where_it_is_taken() -> None:
    """Each branch adds weights of another length, as a model for two rates of its input does."""
    condition = helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])
    weights = {count: onnx.numpy_helper.from_array(np.ones(count, np.float32), f"w{count}") for count in (3, 5)}
    branches = [
        helper.make_graph(
            [
                helper.make_node("Add", ["x", f"w{count}"], [f"z{count}"]),
                helper.make_node("Neg", [f"z{count}"], [f"r{count}"]),
            ],
            f"of_{count}",
            [],
            [onnx.ValueInfoProto(name=f"r{count}")],
            [weights[count]],
        )
        for count in (3, 5)
    ]
    node = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    made = model([node], {"x": ["n"]}, ["y"])
    made.graph.input.append(condition)
    f = tl.from_onnx(made)
    net = tl.graph.compile(f)
    assert not f.demands
    for count, flag in ((3, True), (5, False)):
        x = np.arange(count, dtype=np.float32)
        for run in (net, lambda *arrays: tl.graph.evaluate(f, *arrays)):
            np.testing.assert_array_equal(run(x, np.array(flag)), -(x + 1))
    with pytest.raises(tl.KernelRunError, match="`z3` demands that n == 3"):
        net(np.zeros(5, np.float32), np.array(True))


@pytest.mark.parametrize(("kind", "step"), [(np.float32, 0.01), (np.float16, 0.125)])
def test_variances_of_elements_far_from_0_are_not_negative(kind: type, step: float) -> None:
    """The standard's function subtracts the square of the mean from the mean of squares."""
    of = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"])
    graph = helper.make_graph(
        [node], "net", [helper.make_tensor_value_info("x", of, [2, 2, 2, 6])], [onnx.ValueInfoProto(name="y")]
    )
    f = tl.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    x = (100 + np.arange(48).reshape(2, 2, 2, 6) % 12 * step).astype(kind)
    apart = x - x.mean((0, 2, 3), np.float64, keepdims=True)
    wanted = apart / np.sqrt((apart**2).mean((0, 2, 3), keepdims=True))
    for found in (tl.graph.compile(f)(x), tl.graph.evaluate(f, x)):
        assert found.dtype == kind
        np.testing.assert_allclose(found, wanted, rtol=4e-3, atol=1e-3)
    assert not tl.graph.compile(f)(np.full(x.shape, 100, kind)).any()
