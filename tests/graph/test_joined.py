"""Concatenations: their parts are computed in the storage of the result, where no more is live for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tirlite as tl
from tirlite.graph import Builder, Function, compile, evaluate  # noqa: A004
from tirlite.graph.builder.calls import Operand

RNG = np.random.default_rng(0)


def conv(g: Builder, x: Operand, inputs: int, outputs: int) -> Operand:
    return g.relu(g.conv2d(x, g.constant(RNG.standard_normal((outputs, inputs, 3, 3), np.float32)), pad=1))


def dense_block() -> Function:
    """Each layer looks at what all before have made."""
    g = Builder("dense")
    x = g.input("x", tl.f32[1, 16, 8, 8])
    made: Operand = conv(g, x, 16, 16)
    for inputs in (16, 32, 48):
        made = g.concat([made, conv(g, made, inputs, 16)], 1)
    return g.function({"y": conv(g, made, 64, 4)})


def partly() -> Function:
    """A tensor that is seen in another shape, a parameter, and one that begins within a line."""
    g = Builder("partly")
    x = g.input("x", tl.f32[1, 3, 5, 5])
    seen = g.reshape(g.reshape(conv(g, x, 3, 16), (1, 4, 10, 10)), (1, 16, 5, 5))
    return g.function({"y": conv(g, g.concat([seen, x, conv(g, x, 3, 4), x], 1), 26, 4)})


def along_rows() -> Function:
    """Parts that do not lie one behind the other."""
    g = Builder("rows")
    x = g.input("x", tl.f32[2, 8, 8, 8])
    return g.function({"y": conv(g, g.concat([conv(g, x, 8, 8), conv(g, x, 8, 8)], 1), 16, 4)})


def kept_for_long() -> Function:
    """One part is there long before the other: in the place of both the whole would live beside what is largest."""
    g = Builder("skip")
    x = g.input("x", tl.f32[1, 16, 8, 8])
    early = conv(g, x, 16, 16)
    inner = conv(g, conv(g, conv(g, early, 16, 64), 64, 64), 64, 2)
    return g.function({"y": conv(g, g.concat([early, g.concat([inner] * 8, 1)], 1), 32, 1)})


@pytest.mark.parametrize("network", [dense_block, partly, along_rows, kept_for_long])
def test_results_are_the_same_and_plans_at_their_bound(network: Callable[[], Function]) -> None:
    function = network()
    net = compile(function)
    x = RNG.standard_normal([int(each) for each in function.params[0].tensor.shape], np.float32)
    np.testing.assert_allclose(net(x), evaluate(function, x), 1e-4, 1e-4)
    assert net.plan.total == net.plan.lower_bound


def test_a_block_of_dense_layers_copies_nothing() -> None:
    text = str(compile(dense_block()).ir)
    assert "concat" not in text
    assert "identity" not in text
    # The result of the last one holds all others.
    assert text.count("tl.alloc(tl.f32[1, 64, 8, 8])") == 1
    assert "tl.alloc(tl.f32[1, 32, 8, 8])" not in text


def test_what_cannot_be_computed_in_place_is_copied() -> None:
    text = str(compile(partly()).ir)
    assert text.count("tl.call(identity") == 3
    assert "tl.call(concat" in str(compile(along_rows()).ir)
    assert str(compile(kept_for_long()).ir).count("tl.call(concat") == 2
