"""Text of functions, and structural equality."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl


def small(name: str = "n", alpha: float = 0.01, *, share: bool = True) -> tl.graph.Function:
    n = tl.dim(name, multiple_of=2)
    g = tl.graph.Builder("small")
    x, c = g.input("x", tl.f32[n, 3]), g.input("c", tl.bool_)
    y = g.leaky_relu(x, alpha)
    other = y if share else g.leaky_relu(x, alpha)
    half = g.reshape(g.multiply(y, np.array([1, 2, 3], np.float32)), [n // 2, 6])
    return g.function({"y": g.if_(c, g.flatten(g.add(y, other), 0), g.reshape(half, [1, -1]))})


def test_each_expression_has_a_line_with_its_type() -> None:
    assert (
        str(small())
        == """\
# n: multiple_of=2

def small(x: f32[n, 3], c: bool_[()]) -> f32[1, 3*n]:
    v0: f32[n, 3] = leaky_relu(x)
    v1: f32[3] = constant([1., 2., 3.])
    v2: f32[1, 3*n] = if c:
        v3: f32[n, 3] = add(v0, v0)
        v4: f32[1, 3*n] = reshape(v3, shape=(1, 3*n))
        yield v4
    else:
        v5: f32[n, 3] = multiply(v0, v1)
        v6: f32[n//2, 6] = reshape(v5, shape=(n//2, 6))
        v7: f32[1, 6*(n//2)] = reshape(v6, shape=(1, 6*(n//2)))
        yield v7
    return v2"""
    )


def test_functions_that_are_called_are_printed_first() -> None:
    inner = tl.graph.Builder("double")
    y = inner.input("y", tl.f32[4])
    double = inner.function(inner.add(y, y), primitive=True)
    g = tl.graph.Builder("outer")
    x = g.input("x", tl.f32[4])
    f = g.function([g.invoke(double, g.invoke(double, x)), g.let("kept", g.subtract(x, 1))])
    assert (
        str(f)
        == """\
primitive def double(y: f32[4]) -> f32[4]:
    v0: f32[4] = add(y, y)
    return v0

def outer(x: f32[4]) -> (f32[4], f32[4]):
    kept: f32[4] = subtract(x, f32(1.0))
    v0: f32[4] = double(x)
    v1: f32[4] = double(v0)
    v2: (f32[4], f32[4]) = (v1, kept)
    return v2"""
    )


def test_names_are_unique_and_devices_are_shown() -> None:
    g = tl.graph.Builder("named")
    with g.on(2):
        x = g.input("x", tl.f32[2])
        y = g.call("exp", g.call("exp", x, name="x"), name="x")
    assert (
        str(g.function(y))
        == """\
def named(x: f32[2] @ 2) -> f32[2]:
    x_0: f32[2] @ 2 = exp(x)
    x_1: f32[2] @ 2 = exp(x_0)
    return x_1"""
    )


def test_equal_up_to_the_names_of_dims() -> None:
    assert tl.graph.structural_equal(small("n"), small("m"))


@pytest.mark.parametrize("other", [small(alpha=0.02), small(share=False)])
def test_a_difference_is_named(other: tl.graph.Function) -> None:
    equality = tl.graph.structural_equal(small(), other)
    assert not equality
    assert "leaky_relu" in equality.difference


def test_constants_are_compared_bit_by_bit() -> None:
    def shifted(by: float) -> tl.graph.Function:
        g = tl.graph.Builder("shifted")
        return g.function(g.add(g.input("x", tl.f32[2]), by))

    assert tl.graph.structural_equal(shifted(1), shifted(1))
    assert not tl.graph.structural_equal(shifted(0.0), shifted(-0.0))


def test_a_zero_is_not_minus_zero() -> None:
    def padded(value: float) -> tl.graph.Function:
        g = tl.graph.Builder("padded")
        return g.function(g.pad(g.input("x", tl.f32[2]), [1], [0], value=value))

    assert "value" not in str(padded(0.0))
    assert "value=-0.0" in str(padded(-0.0))
    assert tl.graph.structural_equal(padded(-0.0), padded(-0.0))
    assert not tl.graph.structural_equal(padded(0.0), padded(-0.0))
