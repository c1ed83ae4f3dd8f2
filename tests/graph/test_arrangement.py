"""Operators that move elements: their types and values, next to what NumPy's own indexing gives."""

from __future__ import annotations

import re

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.graph import Builder, compile, evaluate  # noqa: A004

X = np.arange(2 * 3 * 4, dtype=np.int32).reshape(2, 3, 4)

MOVES = {
    "reshape": (lambda g, x: g.reshape(x, [3, -1]), X.reshape(3, 8)),
    "flatten": (lambda g, x: g.flatten(x, 2), X.reshape(6, 4)),
    "unsqueeze": (lambda g, x: g.unsqueeze(x, (0, -1)), X[None, ..., None]),
    "squeeze": (lambda g, x: g.squeeze(g.expand_dims(x, 1), 1), X),
    "transpose": (lambda g, x: g.transpose(x, (2, 0, -2)), X.transpose(2, 0, 1)),
    "reversed axes": (lambda g, x: g.transpose(x), X.T),
    "broadcast_to": (lambda g, x: g.broadcast_to(x, [5, 2, 3, 4]), np.broadcast_to(X, (5, 2, 3, 4))),
    "tile": (lambda g, x: g.tile(x, [1, 2, 3]), np.tile(X, (1, 2, 3))),
    "concat": (lambda g, x: g.concat([x, x], axis=-1), np.concatenate([X, X], -1)),
    "gather": (lambda g, x: g.gather(x, np.array([[2, 0], [-1, 1]]), axis=1), np.take(X, [[2, 0], [-1, 1]], 1)),
    "slice": (lambda g, x: g.slice(x, [1, 0], [None, -1]), X[1:, 0:-1]),
    "steps": (lambda g, x: g.slice(x, [3, None], [0, None], [2, 1], [-2, -1]), X[:, ::-1, 3:0:-2]),
    "beyond": (lambda g, x: g.slice(x, [-99, 1], [99, 2**63 - 1]), X[:, 1:]),
    "empty": (lambda g, x: g.slice(x, [2], [1]), X[2:1]),
    "pad": (lambda g, x: g.pad(x, [0, 1, 0], [1, 0, 2]), np.pad(X, [(0, 1), (1, 0), (0, 2)])),
    "value": (lambda g, x: g.pad(x, [0, 0, 1], value=7), np.pad(X, [(0, 0), (0, 0), (1, 1)], constant_values=7)),
    "reflect": (lambda g, x: g.pad(x, [0, 2, 1], mode="reflect"), np.pad(X, [(0, 0), (2, 2), (1, 1)], mode="reflect")),
}  # fmt: skip


@every("move", MOVES)
def test_moves(move: str) -> None:
    build, wanted = MOVES[move]
    g = Builder("moves")
    result = build(g, g.input("x", tl.i32[X.shape]))
    np.testing.assert_array_equal(evaluate(g.function(result), X), wanted)
    assert result.shape == wanted.shape


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize("columns", [40, 300])
def test_what_pads_surround_is_copied_by_rows(mode: str, columns: int) -> None:
    g = Builder("padded")
    x, value = g.input("x", tl.f32[3, 40, columns]), np.arange(120.0 * columns, dtype=np.float32)
    net, value = compile(g.function(g.pad(x, [0, 2, 3], mode=mode))), value.reshape(3, 40, columns)
    assert mode == "wrap" or not re.search(r"at2\w* (%|>=|<=)|max\(at2", str(net.lowered))
    np.testing.assert_array_equal(net(value), np.pad(value, [(0, 0), (2, 2), (3, 3)], mode=mode))  # type: ignore[call-overload]


def test_split_gives_the_parts() -> None:
    g = Builder("parts")
    x = g.input("x", tl.i32[X.shape])
    parts = [*g.split(x, [1, 3], axis=2), *g.split(x, 2, axis=1)]
    assert [part.shape for part in parts] == [(2, 3, 1), (2, 3, 3), (2, 2, 4), (2, 1, 4)]
    for part, wanted in zip(evaluate(g.function(parts), X), [X[..., :1], X[..., 1:], X[:, :2], X[:, 2:]], strict=True):
        np.testing.assert_array_equal(part, wanted)


def test_symbolic_shapes_come_out_simplified() -> None:
    n, h = tl.dims("n h")
    g = Builder("symbolic")
    x = g.input("x", tl.f32[n, 4, h, h])
    shown = [
        g.reshape(x, [n, 2, -1]),
        g.slice(x, [1], [-1], [1]),
        g.split(g.concat([x, x]), 2)[1],
        g.slice(x, [None], [5], [2]),
        g.pad(x, [0, 0, 1, 1]),
    ]
    assert [str(each.type) for each in shown] == [
        "f32[n, 2, 2*h*h]",
        "f32[n, 2, h, h]",
        "f32[n, 4, h, h]",
        "f32[n, 4, min(h, 5), h]",
        "f32[n, 4, h + 2, h + 2]",
    ]


@every(
    "build, code",
    [
        (lambda g, x, n: g.reshape(x, [n, 5]), "graph-shape-mismatch"),
        (lambda g, x, n: g.reshape(x, [12]), "graph-shape-undecided"),
        (lambda g, x, n: g.transpose(x, [0, 0]), "graph-bad-attribute"),
        (lambda g, x, n: g.concat([x, g.transpose(x)]), "graph-shape-undecided"),
        (lambda g, x, n: g.split(x, [1, 1], axis=1), "graph-bad-attribute"),
        (lambda g, x, n: g.gather(x, x), "graph-operand-type"),
        (lambda g, x, n: g.pad(x, [1]), "graph-bad-attribute"),
        (lambda g, x, n: g.reduce_sum(x, 2), "graph-bad-attribute"),
        (lambda g, x, n: g.softmax(g.cast(x, tl.i32)), "graph-operand-type"),
        (lambda g, x, n: g.conv2d(x, x), "graph-shape-mismatch"),
        (lambda g, x, n: g.matmul(x, g.transpose(g.reshape(x, [4, n]))), "graph-shape-undecided"),
        (lambda g, x, n: g.slice(x, [0], [1], [1], [0]), "graph-bad-attribute"),
        (lambda g, x, n: g.cast(g.input("h", tl.ir.handle[1]), tl.f32), "graph-operand-type"),
    ],
)
def test_what_cannot_be_is_refused(build, code) -> None:
    n = tl.dim("n")
    g = Builder("wrong")
    with pytest.raises(tl.GraphError) as caught:
        build(g, g.input("x", tl.f32[n, 4]), n)
    assert caught.value.code == code
    assert "test_arrangement.py:" in str(caught.value)
