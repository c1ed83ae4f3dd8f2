"""What is settled before a kernel runs: tl.static, loops that are written out, constants from around a kernel."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tirlite as tl

n = tl.dim("n")
TAPS = (0.25, 0.5, 0.25)
TABLE = {"near": 1, "far": [2, 3]}
SCALE = np.float32(0.5)
WIDE = True
# More digits than Python writes.
GIANT = 10**5000


def body_of(kernel: tl.Kernel) -> str:
    """The statements of a kernel of two lines' header, unindented."""
    return "\n".join(line[4:] for line in str(kernel.ir).splitlines()[4:])


def test_a_loop_over_static_is_written_out() -> None:
    @tl.kernel
    def blur(x: tl.f32[n], y: tl.f32[n]):
        for k in tl.static(range(3)):
            y[1] += x[k] * TAPS[k]

    assert body_of(blur) == (
        "y[1] = y[1] + x[0] * tl.f32(0.25)\ny[1] = y[1] + x[1] * tl.f32(0.5)\ny[1] = y[1] + x[2] * tl.f32(0.25)"
    )


def test_a_loop_over_literals_needs_no_word() -> None:
    @tl.kernel
    def around(x: tl.f32[n], y: tl.f32[n]):
        for step in (-1, 1):
            for tap, at in [(0.5, 3), (2, 4)]:
                y[at] += x[4 + step] * tap

    assert body_of(around) == (
        "y[3] = y[3] + x[3] * tl.f32(0.5)\ny[4] = y[4] + x[3] * tl.f32(2.0)\n"
        "y[3] = y[3] + x[5] * tl.f32(0.5)\ny[4] = y[4] + x[5] * tl.f32(2.0)"
    )


def test_a_loop_over_a_tuple_needs_no_word_and_unpacks() -> None:
    @tl.kernel
    def sums(x: tl.f32[n], y: tl.f32[n]):
        for tap in TAPS:
            y[0] += tap
        for i, tap in tl.static(list(enumerate(TAPS))[1:]):
            y[i] = tap

    assert body_of(sums) == (
        "y[0] = y[0] + tl.f32(0.25)\ny[0] = y[0] + tl.f32(0.5)\ny[0] = y[0] + tl.f32(0.25)\n"
        "y[1] = tl.f32(0.5)\ny[2] = tl.f32(0.25)"
    )


def test_python_computes_what_is_static() -> None:
    @tl.kernel
    def numbers(x: tl.f32[4], y: tl.f32[n]):
        last = tl.static(x.shape[0] - 1)
        y[last] = tl.static(sum(t * t for t in TAPS)) + tl.static(TABLE["far"][1])
        for k in tl.static(range(last, last + 1)):
            y[k] = tl.static(math.comb(k, 2))

    assert body_of(numbers) == "y[3] = tl.f32(3.375)\ny[3] = tl.f32(3.0)"


def test_a_static_condition_leaves_one_branch() -> None:
    @tl.kernel
    def choose(x: tl.f32[n], y: tl.f32[n]):
        if tl.static(WIDE):
            width = 3
        else:
            width = 1
        if tl.static(not WIDE):
            y[0] = 1
        elif tl.static(len(TAPS) == 3):
            y[1] = x[width]

    assert body_of(choose) == 'width = tl.alloc(tl.i64[()], scope="local")\nwidth[()] = 3\ny[1] = x[width[()]]'


def test_a_name_from_a_written_out_loop_is_there_after_it() -> None:
    @tl.kernel
    def largest(x: tl.f32[n], y: tl.f32[n]):
        for k in tl.static(range(2)):
            t = x[k] * 2
            if tl.static(k == 0):
                best = t
            else:
                best = max(best, t)
        y[0] = best

    x, y = np.array([3, 5], np.float32), np.zeros(2, np.float32)
    with pytest.raises(tl.KernelError, match="possibly-unassigned"):
        largest_of_none()
    largest(x, y)
    assert y[0] == 10


def largest_of_none() -> None:
    @tl.kernel
    def largest(x: tl.f32[n], y: tl.f32[n]):
        for k in tl.static(range(0)):
            best = x[k]
        y[0] = best


