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
