"""Which operators become one function: what is fused, what is not and why, and what it saves."""

from __future__ import annotations

import pickle
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from small_tiles import SMALL

import tirlite as tl
from tirlite.graph import Builder, Function, compile  # noqa: A004
from tirlite.ir import callees
from tirlite.schedules.auto.tiling import Tiling

pytestmark = pytest.mark.usefixtures("without_effort")

RNG = np.random.default_rng(0)


def arrays(f: Function) -> list[np.ndarray]:
    return [np.asarray(2 * RNG.standard_normal(p.shape)).astype(p.dtype.numpy) for p in f.params]


def same(f: Function, *given: np.ndarray) -> tuple[tl.graph.CompiledGraph, tl.graph.CompiledGraph]:
    """The function compiled with groups and without: they give the same bits, and the interpreter what is near."""
    fused, plain = compile(f), compile(f, fuse=False)
    given = given or tuple(arrays(f))
    results = fused(*given), plain(*given), fused.interpret(*given)
    made = [each if isinstance(each, tuple) else (each,) for each in results]
    for a, b, c in zip(*made, strict=True):
        assert a.tobytes() == b.tobytes()
        np.testing.assert_allclose(a, c, rtol=1e-3 if a.dtype == np.float16 else 1e-5, atol=1e-4)
    return fused, plain


def together(net: tl.graph.CompiledGraph) -> list[str]:
    return [" + ".join(call.op.name for call in group.calls) for group in net.groups.groups.values()]


def why(net: tl.graph.CompiledGraph) -> list[tuple[str, str]]:
    return [(each.call.op.name, each.why) for each in net.groups.alone]


def test_sums_share_a_function_whichever_side_the_result_stands_on() -> None:
    g = Builder("sides")
    x, w = g.input("x", tl.f32[2, 8, 5, 5]), g.input("w", tl.f32[8, 8, 3, 3])
    y = g.relu(g.add(g.conv(x, w, pad=1), x))
    fused, _ = same(g.function(g.relu(g.add(y, g.conv(y, w, pad=1)))))
    assert together(fused) == ["conv + add + relu"] * 2
    assert len(callees(fused.ir)) == 1


def test_a_residual_block() -> None:
    g = Builder("block")
    x, w = g.input("x", tl.f32[2, 8, 5, 5]), g.input("w", tl.f32[8, 8, 3, 3])
    scale, bias, mean, variance = (g.input(name, tl.f32[8]) for name in ("scale", "bias", "mean", "variance"))
    y = g.batch_norm(g.conv(x, w, pad=1), scale, bias, mean, variance)
    f = g.function(g.max_pool(g.relu(g.add(y, x)), 2))
    given = arrays(f)
    given[5] = np.abs(given[5])
    fused, plain = same(f, *given)
    assert together(fused) == ["conv + batch_norm + add + relu"]
    assert why(fused) == []
    assert fused.plan.total <= plain.plan.total
    assert str(fused.groups).splitlines() == [
        "call  computed together               bytes saved",
        "----  ------------------------------  -----------",
        "conv  conv + batch_norm + add + relu         4800",
    ]
    assert plain.groups.groups == {}
    assert str(plain.groups) == "every operator is a function of its own"


def test_a_residual_sum_goes_in_place_where_rows_go_to_workers_by_blocks() -> None:
    """Images of any width may have too few panels of columns for all workers: outputs go by blocks of as many."""
    g = Builder("wide")
    w = RNG.standard_normal((24, 24, 1, 1), np.float32)
    x = g.relu(g.input("x", tl.f32[1, 24, 4, tl.dim("w")]))
    f = g.function(g.exp(g.conv(g.add(g.conv(g.relu(g.conv(x, w)), w), x), w)))
    with patch.object(Tiling, "of", lambda target: replace(SMALL, rows=6, workers=2, block_tiles=128)):
        lowered = str((net := compile(f)).lowered)
    assert "range(i_outer, i_outer + 12, 6)" in lowered
    assert net.plan.in_place
    image = RNG.standard_normal((1, 24, 4, 9), np.float32)
    np.testing.assert_allclose(net(image), tl.graph.evaluate(f, image), rtol=1e-3)


def test_a_chain_is_one_loop() -> None:
    g = Builder("chain")
    n = tl.dim("n")
    x, y = g.input("x", tl.f32[n, 3]), g.input("y", tl.f32[3])
    z = g.multiply(g.add(x, y), y)
    z = g.multiply(z, g.sigmoid(z))
    f = g.function(g.cast(g.less(z, 1.0), tl.f32))
    fused, plain = same(f, RNG.standard_normal((7, 3), np.float32), RNG.standard_normal(3, np.float32))
    assert together(fused) == ["add + multiply + sigmoid + multiply + less + cast"]
    assert fused.plan.total == 0
    assert plain.plan_at(n=7).total > 0
    assert len(fused.ir.body.stmts) == 1


@pytest.mark.parametrize("dtype", [tl.f16, tl.f64, tl.i8, tl.i64])
def test_roundings_stay(dtype: tl.ir.DType) -> None:
    g = Builder("roundings")
    x, w, b = g.input("x", dtype[6, 9]), g.input("w", dtype[9, 20]), g.input("b", dtype[20])
    y = g.multiply(g.subtract(g.add(g.matmul(x, w), b), g.input("c", dtype[6, 1])), b)
    f = g.function(g.maximum(y, b))
    fused, _ = same(f)
    assert together(fused) == ["matmul + add + subtract + multiply + maximum"]


