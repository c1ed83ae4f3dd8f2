"""What LLVM is told of aliases: enough that a rewritten chain vectorizes without checks, and nothing that is not so."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.codegen import lower, optimised

n = tl.dim("n")


@tl.kernel
def chain(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    a = tl.alloc(tl.f32[n])
    b = tl.alloc(tl.f32[n])
    c = tl.alloc(tl.f32[n])
    for i in range(n):
        a[i] = x[i] + 1
    for i in range(n):
        b[i] = a[i] * 2
    for i in range(n):
        c[i] = b[i] + a[i]
    for i in range(n):
        y[i] = c[i] * 3


def test_a_rewritten_chain_vectorizes_without_looking_at_addresses() -> None:
    for strategy in ("none", "share"):
        text = optimised(lower(tl.compile(chain, strategy=strategy).lowered)).llvm
        assert "fadd <" in text
        assert "memcheck" not in text


def notes(text: str) -> int:
    return lower(tl.parse(text)).text.count("!noalias")


HEADER = 'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: tl.f32[n], y: tl.f32[n]):\n    a = tl.alloc(tl.f32[4 * n])\n'


def test_views_proved_apart_are_told_apart() -> None:
    assert notes(
        HEADER
        + """
    b = tl.view(a, tl.f32[n])
    c = tl.view(a, tl.f32[n], byte_offset=4 * n)
    for i in range(n):
        c[i] = b[i]
"""
    )


def test_views_that_overlap_are_not() -> None:
    assert not notes(
        HEADER
        + """
    b = tl.view(a, tl.f32[n])
    c = tl.view(a, tl.f32[n], byte_offset=4)
    for i in range(n):
        c[i] = b[i]
"""
    )


def test_a_view_that_moves_with_a_loop_is_not_told_apart_from_its_neighbour() -> None:
    assert not notes(
        HEADER
        + """
    for k in range(3):
        b = tl.view(a, tl.f32[n], byte_offset=4 * n * k)
        c = tl.view(a, tl.f32[n], byte_offset=4 * n * (k + 1))
        for i in range(n):
            c[i] = b[i]
"""
    )


@tl.kernel
def carried(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for k in range(3):
        a = tl.alloc(tl.f32[n])
        for i in range(n):
            a[i] = x[i] + k
        b = tl.alloc(tl.f32[n])
        for i in range(n):
            b[i] = a[n - 1 - i]
        for i in range(n):
            y[i] = b[i]


def test_sharing_in_turn_gives_what_no_sharing_gives() -> None:
    x = np.arange(100, dtype=np.float32)
    for func in (chain, carried):
        assert np.array_equal(tl.compile(func, strategy="share")(x), tl.compile(func, strategy="none")(x))


def test_a_result_in_the_place_of_an_operand_goes_by_vectors() -> None:
    g = tl.graph.Builder("chain")
    x, y, scale = g.input("x", tl.f32[64, 48]), g.input("y", tl.f32[64, 48]), g.input("scale", tl.f32[48])
    first = g.matmul(x, g.transpose(y))
    made = g.multiply(g.add(g.matmul(first, x), y), scale)
    net = tl.graph.compile(g.function(g.matmul(made, g.transpose(made))), fuse=False)
    assert net.plan.in_place == (("sid_2", "sid_1"), ("sid_3", "sid_2"))
    rng = np.random.default_rng(3)
    given = [rng.standard_normal(param.shape, np.float32) for param in net.function.params]
    np.testing.assert_array_equal(net(*given), tl.graph.compile(net.function, fuse=False, in_place=False)(*given))
    assert "memcheck" not in optimised(lower(net.kernel.lowered)).llvm


def test_what_memory_decides_is_not_said_to_go_in_any_order() -> None:
    @tl.kernel
    def scattered(x: tl.f32[64], at: tl.i64[64], y: tl.out[tl.f32[64]]):
        for i in tl.parallel(64):
            y[at[i]] = x[i]

    assert "llvm.access.group" not in scattered.llvm
