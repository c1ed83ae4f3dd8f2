"""Attributes about the variable of a loop: another spelling of thread-bound loops."""

from __future__ import annotations

from textwrap import indent

import pytest

import tirlite as tl

HEADER = 'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: tl.f32[n], y: tl.f32[n]):\n'


def parsed(body: str) -> tl.PrimFunc:
    return tl.parse(HEADER + indent(body, "    "))


@pytest.mark.parametrize(
    ("body", "same"),
    [
        (
            'for t in range(n):\n    with tl.attr(t, "thread_extent", "threadIdx.x"):\n        y[t] = x[t]',
            'for t in tl.thread("threadIdx.x", n):\n    y[t] = x[t]',
        ),
        (
            'for v in range(2):\n    with tl.attr(v, "virtual_thread"):\n        y[v] = x[v]',
            'for v in tl.thread("vthread", 2):\n    y[v] = x[v]',
        ),
        (
            'for b in range(n):\n    for t in range(8):\n        with tl.attr(b, "thread_extent", "blockIdx.x"):\n'
            '            with tl.attr(t, "thread_extent", "threadIdx.x"):\n                y[b] = x[t]',
            'for b in tl.thread("blockIdx.x", n):\n    for t in tl.thread("threadIdx.x", 8):\n        y[b] = x[t]',
        ),
    ],
)
def test_they_are_thread_bound_loops(body: str, same: str) -> None:
    func = parsed(body)
    assert str(func) == str(parsed(same))
    assert tl.structural_equal(tl.parse(str(func)), func)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('k = n // 2\nwith tl.attr(k, "virtual_thread"):\n    y[0] = 1', "the variable of a loop around"),
        ('for t in range(n):\n    with tl.attr(t, "thread_extent"):\n        y[t] = 1', "the tag of a thread"),
        (
            'for t in range(n):\n    with tl.attr(t, "double_buffer"):\n        y[t] = 1',
            "the keys about loops",
        ),
        ('for t in range(n):\n    with tl.attr(t, "virtual_thread", 3):\n        y[t] = 1', "nothing more"),
        (
            'for t in range(1, n):\n    with tl.attr(t, "virtual_thread"):\n        y[t] = 1',
            "does not start at",
        ),
    ],
)
def test_what_they_cannot_say(body: str, text: str) -> None:
    with pytest.raises(tl.KernelError, match=text):
        parsed(body)


@pytest.mark.parametrize(
    "statement",
    ['tl.barrier("Shared")', 'with tl.attr(x, "storage_scope", "Shared"):\n        x[0] = 1'],
)
def test_a_memory_that_there_is_none_of_is_answered_with_the_nearest(statement: str) -> None:
    with pytest.raises(tl.KernelError, match=r"no storage scope `Shared`\n(?s:.*)did you mean `shared`"):
        tl.parse(f'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: tl.f32[n]):\n    {statement}\n')
