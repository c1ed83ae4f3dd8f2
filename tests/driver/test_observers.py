"""Observers see the program after each pass."""

from __future__ import annotations

from io import StringIO

import tirlite as tl

n = tl.dim("n")


def printed(*names: str) -> str:
    file = StringIO()

    @tl.kernel(observers=[tl.passes.PrintAfter(names, file)])
    def doubled(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = x[i] * 2

    assert str(doubled.lowered)
    return file.getvalue()


def test_the_program_is_printed_after_passes_with_these_names() -> None:
    text = printed("storage-rewrite")
    assert text.count("def doubled") == 1
    assert "storage-rewrite" in text.splitlines()[0]


def test_it_is_printed_after_each_pass_where_none_is_named() -> None:
    assert printed().count("def doubled") > 5
