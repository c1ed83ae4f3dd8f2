"""Kernels that call kernels and inline functions: what they become, and what is refused."""

from __future__ import annotations

import runpy

import numpy as np
import pytest

import tirlite as tl

n, m = tl.dims("n m")


def body_of(kernel: tl.Kernel) -> str:
    text = str(kernel.ir)
    return "\n".join(line[4:] for line in text[text.index("):\n") + 3 :].splitlines())


@tl.kernel
def double(x: tl.f32[n, m], y: tl.f32[n, m]):
    t = tl.alloc(tl.f32[m])
    for i in range(n):
        for j in range(m):
            t[j] = x[i, j] + x[i, j]
        for j in range(m):
            y[i, j] = t[j]


@tl.kernel
def add(x: tl.f32[n], y: tl.f32[n], a: tl.f32, total: tl.f32[n]):
    for i in range(n):
        total[i] = x[i] + y[i] * a


@tl.inline
def relu(value, low=0):
    """At least `low`."""
    return max(value, low)


@tl.inline
def total_of(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total


@tl.inline
def quotient(a, b):
    q = a // b
    return q, a - q * b


@tl.inline
def power(x, k):
    if tl.static(k == 0):
        return 1
    else:
        return x * power(x, tl.static(k - 1))


def test_a_kernel_calls_a_kernel_on_buffers_of_its_own() -> None:
    @tl.kernel
    def quadruple(x: tl.f32[m, n], y: tl.out[tl.f32[m, n]]):
        twice = tl.alloc(tl.f32[m, n])
        double(x, twice)
        double(x=twice, y=y)

    assert body_of(quadruple) == (
        "twice = tl.alloc(tl.f32[m, n])\n"
        "t = tl.alloc(tl.f32[n])\n"
        "for i in range(m):\n"
        "    for j in range(n):\n"
        "        t[j] = x[i, j] + x[i, j]\n"
        "    for j in range(n):\n"
        "        twice[i, j] = t[j]\n"
        "t_1 = tl.alloc(tl.f32[n])\n"
        "for i in range(m):\n"
        "    for j in range(n):\n"
        "        t_1[j] = twice[i, j] + twice[i, j]\n"
        "    for j in range(n):\n"
        "        y[i, j] = t_1[j]"
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(quadruple(x), 4 * x)
    np.testing.assert_array_equal(quadruple.interpret(x), 4 * x)


def test_sizes_that_a_callee_reads_are_those_of_its_arguments_and_its_own_buffers() -> None:
    @tl.kernel
    def corner(x: tl.i64[n], y: tl.i64[n]):
        size = tl.alloc(tl.i64[1])
        size[0] = x[0] + 1
        rows = tl.alloc(tl.i64[size[0], x[0]])
        for i in range(size[0]):
            for j in range(x[0]):
                rows[i, j] = 10 * i + j
        y[0] = rows[2, 1]

    @tl.kernel
    def outer(a: tl.i64[n], b: tl.i64[n]):
        corner(a, b)

    a, b = np.array([2]), np.array([0])
    outer(a, b)
    assert b[0] == 21


def test_the_storage_of_callees_is_planned_together() -> None:
    @tl.kernel
    def quadruple(x: tl.f32[m, n], y: tl.out[tl.f32[m, n]]):
        twice = tl.alloc(tl.f32[m, n])
        double(x, twice)
        double(twice, y)

    assert str(tl.compile(quadruple, strategy="none").plan.total) == "4*m*n + 8*n"
    assert str(tl.compile(quadruple, strategy="share").plan.total) == "4*m*n + 4*n"


def test_scalars_are_cast_and_computed_once() -> None:
    @tl.kernel
    def kernel(x: tl.f32[n], y: tl.f32[n]):
        add(x, x, 2, y)
        add(x, x, x[0] * 2, y)

    assert body_of(kernel).startswith(
        "for i in range(n):\n    y[i] = x[i] + x[i] * tl.f32(2.0)\na = x[0] * tl.f32(2.0)"
    )


def test_shapes_that_may_differ_are_checked_when_the_kernel_runs() -> None:
    @tl.kernel
    def kernel(x: tl.f32[n], y: tl.f32[m], total: tl.out[tl.f32[n]]):
        add(x, y, 1, total)

    assert body_of(kernel).startswith(
        'assert m == n, "axis 0 of `y` of add takes n by the other arguments, not m"\nfor'
    )
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(kernel(x, x), x + x)
    with pytest.raises(tl.KernelAssertionError, match="axis 0 of `y` of add"):
        kernel(x, np.ones(4, np.float32))


def test_facts_of_dims_are_proved_or_checked() -> None:
    fours = tl.dim("fours", multiple_of=4, max=64)

    @tl.kernel
    def step(x: tl.f32[fours]):
        for i in range(0, fours, 4):
            x[i] = 0

    @tl.kernel
    def proved(x: tl.f32[8]):
        step(x)

    @tl.kernel
    def checked(x: tl.f32[n]):
        step(x)

    assert body_of(proved).startswith("for")
    assert body_of(checked).startswith(
        'assert n <= 64, "axis 0 of `x` of step takes at most 64, not n"\n'
        'assert n % 4 == 0, "axis 0 of `x` of step takes a multiple of 4, not n"\n'
    )
    with pytest.raises(tl.KernelError, match="takes a multiple of 4, not 6"):

        @tl.kernel
        def refused(x: tl.f32[6]):
            step(x)


@pytest.mark.parametrize("call", ["differences(x, y)", "tl.call(differences, x, y)"])
def test_an_extent_that_is_a_multiple_plus_a_constant_tells_a_dim_of_the_callee(call: str, tmp_path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(
        "import tirlite as tl\n"
        "n, m = tl.dims('n m')\n"
        "@tl.kernel\n"
        "def differences(x: tl.f32[2 * n + 1], y: tl.f32[2 * n]):\n"
        "    for i in range(2 * n):\n"
        "        y[i] = x[i + 1] - x[i] + n\n"
        "@tl.kernel\n"
        "def caller(x: tl.f32[n], y: tl.f32[m]):\n"
        f"    {call}\n"
    )
    caller = runpy.run_path(str(path))["caller"]
    squares = np.arange(9, dtype=np.float32) ** 2
    for run in (tl.compile(caller), tl.compile(caller, debug=True), caller.interpret):
        y = np.empty(8, np.float32)
        run(squares, y)
        assert y.tolist() == [5, 7, 9, 11, 13, 15, 17, 19]
        run(squares[:1], y[:0])
        for x_size, y_size, wrong in [(8, 7, "axis 0 of `[xy]`"), (9, 6, "axis 0 of `y`"), (0, 0, "axis 0 of `x`")]:
            with pytest.raises(tl.KernelRunError, match=f"{wrong} of differences takes"):
                run(squares[:x_size], y[:y_size])


def test_an_inline_function_of_one_expression_stands_anywhere() -> None:
    @tl.kernel
    def kernel(x: tl.f32[n], y: tl.f32[n]):
        y[0] = relu(x[0]) + relu(3, low=-1)
        y[1] = relu(x[1], 2) if x[0] > 0 else relu(1)

    assert body_of(kernel) == (
        "value = x[0]\n"
        "y[0] = max(value, tl.f32(0.0)) + tl.f32(3.0)\n"
        "y[1] = tl.let(value_1, x[1], max(value_1, tl.f32(2.0))) if x[0] > tl.f32(0.0) else tl.f32(1.0)"
    )


def test_statements_of_an_inline_function_come_before_that_of_the_call() -> None:
    @tl.kernel
    def kernel(x: tl.f32[n], y: tl.f64[m]):
        y[0] = total_of(x) / 2 + total_of(y)

    assert body_of(kernel) == (
        'total = tl.alloc(tl.f32[()], scope="local")\n'
        "total[()] = tl.f32(0.0)\n"
        "for i in range(n):\n"
        "    total[()] = total[()] + x[i]\n"
        'total_1 = tl.alloc(tl.f64[()], scope="local")\n'
        "total_1[()] = 0.0\n"
        "for i in range(m):\n"
        "    total_1[()] = total_1[()] + y[i]\n"
        "y[0] = tl.f64(total[()] / tl.f32(2.0)) + total_1[()]"
    )


def test_an_inline_function_may_give_several_values() -> None:
    @tl.kernel
    def kernel(x: tl.i32[n]):
        q, x[1] = quotient(x[0], 3)
        x[0], x[2] = quotient(q, x[0])

    x = np.array([17, 0, 0], np.int32)
    kernel(x)
    np.testing.assert_array_equal(x, [0, 2, 5])


def test_all_values_are_computed_before_the_first_is_stored() -> None:
    @tl.inline
    def swapped(x):
        return x[1], x[0]

    @tl.kernel
    def kernel(x: tl.f32[2]):
        x[0], x[1] = swapped(x)

    x = np.array([1, 2], np.float32)
    kernel(x)
    np.testing.assert_array_equal(x, [2, 1])


def test_recursion_ends_by_a_static_condition() -> None:
    @tl.kernel
    def kernel(x: tl.f32[n]):
        x[0] = power(x[0], 3)

    x = np.array([3], np.float32)
    kernel(x)
    assert x[0] == 27


def test_arguments_are_values_and_not_texts() -> None:
    @tl.inline
    def clear_first(x, value):
        x[0] = 0
        x[1] = value

    @tl.kernel
    def kernel(x: tl.f32[2]):
        clear_first(x, x[0])

    x = np.array([7, 2], np.float32)
    kernel(x)
    np.testing.assert_array_equal(x, [0, 7])


def test_functions_and_types_are_arguments_too() -> None:
    @tl.inline
    def apply(function, x, i, kind):
        return kind(function(x[i]))

    @tl.kernel
    def kernel(x: tl.f32[n]):
        x[0] = apply(relu, x, 1, tl.i32)
        x[1] = apply(tl.sqrt, x, 2, tl.f64)

    assert body_of(kernel) == (
        "value = x[1]\nx[0] = tl.f32(tl.i32(max(value, tl.f32(0.0))))\nx[1] = tl.f32(tl.f64(tl.sqrt(x[2])))"
    )


def test_an_annotation_casts_an_argument() -> None:
    @tl.inline
    def half(value: tl.f32):
        return value / 2

    @tl.kernel
    def kernel(x: tl.f32[n], k: tl.i64):
        x[0] = half(k) + half(3)

    assert body_of(kernel) == "value = tl.f32(k)\nx[0] = value / tl.f32(2.0) + tl.f32(3.0) / tl.f32(2.0)"


def test_an_inline_function_runs_in_python_too() -> None:
    assert relu(-3.0) == 0
    assert quotient(17, 5) == (3, 2)


def test_mistakes_in_an_inline_function_show_the_call_as_well() -> None:
    @tl.inline
    def wrong(x):
        return x + missing

    with pytest.raises(tl.KernelError) as caught:

        @tl.kernel
        def kernel(x: tl.f32[n]):
            x[0] = wrong(x[0])
            x[1] = wrong(x[1])

    assert [message.code for message in caught.value.messages] == ["unknown-name"]
    assert "return x + missing" in str(caught.value)
    assert "x[0] = wrong(x[0])" in str(caught.value)


def refused(body: str, folder) -> str:
    source = f"@tl.kernel\ndef f(x: tl.f32[n], y: tl.f32[n], z: tl.f64[n]):\n    {body}\n"
    file = folder / "kernel.py"
    file.write_text(source, "utf-8")
    with pytest.raises(tl.KernelError) as caught:
        exec(compile(source, str(file), "exec"), {**globals()})
    return caught.value.code


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("add(x, y, 1)", "call-arguments"),
        ("add(x, y, 1, x, y)", "call-arguments"),
        ("add(x, y, 1, x=x)", "call-arguments"),
        ("add(x, y, 1, tota=x)", "call-arguments"),
        ("add(x, z, 1, y)", "call-buffer"),
        ("add(x, 3, 1, y)", "call-buffer"),
        ("add(x, y, x, y)", "not-a-number"),
        ("add(x, y, 1, x)", "call-alias"),
        ("add(x, y, 1, tl.f32)", "call-buffer"),
        ("x[0] = double(x, y)", "call-buffer"),
        ("x[0] = add(x, x, 1, y)", "not-a-number"),
        ("x[0] = relu()", "call-arguments"),
        ("x[0] = quotient(1, 2)", "not-a-number"),
        ("a, b = quotient(x[0], 2), 3", "second-name"),
        ("a = quotient(x[0], 2)", "second-name"),
        ("a, b, c = quotient(x[0], 2)", "unpacking"),
        ("a, b = relu(x[0])", "unpacking"),
        ("while total_of(x) > 0: pass", "conditional-call"),
        ('assert x[0] > 0, f"{total_of(x)}"', "conditional-call"),
        ("x[0] = relu", "not-a-number"),
        ("double", "no-effect"),
        ("if x[0] > 0 and total_of(x) > 0: pass", "conditional-call"),
    ],
)
def test_calls_that_do_not_fit_are_refused(body: str, code: str, tmp_path) -> None:
    assert refused(body, tmp_path) == code
