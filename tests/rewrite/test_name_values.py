"""Local scalars that one block sets several times get a name for each value."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

import tirlite as tl
from tirlite.rewrite import NameValues, Normalize

n = tl.dim("n")


def named(body: str) -> str:
    func = tl.parse(
        "n = tl.dim('n')\n\n@tl.kernel\ndef f(x: tl.f32[n], y: tl.f32[n]):\n    for i in range(n):\n"
        + "".join(f"        {line}\n" for line in dedent(body).strip().splitlines())
    )
    lines = str(NameValues()(Normalize()(func))).split("for i in range(n):\n")[1]
    return dedent(lines).strip()


def test_each_value_gets_a_name() -> None:
    before = """
        v = x[i]
        v = v * 2
        if v > 1:
            y[i] = v
        v = v + y[i]
        y[i] = v
    """
    after = """
        v = x[i]
        v_1 = v * tl.f32(2.0)
        if v_1 > tl.f32(1.0):
            y[i] = v_1
        v_2 = v_1 + y[i]
        y[i] = v_2
    """
    assert named(before) == dedent(after).strip()


@pytest.mark.parametrize(
    "body",
    [
        "v = x[i]\nif v > 0:\n    v = v * 2\ny[i] = v",  # one of two values
        "v = x[i]\nfor _ in range(3):\n    v = v * 2\ny[i] = v",  # one for each iteration
        "v = tl.alloc(tl.f32[()])\ny[i] = v[()]\nv[()] = x[i]\nv[()] = v[()] + 1\ny[i] = v[()]",  # read first
        "v = tl.alloc(tl.f32[()])\nw = tl.view(v, tl.i32[()])\nv[()] = x[i]\nv[()] += 1\ny[i] = w[()]",  # has two names
    ],
)
def test_others_stay(body: str) -> None:
    assert "v[()] =" in named(body)


@tl.kernel
def interpolated(table: tl.f32[n], y: tl.f32[n], by: tl.f32):
    for i in range(n):
        at = tl.f32(i) * by
        first = min(tl.i32(at), tl.i32(n - 2))
        at = at - tl.f32(first)
        y[i] = table[first] * (1 - at) + table[first + 1] * at


def test_indices_computed_by_steps_go_by_vectors() -> None:
    table = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    y, wanted = np.zeros(100, np.float32), np.zeros(100, np.float32)
    interpolated(table, y, 0.7)
    interpolated.interpret(table, wanted, 0.7)
    np.testing.assert_array_equal(y, wanted)
    if tl.Target.host().processor.masks_gathers:
        assert "tl.ramp(" in str(interpolated.lowered)
