"""Convolutions by fewer products: of weights that are made into terms once, with an error that stays small."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import tirlite as tl
from tirlite.graph import Builder, Function, compile, evaluate  # noqa: A004
from tirlite.graph.operators.laid_out import terms_of
from tirlite.ir.walk import statements_of
from tirlite.kernels.operators.winograd import pays, winograd

RNG = np.random.default_rng(0)
Array: TypeAlias = npt.NDArray[np.float32]
h, w = tl.dims("h w")


def layer(shape: tuple[int, ...], outputs: int, pad: int | tuple[int, ...] = 1) -> Function:
    return of_weights(shape, RNG.standard_normal((outputs, shape[1], 3, 3), np.float32), (), pad)


def of_weights(
    shape: tuple[int | tl.Dim, ...],
    weights: Array,
    bias: tuple[Array, ...],
    pad: int | tuple[int, ...],
    groups: int = 1,
) -> Function:
    g = Builder("layer")
    x = g.input("x", tl.f32[shape])
    return g.function({"y": g.relu(g.conv2d(x, g.constant(weights, name="w"), *bias, pad=pad, groups=groups))})


@pytest.mark.parametrize(
    ("shape", "outputs", "pad"),
    [
        ((1, 48, 28, 28), 60, 1),  # rows and outputs in whole tiles
        ((2, 40, 13, 15), 49, 1),  # results that end within a tile, and a block of one output
        ((1, 64, 19, 17), 36, (2, 0, 1, 2)),  # padding of each side
        ((3, 37, 30, 30), 64, 0),
    ],
)
def test_results_are_those_of_the_definition(shape: tuple[int, ...], outputs: int, pad: int | tuple[int, ...]) -> None:
    rng = np.random.default_rng(outputs)
    weights, bias = (rng.standard_normal(of, np.float32) for of in ((outputs, shape[1], 3, 3), outputs))
    function = of_weights(shape, weights, (bias,), pad)
    net = compile(function)
    assert "winograd_relu" in str(net.ir)
    x = rng.standard_normal(shape, np.float32)
    terms = evaluate(of_weights(shape, abs(weights), (abs(bias),), pad), abs(x))
    assert np.all(abs(net(x) - evaluate(function, x)) <= 8 * np.finfo(np.float32).eps * terms)


@pytest.mark.parametrize(
    ("shape", "outputs"),
    [
        ((1, 64, 28, 28), 64),  # as many groups as there are workers
        ((2, 80, 13, 15), 96),
        ((1, 192, 17, 9), 288),  # outputs of many blocks
        ((2, 64, h, w), 64),
        ((tl.dim("n"), 96, 14, 15), 96),
    ],
)
def test_groups_have_whole_blocks_of_outputs(shape: tuple[int | tl.Dim, ...], outputs: int) -> None:
    rng = np.random.default_rng(outputs)
    assert isinstance(shape[1], int)
    weights, bias = (rng.standard_normal(of, np.float32) for of in ((outputs, shape[1] // 2, 3, 3), outputs))
    net = compile(of_weights(shape, weights, (bias,), 1, groups=2))
    assert "winograd_relu" in str(net.ir)
    x = rng.standard_normal([each if isinstance(each, int) else 3 + at for at, each in enumerate(shape)], np.float32)
    known = of_weights(x.shape, weights, (bias,), 1, groups=2)
    terms = evaluate(of_weights(x.shape, abs(weights), (abs(bias),), 1, groups=2), abs(x))
    assert np.all(abs(net(x) - evaluate(known, x)) <= 8 * np.finfo(np.float32).eps * terms)


def test_groups_whose_outputs_are_no_whole_blocks_go_another_way() -> None:
    weights = RNG.standard_normal((100, 50, 3, 3), np.float32)
    assert "winograd" not in str(compile(of_weights((1, 100, 28, 28), weights, (), 1, groups=2)).ir)


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((1, 64, h, w), ((1, 1), (2, 63), (7, 7), (40, 131))),
        ((2, 40, 13, w), ((13, 4), (13, 62), (13, 1))),
        ((1, 200, h, 33), ((4, 33), (9, 33))),
    ],
)
def test_sizes_may_be_told_by_the_call(shape: tuple[int | tl.Dim, ...], sizes: tuple[tuple[int, int], ...]) -> None:
    weights, bias = RNG.standard_normal((49, shape[1], 3, 3), np.float32), RNG.standard_normal(49, np.float32)
    net = compile(of_weights(shape, weights, (bias,), 1))
    assert "winograd_relu" in str(net.ir)
    for size in sizes:
        x = RNG.standard_normal((*shape[:2], *size), np.float32)
        known = of_weights(x.shape, weights, (bias,), 1)
        terms = evaluate(of_weights(x.shape, abs(weights), (abs(bias),), 1), abs(x))
        assert np.all(abs(net(x) - evaluate(known, x)) <= 8 * np.finfo(np.float32).eps * terms)


@pytest.mark.parametrize("extents", [(5, 6), (h, w)])
def test_compiled_is_interpreted(extents: tuple[int | tl.Dim, ...]) -> None:
    types = tl.f32[1, 3, *extents], tl.f32[2, 16, 3, 12], None, tl.f32[1, 13, *extents]
    kernel = tl.compile(winograd(*types, pads=(1, 1, 1, 1)))
    x = RNG.standard_normal((1, 3, 5, 6), np.float32)
    w = terms_of(RNG.standard_normal((13, 3, 3, 3), np.float32))
    lowered = tl.compile(kernel.lowered, strategy="none", schedule=None)
    np.testing.assert_array_equal(kernel(x, w), lowered.interpret(x, w))
    checked = tl.compile(winograd(*types, pads=(1, 1, 1, 1)), debug=True)
    np.testing.assert_array_equal(checked(x, w), kernel(x, w))


def test_terms_of_many_channels_are_held_for_some_rows_at_a_time() -> None:
    net = compile(layer((1, 1024, 32, 32), 48))
    assert "winograd" in str(net.ir)
    assert net.plan.total < 16 * 1024 * 16 * 16 * 4


@pytest.mark.parametrize(("size", "channels", "pieces"), [(28, 64, [2]), (14, 128, [2]), (12, 64, [64, 6])])
def test_two_pieces_go_to_workers_whole(size: int, channels: int, pieces: list[int]) -> None:
    types = [tl.ir.TensorType(tl.f32, shape) for shape in ((1, channels, size, size), (6, 16, channels, 12))]
    made = winograd(types[0], types[1], None, tl.ir.TensorType(tl.f32, (1, 72, size, size)), pads=(1, 1, 1, 1))
    loops = [stmt for stmt in statements_of(made.body, tl.ir.For) if stmt.kind is tl.ir.ForKind.PARALLEL]
    assert [len(loop.values or ()) for loop in loops] == pieces


def test_only_what_pays_and_is_permitted_is_computed_so() -> None:
    assert pays(64, 64, (56, 56))
    assert not pays(3, 64, (224, 224))
    assert not pays(20, 20, (28, 28))
    assert not pays(64, 64, (1, 1))
    function = layer((1, 48, 28, 28), 48)
    assert "winograd" in str(compile(function).ir)
    assert "winograd" not in str(compile(function, winograd=False).ir)
    g = Builder("given")
    given = g.conv2d(g.input("x", tl.f32[1, 48, 28, 28]), g.input("w", tl.f32[48, 48, 3, 3]), pad=1)
    assert "winograd" not in str(compile(g.function(given)).ir)


def test_weights_are_laid_out_once_and_are_there_alone() -> None:
    g = Builder("twice")
    w = g.constant(RNG.standard_normal((48, 48, 3, 3), np.float32), name="w")
    x = g.input("x", tl.f32[1, 48, 28, 28])
    net = compile(g.function(g.conv2d(g.conv2d(x, w, pad=1), w, pad=1)))
    assert [param.name for param in net.ir.params] == ["x", "w_winograd", "output"]


@pytest.mark.parametrize("dtype", [tl.f32, tl.f16])
def test_other_processes_lay_the_weights_out_again(
    dtype: tl.DType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIRLITE_CACHE", str(tmp_path))
    g = Builder("layer")
    weights = RNG.standard_normal((48, 48, 3, 3), np.float32).astype(dtype.numpy)
    function = g.function(g.conv2d(g.input("x", dtype[1, 48, 28, 28]), g.constant(weights, name="w"), pad=1))
    x = RNG.standard_normal((1, 48, 28, 28), np.float32).astype(dtype.numpy)
    net = compile(function)
    wanted = net(x)
    monkeypatch.setattr("tirlite.graph.aot.lower.lower_program", None)
    for again in (compile(function), pickle.loads(pickle.dumps(net))):
        np.testing.assert_array_equal(again(x), wanted)