def test_captures_are_the_constants_that_went_in() -> None:
    offset, unused = 3, 4

    @tl.inline
    def scaled(value):
        return value * SCALE

    @tl.kernel
    def kernel(x: tl.f32[n], y: tl.f32[n]):
        for k in tl.static(range(offset)):
            y[k] = scaled(x[k]) * TAPS[0] + math.pi

    assert dict(kernel.captures) == {"offset": 3, "scaled.SCALE": SCALE, "TAPS": TAPS, "math.pi": math.pi}
    assert tl.compile(kernel, strategy="none").captures == kernel.captures
    with pytest.raises(TypeError):
        kernel.captures["offset"] = 5


def test_constants_of_annotations_are_captured_too() -> None:
    size = 16

    @tl.kernel
    def kernel(x: tl.f32[size]):
        x[0] = 1

    assert dict(kernel.captures) == {"size": 16}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("for k in tl.static(range(n)): pass", "static-failed"),
        ("for k in tl.static(range(5000)): pass", "static-loop"),
        ("for a, b in tl.static([1, 2]): pass", "unpacking"),
        ("x[0] = tl.static(missing)", "unknown-name"),
        ("x[0] = tl.static(1, 2)", "not-in-kernels"),
        ("x[0] = tl.static(None)", "foreign-value"),
        ("if tl.static(n): pass", "not-static"),
        ("x[0] = tl.static([1])", "not-a-number"),
        ("for k in tl.static(range(10**5000)): pass", "static-loop"),
        ("x[0] = GIANT", "constant-range"),
        ("x[GIANT] = 0", "constant-range"),
        ("x[0] = 1e39 * x[0]", "constant-range"),
        ("x[0] = tl.f16(70000)", "constant-range"),
        ("x[x.shape[GIANT]] = 0", "no-such-extent"),
        ("for i in range(0, n, GIANT): x[i] = 0", "bad-step"),
        ("t = tl.alloc(tl.f32[GIANT])\n    t[0] = 0", "bad-shape"),
        ("x[0] = TAPS", "not-a-number"),
        ("x[0] = TAPS[0.5]", "tuple-index"),
        ("for k in tl.static(range(2)): k = 1", "fixed-name"),
        ("for k in tl.static(range(2)): pass\n    x[k] = 0", "out-of-block"),
    ],
)
def test_what_is_not_static_is_refused(body: str, code: str, tmp_path) -> None:
    assert refused(f"@tl.kernel\ndef f(x: tl.f32[n]):\n    {body}\n", tmp_path) == code


def refused(source: str, folder) -> str:
    """The code of the message that a file with this kernel fails with."""
    file = folder / "kernel.py"
    file.write_text(source, "utf-8")
    with pytest.raises(tl.KernelError) as caught:
        exec(compile(source, str(file), "exec"), {"tl": tl, "n": n, "TAPS": TAPS, "GIANT": GIANT})
    return caught.value.code


def test_text_is_read_and_not_evaluated() -> None:
    with pytest.raises(tl.KernelError, match="nothing in it is executed"):
        tl.parse('@tl.kernel\ndef f(x: tl.f32[3]):\n    x[0] = tl.static(__import__("os").getpid())')


def test_text_may_be_indented() -> None:
    func = tl.parse(
        """
        n = tl.dim("n")
        @tl.kernel
        def f(x: tl.f32[n]):
            x[0] = 1
        """
    )
    assert func.body.stmts[0].span.column == 12
    with pytest.raises(tl.KernelError) as caught:
        tl.parse("\n    @tl.kernel\n    def f(x: tl.f32[4]):\n        x[0] = z\n")
    assert "<text>:4:16" in str(caught.value)


def test_a_choice_by_a_static_condition_is_one_of_its_values_and_nothing_of_the_other() -> None:
    @tl.kernel
    def some(x: tl.f32[n], y: tl.f32[n]):
        for i in range(n if tl.static(len(TAPS) > 1) else TAPS[99]):
            y[i] = x[i] if tl.static(not TAPS) else 2 * x[i]

    @tl.kernel
    def same(x: tl.f32[n], y: tl.f32[n]):
        for i in range(n):
            y[i] = 2 * x[i]

    assert str(some.ir).replace("some", "same") == str(same.ir)
