"""com.microsoft, as onnxruntime's optimizers and tools write it, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph.leaves import leaves
from graph.onnx.beside import session

import tirlite as tl

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
helper, TYPES = onnx.helper, onnx.TensorProto
Array = np.ndarray[Any, Any]

RNG = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def small(dtype: type, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def weights_of_7_bits(*shape: int) -> Array:
    """What onnxruntime multiplies exactly: without dot products of the processor it adds pairs in 16 bits."""
    return small(np.int8, *shape) // 2


def compared(
    op: str,
    inputs: list[str],
    outputs: list[str],
    given: dict[str, Array],
    weights: dict[str, Array | np.generic] | None = None,
    *,
    is_run: bool = True,
    **attributes: object,
) -> list[tuple[Array, Array]]:
    """The results of one node, each beside that of onnxruntime; the first axis of what is given is symbolic."""
    node = helper.make_node(op, inputs, outputs, domain="com.microsoft", **attributes)
    params = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(each.dtype), [f"{name}_rows", *each.shape[1:]]
        )
        for name, each in given.items()
    ]
    stored = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (weights or {}).items()]
    names = [name for name in outputs if name]
    graph = helper.make_graph([node], "net", params, [onnx.ValueInfoProto(name=name) for name in names], stored)
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(graph, opset_imports=domains, ir_version=10)
    if not is_run:
        tl.from_onnx(made)
    found = tl.graph.evaluate(tl.from_onnx(made), *given.values())
    return list(zip(leaves(found), session(made).run(None, given), strict=True))


def assert_close(pairs: list[tuple[Array, Array]], tolerance: float = 1e-5) -> None:
    for mine, theirs in pairs:
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def test_functions() -> None:
    for op, inputs in (("Gelu", "x"), ("FastGelu", "x"), ("FastGelu", "xb"), ("BiasGelu", "xb"), ("QuickGelu", "x")):
        assert_close(compared(op, [*inputs], ["y"], {"x": 3 * normal(5, 8)}, {"b": normal(8)}))


def test_normalizations_of_sums() -> None:
    weights = {"g": normal(8), "b": normal(8), "c": normal(8)}
    for op, inputs in (
        ("SkipLayerNormalization", "xsgbc"),
        ("SkipLayerNormalization", "xsg"),
        ("SkipSimplifiedLayerNormalization", "xsgc"),
        ("SkipSimplifiedLayerNormalization", "xsg"),
    ):
        given = {"x": normal(2, 3, 8), "s": normal(2, 3, 8)}
        assert_close(compared(op, [*inputs], ["y", "", "", "sum"], given, weights, epsilon=1e-5))


def test_embeddings() -> None:
    words = RNG.integers(0, 20, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    given = {"i": words, "s": (words % 2).astype(np.int32), "m": mask}
    weights = {"w": normal(20, 8), "p": normal(9, 8), "q": normal(2, 8), "g": normal(8), "b": normal(8)}
    assert_close(compared("EmbedLayerNormalization", [*"iswpqgbm"], ["y", "n"], given, weights, epsilon=1e-5))


def test_embeddings_of_integers() -> None:
    words = RNG.integers(0, 20, (2, 5)).astype(np.int32)
    tables = {"w": (20, 8), "p": (9, 8), "q": (2, 8), "g": (8,), "b": (8,)}
    weights: dict[str, Any] = {name: small(np.uint8, *shape) for name, shape in tables.items()}
    weights |= {f"{name}s": np.float32(0.01 + 0.001 * n) for n, name in enumerate(tables)}
    weights |= {f"{name}z": np.uint8(100 + n) for n, name in enumerate(tables)}
    inputs = [*"iswpqgb", "", *(f"{name}s" for name in tables), *(f"{name}z" for name in tables)]
    given = {"i": words, "s": (words % 2).astype(np.int32)}
    assert_close(compared("QEmbedLayerNormalization", inputs, ["y", "n"], given, weights, epsilon=1e-5))


def test_products_of_turned_matrices() -> None:
    for a, b, how in (
        ((2, 4, 3), (2, 4, 5), {"transA": 1}),
        ((2, 3, 4), (2, 5, 4), {"transB": 1, "alpha": 0.5}),
        ((4, 2, 3), (4, 2, 5), {"transBatchA": 1, "transA": 1, "transBatchB": 1}),
    ):
        assert_close(compared("FusedMatMul", ["x", "w"], ["y"], {"x": normal(*a)}, {"w": normal(*b)}, **how))


def test_convolutions_and_products_with_activations() -> None:
    weights = {"w": normal(4, 3, 3, 3), "b": normal(4)}
    for name, numbers in (("Relu", []), ("LeakyRelu", [0.2]), ("Clip", [0.0, 1.0]), ("HardSigmoid", [0.3, 0.4])):
        how = {"activation": name, "kernel_shape": [3, 3], **({"activation_params": numbers} if numbers else {})}
        assert_close(compared("FusedConv", ["x", "w", "b"], ["y"], {"x": normal(2, 3, 5, 7)}, weights, **how))
    weights = {"w": normal(4, 3), "b": normal(4)}
    how = {"activation": "LeakyRelu", "activation_alpha": 0.1, "transB": 1, "alpha": 0.5}
    assert_close(compared("FusedGemm", ["x", "w", "b"], ["y"], {"x": normal(2, 3)}, weights, **how))


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_products_with_weights_of_few_bits(bits: int) -> None:
    for k, n, size, points in ((32, 5, 16, False), (40, 5, 16, True), (64, 5, 32, True), (96, 48, 32, True)):
        blocks = -(-k // size)
        weights = {"w": small(np.uint8, n, blocks, size * bits // 8), "s": np.abs(normal(n, blocks))}
        weights["z"] = small(np.uint8, n, -(-blocks * bits // 8))
        how = {"K": k, "N": n, "bits": bits, "block_size": size}
        inputs = [*"xws", *(["z"] if points else [])]
        assert_close(compared("MatMulNBits", inputs, ["y"], {"x": normal(3, k)}, weights, **how), 2e-4)


@pytest.mark.parametrize("bits", [4, 8])
def test_rows_of_a_table_of_few_bits(bits: int) -> None:
    weights = {"w": small(np.uint8, 9, 64 * bits // 8), "s": np.abs(normal(9, 4)), "z": small(np.uint8, 9, bits // 2)}
    how = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    for inputs in ("wis", "wisz"):
        assert_close(
            compared("GatherBlockQuantized", [*inputs], ["y"], {"i": RNG.integers(0, 9, (2, 3))}, weights, **how)
        )


def test_products_with_weights_whose_blocks_stand_in_any_order() -> None:
    order = RNG.permutation(np.repeat(np.arange(4, dtype=np.int32), 16))
    weights = {"w": small(np.uint8, 5, 4, 8), "s": np.abs(normal(5, 4)), "z": small(np.uint8, 5, 2), "g": order}
    how = {"K": 64, "N": 5, "bits": 4, "block_size": 16, "accuracy_level": 0}
    given = {"x": normal(3, 64)}
    assert_close(compared("MatMulNBits", ["x", "w", "s", "", "g"], ["y"], given, weights, **how), 2e-4)
    # onnxruntime passes zero points over here.
    apart = np.stack([weights["w"] & 15, weights["w"] >> 4], -1).reshape(5, 64).astype(np.float32)
    points = np.stack([weights["z"] & 15, weights["z"] >> 4], -1).reshape(5, 4)
    wide = (apart - points[:, order]) * weights["s"][:, order]
    ((mine, _),) = compared("MatMulNBits", [*"xwszg"], ["y"], given, weights, **how)
    np.testing.assert_allclose(mine, given["x"] @ wide.T, rtol=1e-4, atol=1e-4)


def test_a_mixture_of_experts() -> None:
    given = {"x": normal(5, 32), "r": normal(5, 4)}
    weights = {
        "w": normal(4, 48, 32),
        "b": normal(4, 48),
        "v": normal(4, 32, 24),
        "c": normal(4, 32),
        "u": normal(4, 32, 48),
    }
    for how in ({"activation_type": "relu"}, {"activation_type": "silu", "normalize_routing_weights": 1}):
        assert_close(compared("MoE", [*"xrwbu"], ["y"], given, weights, k=2, **how), 1e-4)
    gates = {
        "normalize_routing_weights": 1,
        "activation_type": "swiglu",
        "swiglu_fusion": 1,
        "swiglu_limit": 7.0,
        "activation_alpha": 1.7,
    }
    assert_close(compared("MoE", [*"xrwbvc"], ["y"], given, weights, k=2, activation_beta=1.0, **gates), 1e-4)
    few = {"w": small(np.uint8, 4, 64, 16), "s": np.abs(normal(4, 64, 2)), "v": small(np.uint8, 4, 32, 16)}
    few |= {"t": np.abs(normal(4, 32, 2)), "b": normal(4, 64), "c": normal(4, 32)}
    assert_close(compared("QMoE", [*"xrwsbvtc"], ["y"], given, few, k=2, block_size=16, **gates), 1e-3)


def test_channels_may_stand_last() -> None:
    weights = {"as": np.float32(0.05), "az": np.uint8(7), "w": weights_of_7_bits(4, 3, 3, 3), "ws": np.abs(normal(4))}
    weights |= {"wz": np.zeros(4, np.int8), "cs": np.float32(0.9), "cz": np.uint8(100)}
    given, how = {"a": small(np.uint8, 2, 7, 9, 3)}, {"channels_last": 1}
    pool = {"kernel_shape": [3, 3], "strides": [2, 2]}
    convolved = ["a", "as", "az", "w", "ws", "wz", "cs", "cz"]
    found = [
        *compared("QLinearConv", convolved, ["y"], given, weights, kernel_shape=[3, 3], pads=[1, 1, 1, 1], **how),
        *compared("QLinearAveragePool", ["a", "as", "az", "cs", "cz"], ["y"], given, weights, **pool, **how),
        *compared("QLinearGlobalAveragePool", ["a", "as", "az", "cs", "cz"], ["y"], given, weights, **how),
        *compared("NhwcMaxPool", ["a"], ["y"], given, **pool),
    ]
    for mine, theirs in found:
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        assert np.abs(mine.astype(int) - theirs.astype(int)).max() <= 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantized_operators_are_within_one_quantum(dtype: type) -> None:
    scales = {"as": np.float32(0.03), "bs": np.float32(0.05), "cs": np.float32(0.09)}
    scales |= {"az": dtype(7), "bz": dtype(3), "cz": dtype(11), "ss": np.float32(1 / 256), "sz": dtype(0)}
    a, b, c = (["a", "as", "az"], ["b", "bs", "bz"], ["cs", "cz"])
    wide, image = {"a": small(dtype, 9, 6), "b": small(dtype, 9, 6)}, {"a": small(dtype, 2, 3, 6, 6)}
    one = {"a": wide["a"]}
    found = [
        *compared("QLinearAdd", [*a, *b, *c], ["y"], wide, scales),
        *compared("QLinearMul", [*a, *b, *c], ["y"], wide, scales),
        *compared("QLinearSigmoid", [*a, "ss", "sz"], ["y"], one, scales),
        *compared("QLinearLeakyRelu", [*a, *c], ["y"], one, scales, alpha=0.2),
        *compared("QLinearSoftmax", [*a, "ss", "sz"], ["y"], one, scales, axis=-1, opset=13),
        *compared("QLinearGlobalAveragePool", [*a, *c], ["y"], image, scales),
        *compared("QLinearAveragePool", [*a, *c], ["y"], image, scales, kernel_shape=[2, 2], strides=[2, 2]),
        *compared("QLinearConcat", [*c, *a, *b], ["y"], wide, scales, axis=1),
        *compared("QLinearWhere", ["p", *a, *b, *c], ["y"], {"p": wide["a"] > 0, **wide}, scales),
        *compared("QGemm", [*a, "w", "bs", "wz", "i", *c], ["y"], one, scales | of_products(), transB=1, alpha=0.5),
    ]
    for mine, theirs in found:
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        assert np.abs(mine.astype(int) - theirs.astype(int)).max() <= 1
    floats = compared("QGemm", [*a, "w", "bs", "wz", "i"], ["y"], one, scales | of_products(), transB=1, alpha=0.5)
    assert_close(floats)


def of_products() -> dict[str, Any]:
    return {"w": weights_of_7_bits(4, 6), "wz": np.int8(2), "i": RNG.integers(-99, 99, 4).astype(np.int32)}


def test_products_of_integers_that_become_floats() -> None:
    weights = {"b": weights_of_7_bits(6, 4), "as": np.float32(0.1), "bs": np.abs(normal(4))}
    weights |= {"az": np.uint8(9), "bz": RNG.integers(0, 9, 4).astype(np.int8), "bias": normal(4)}
    given = {"a": small(np.uint8, 5, 6)}
    assert_close(compared("MatMulIntegerToFloat", ["a", "b", "as", "bs", "az", "bz", "bias"], ["y"], given, weights))
    weights |= {"bs": np.float32(0.2), "bz": np.int8(3)}
    for x in (normal(5, 6), np.zeros((2, 6), np.float32)):
        assert_close(compared("DynamicQuantizeMatMul", ["a", "b", "bs", "bz", "bias"], ["y"], {"a": x}, weights))


def test_a_layer_with_weights_of_8_bits() -> None:
    """What they are multiplied with is quantized as onnxruntime does it with one thread, which has all of a batch."""
    for ways, direction in ((1, "forward"), (2, "bidirectional")):
        scale, zero = np.full(ways, 0.01, np.float32), np.zeros(ways, np.int8)
        weights = {
            "W": weights_of_7_bits(ways, 6, 16),
            "R": weights_of_7_bits(ways, 4, 16),
            "B": 0.1 * normal(ways, 32),
        }
        inputs = ["x", "W", "R", "B", "", "", "", "", "s", "z", "s", "z"]
        how = {"hidden_size": 4, "direction": direction}
        weights |= {"s": scale, "z": zero}
        assert_close(compared("DynamicQuantizeLSTM", inputs, [*"yhc"], {"x": normal(5, 2, 6)}, weights, **how))


@pytest.mark.parametrize("outputs", [["y", "h", "c"], ["", "h", "c"]], ids=["outputs", "states"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_layer_with_weights_of_8_bits_and_lengths(direction: str, outputs: list[str]) -> None:
    """Steps that onnxruntime does not do tell nothing of quanta, and a sequence that has ended does as it stands there.

    Rows beyond the longest sequence are far from the others. Where a layer has no outputs, onnxruntime reads what was
    never written for a sequence without a step.
    """
    ways = 2 if direction == "bidirectional" else 1
    weights = {"W": weights_of_7_bits(ways, 3, 20), "R": weights_of_7_bits(ways, 5, 20), "z": np.zeros(ways, np.int8)}
    weights |= {"s": np.full(ways, 0.01, np.float32), "B": 0.1 * normal(ways, 40)}
    inputs = ["x", "W", "R", "B", "lengths", "h0", "c0", "", "s", "z", "s", "z"]
    for lengths in ([2, 6, 1, 0] if outputs[0] else [2, 6, 1, 3], [4, 4, 1, 2]):
        x = normal(7, 4, 3)
        x[max(lengths) :] *= 50
        states = [normal(ways, 4, 5) * np.float32([1, 1, 9, 1])[:, None] for _ in range(2)]
        given = {"x": x, "lengths": np.array(lengths, np.int32), "h0": states[0], "c0": states[1]}
        assert_close(
            compared("DynamicQuantizeLSTM", inputs, outputs, given, weights, hidden_size=5, direction=direction)
        )


@pytest.mark.parametrize(
    "how",
    [{"P": True}, {"activations": ["HardSigmoid", "Softsign", "Tanh"]}, {"clip": 0.5}, {"input_forget": 1}],
    ids=["peepholes", "activations", "clip", "input-forget"],
)
def test_steps_of_another_kind_are_quantized_too(how: dict[str, Any]) -> None:
    """Each sequence that goes backwards begins at its own end, as onnxruntime has it."""
    for direction, lengths in (("forward", [2, 6, 1, 3]), ("bidirectional", [4, 6, 0, 2]), ("reverse", None)):
        ways = 2 if direction == "bidirectional" else 1
        names = ["x", "W", "R", "B", "lengths" if lengths else "", "h0", "c0", "P" if "P" in how else "", *"szsz"]
        weights = {"W": weights_of_7_bits(ways, 3, 20), "R": weights_of_7_bits(ways, 5, 20), "B": normal(ways, 40) / 9}
        weights |= {"s": np.float32(0.002 + 0.01 * RNG.random((ways, 20))), "z": np.zeros((ways, 20), np.int8)}
        weights |= {"P": normal(ways, 15)} if "P" in how else {}
        given = {"x": normal(6, 4, 3), "h0": normal(ways, 4, 5) / 2, "c0": normal(ways, 4, 5)}
        given |= {} if lengths is None else {"lengths": np.array(lengths, np.int32)}
        told = {name: value * ways if name == "activations" else value for name, value in how.items() if name != "P"}
        told |= {"hidden_size": 5, "direction": direction}
        assert_close(compared("DynamicQuantizeLSTM", names, [*"yhc"], given, weights, **told))


ROWS = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.int32)


@pytest.mark.parametrize(
    ("mask", "causal"), [(None, 0), (ROWS, 0), (ROWS[:, :1] * 3, 1)], ids=["all", "mask", "causal"]
)
def test_attention_of_one_operand(mask: Array | None, causal: int) -> None:
    given = {"x": normal(2, 4, 8), **({} if mask is None else {"m": mask if mask.shape[1] == 4 else mask[:, 0]})}
    weights = {"w": normal(8, 24) / 2, "b": normal(24)}
    inputs = ["x", "w", "b", *(["m"] if mask is not None else [])]
    assert_close(compared("Attention", inputs, ["y"], given, weights, num_heads=2, unidirectional=causal))


def test_attention_of_integers() -> None:
    weights = {"w": weights_of_7_bits(8, 24), "b": normal(24), "xs": np.float32(0.02), "ws": np.float32(0.01)}
    weights |= {"xz": np.uint8(128), "wz": np.int8(1)}
    given = {"x": small(np.uint8, 2, 4, 8), "m": ROWS}
    inputs = ["x", "w", "b", "xs", "ws", "m", "xz", "wz"]
    assert_close(compared("QAttention", inputs, ["y"], given, weights, num_heads=2), 1e-4)


def test_attention_behind_a_past() -> None:
    given = {"x": normal(2, 3, 8), "past": normal(2, 2, 2, 5, 4)}
    names = ["x", "w", "b", "", "past"]
    weights = {"w": normal(8, 24) / 2, "b": normal(24)}
    assert_close(compared("Attention", names, ["y", "present"], given, weights, num_heads=2, unidirectional=1))


def test_attention_of_several_operands() -> None:
    query, key, value = normal(2, 3, 8), normal(2, 4, 8), normal(2, 4, 8)
    given = {"q": query, "k": key, "v": value}
    masked = ["q", "k", "v", "bias", "m"]
    assert_close(compared("MultiHeadAttention", masked, ["y"], {**given, "m": ROWS}, {"bias": normal(24)}, num_heads=2))
    apart = {"q": query, "k": normal(2, 2, 4, 4), "v": normal(2, 2, 4, 4), "a": normal(2, 2, 3, 4)}
    names = ["q", "k", "v", "", "", "a"]
    assert_close(compared("MultiHeadAttention", names, ["y"], apart, num_heads=2, scale=0.3))
    past = {"pk": normal(2, 2, 5, 4), "pv": normal(2, 2, 5, 4)}
    names = ["q", "k", "v", "", "", "", "pk", "pv"]
    assert_close(compared("MultiHeadAttention", names, ["y", "k2", "v2"], {**given, **past}, num_heads=2))


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_positions(interleaved: int) -> None:
    given = {"x": normal(2, 3, 8), "at": RNG.integers(0, 9, (2, 3))}
    weights = {"c": normal(9, 2), "s": normal(9, 2)}
    for at in (given["at"], np.array([4])):
        shown = compared(
            "RotaryEmbedding", ["x", "at", "c", "s"], ["y"], {**given, "at": at}, weights, interleaved=interleaved
        )
        assert_close(shown)


@pytest.mark.parametrize(
    ("op", "how", "told"),
    [
        ("CDist", {"metric": "euclidean"}, r"there is no operator com\.microsoft\.CDist here"),
        ("Attention", {"num_heads": 2, "do_rotary": 1}, r"y = Attention\(x, w\)`: `do_rotary` is not read here"),
        ("QuickGelu", {}, r"y = QuickGelu\(x, w\)`: input 1 is not read here"),
    ],
)
def test_what_is_not_read_is_named(op: str, how: dict[str, object], told: str) -> None:
    with pytest.raises(tl.GraphError, match=told):
        compared(op, ["x", "w"], ["y"], {"x": normal(2, 3, 8)}, {"w": normal(8, 24)}, is_run=False, **how)


def grouped(
    steps: int, past: int | None, total: int, ends: list[int], *, is_shared: bool = False, **attributes: object
) -> None:
    """Four queries for two keys of 16 elements, for a batch whose last tokens stand at these places.

    `is_shared` says that scores share the sum with one of their head that is of no key.
    """
    batch, given, inputs = len(ends), dict[str, Array](), ["q", "k", "v", "", ""]
    for name, width in (("q", 64), ("k", 32), ("v", 32)):
        given[name] = normal(batch, steps, width)
    if past is not None:
        given.update(pk=normal(batch, 2, past, 16), pv=normal(batch, 2, past, 16))
        inputs[3:] = ["pk", "pv"]
    weights: dict[str, Array | np.generic] = {"total": np.int32(total), "c": normal(32, 8), "s": normal(32, 8)}
    given["ends"] = np.array(ends, np.int32)
    operands = [*inputs, "ends", "total", *(("c", "s") if "do_rotary" in attributes else ("", ""))]
    if is_shared:
        weights["sink"] = normal(4)
        operands += ["", "", "sink"]
    heads = {"num_heads": 4, "kv_num_heads": 2}
    assert_close(compared("GroupQueryAttention", operands, ["y", "k2", "v2"], given, weights, **heads, **attributes))


def test_queries_in_groups_see_a_prompt() -> None:
    grouped(4, None, 4, [3, 3])
    grouped(4, None, 4, [3, 1], do_rotary=1)
    grouped(4, 0, 4, [3], local_window_size=2)


def test_queries_in_groups_see_the_past() -> None:
    grouped(1, 3, 4, [3, 1], do_rotary=1, rotary_interleaved=1)
    grouped(1, 8, 5, [4, 2], local_window_size=3)
    grouped(2, 3, 5, [4], softcap=5.0, scale=0.3)


def test_scores_share_their_sum_with_one_of_no_key() -> None:
    grouped(1, 3, 4, [3, 1], smooth_softmax=1)
    grouped(4, 0, 4, [3], is_shared=True, do_rotary=1, local_window_size=2)


def test_queries_in_groups_stand_packed_with_their_keys() -> None:
    given = {"qkv": normal(2, 3, 128), "ends": np.array([2, 2], np.int32)}
    operands = ["qkv", "", "", "", "", "ends", "total"]
    heads = {"num_heads": 4, "kv_num_heads": 2}
    assert_close(compared("GroupQueryAttention", operands, ["y", "", ""], given, {"total": np.int32(3)}, **heads))