def test_groups_of_channels() -> None:
    g = Builder("grouped")
    x, w, b = g.input("x", tl.f32[3, 8, 6]), g.input("w", tl.f32[12, 2, 3]), g.input("b", tl.f32[12, 1])
    f = g.function(g.tanh(g.add(g.conv(x, w, groups=4), b)))
    fused, _ = same(f)
    assert together(fused) == ["conv + add + tanh"]


def test_groups_of_channels_of_any_number_of_images() -> None:
    g = Builder("grouped")
    n, m = tl.dims("n m")
    x, w, b = g.input("x", tl.f32[n, 8, m]), g.input("w", tl.f32[8, 1, 1]), g.input("b", tl.f32[8, 1])
    f = g.function(g.relu(g.add(g.conv(x, w, groups=8), b)))
    shapes = (3, 8, 5), (8, 1, 1), (8, 1)
    fused, _ = same(f, *(RNG.standard_normal(shape, np.float32) for shape in shapes))
    assert together(fused) == ["conv + add + relu"]


def test_what_repeats_over_batches_of_products_is_read_by_vectors() -> None:
    g = Builder("windows")
    a, b, bias = g.input("a", tl.f32[4, 3, 5, 6]), g.input("b", tl.f32[4, 3, 6, 24]), g.input("c", tl.f32[3, 5, 24])
    fused, _ = same(g.function(g.add(g.matmul(a, b), bias)))
    assert together(fused) == ["matmul + add"]
    (lowered,) = callees(fused.lowered)
    assert "tl.ramp(t % 3 * 120 + " in str(lowered)


def test_a_scalar_with_a_scale_of_one_element() -> None:
    g = Builder("scalar")
    x, scale = g.input("x", tl.f32[()]), np.array([0.05], np.float32)
    near = g.quantize_linear(g.clip(x, low=-1, high=1), scale, np.array([120], np.uint8), dtype=tl.u8)
    fused, _ = same(g.function(g.relu(g.dequantize_linear(near, scale, np.array([120], np.uint8)))))
    assert together(fused) == ["clip + quantize_linear + dequantize_linear + relu"]


def test_what_stays_alone_and_why() -> None:
    g = Builder("alone")
    x, w = g.input("x", tl.f32[4, 4]), g.input("w", tl.f32[4, 4])
    used = g.matmul(x, w)
    small = g.matmul(x, g.input("v", tl.f32[4, 1]))
    f = g.function([g.relu(used), g.exp(used), g.add(small, x), g.sqrt(x), g.abs(g.reshape(g.matmul(w, x), (2, 8)))])
    fused, _ = same(f)
    assert together(fused) == []
    assert why(fused) == [
        ("relu", "`matmul` is used more than once"),
        ("exp", "`matmul` is used more than once"),
        ("add", "`matmul` has another shape"),
        ("sqrt", "nothing here makes its operands"),
        ("abs", "`reshape` gives another view, several results, or those of a function"),
    ]


def test_the_operand_that_is_computed_last_takes_the_others_in() -> None:
    g = Builder("sum")
    x, w, v = g.input("x", tl.f32[4, 4]), g.input("w", tl.f32[4, 4]), g.input("v", tl.f32[4, 4])
    f = g.function(g.relu(g.add(g.matmul(x, w), g.matmul(x, v))))
    fused, plain = same(f)
    assert together(fused) == ["matmul + add + relu"]
    assert fused.plan.total <= plain.plan.total


def test_what_is_kept_exists() -> None:
    g = Builder("kept")
    x, w = g.input("x", tl.f32[4, 4]), g.input("w", tl.f32[4, 4])
    y = g.add(g.matmul(x, w), x)
    z = g.relu(y)
    f = g.function(g.exp(z))
    given = arrays(f)
    net = compile(f, keep=[y])
    assert together(net) == ["matmul + add", "relu + exp"]
    np.testing.assert_array_equal(net.trace(*given)[y], compile(f, keep="all").trace(*given)[y])
    assert together(compile(f, keep="all")) == []


def test_branches_and_loops() -> None:
    g = Builder("branches")
    x, c = g.input("x", tl.f32[4, 4]), g.input("c", tl.bool_)
    y = g.matmul(x, x)
    f = g.function(g.exp(g.if_(c, g.relu(g.add(g.matmul(x, y), y)), g.abs(g.tanh(y)))))
    for condition in (True, False):
        fused, _ = same(f, arrays(f)[0], np.array(condition))
    assert together(fused) == ["matmul + add + relu", "tanh + abs"]


def test_groups_are_told_by_a_later_process_too(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TIRLITE_CACHE", str(tmp_path))
    g = Builder("known")
    x, w = g.input("x", tl.f32[4, 4]), g.input("w", tl.f32[4, 4])
    f = g.function(g.relu(g.matmul(x, w)))
    for _ in range(2):
        assert together(compile(f)) == ["matmul + relu"]
        assert together(compile(f, fuse=False)) == []
    given = arrays(f)
    again = pickle.loads(pickle.dumps(compile(f)))
    np.testing.assert_array_equal(again(*given), compile(f)(*given))
