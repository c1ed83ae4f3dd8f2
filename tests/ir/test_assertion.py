"""What a failed assert tells: its own values, and those that its condition compared."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.ir import LT, Assert, IntImm, Var, bool_, f32, f64, failure, i64, shown, u64, validate
from tirlite.ir.builder import Builder
from tirlite.ir.checked import ELSE_IN_ORDER, ELSE_IN_THE_OTHER

n = tl.dim("n")


@tl.kernel
def positive(x: tl.f32[n], low: tl.i64, y: tl.out[tl.f32[n]]):
    for i in range(low, n):
        assert x[i] > 0, "x must be positive"
        y[i] = tl.sqrt(x[i])


def message(run, *arguments) -> str:
    with pytest.raises(tl.KernelAssertionError) as caught:
        run(*arguments)
    return str(caught.value).splitlines()[0]


def both(kernel: tl.Kernel, *arguments) -> str:
    told = message(kernel, *arguments)
    assert told == message(kernel.interpret, *arguments)
    return told.removeprefix("error[assert-failed]: assertion failed: ")


def test_the_values_of_the_condition_are_shown() -> None:
    x = np.array([4, 1.5, -0.1, 9], np.float32)
    assert both(positive, x, 0) == "x must be positive (x[i] = -0.1, i = 2)"
    np.testing.assert_array_equal(positive(x, 3)[3:], [3])


def test_what_names_another_version_of_a_function_shows_no_values() -> None:
    """Calls that break it are served by that version, each of them, and no one reads a message."""
    for text in (ELSE_IN_ORDER, ELSE_IN_THE_OTHER):
        assert shown(Assert(LT(Var("k", i64), IntImm(i64, 3)), text)).values == ()


def test_only_what_was_computed_in_any_case_is_shown() -> None:
    @tl.kernel
    def kernel(x: tl.f64[n], k: tl.i64):
        assert 0 <= k < n and x[k] > 0  # noqa: PT018

    assert both(kernel, np.ones(3), 3) == "0 <= k < n and x[k] > 0 (k = 3, n = 3)"


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("i8", -3, "-3"),
        ("u8", 255, "255"),
        ("u64", 2**64 - 1, str(2**64 - 1)),
        ("f32", 0.1, "0.1"),
        ("f64", 0.1, "0.1"),
        ("f32", float("nan"), "nan"),
        ("f64", float("-inf"), "-inf"),
        ("bool_", True, "True"),
    ],
)
def test_values_of_all_types_are_told(dtype: str, value: object, text: str) -> None:
    b = Builder("f")
    kind = getattr(tl, dtype)
    x = b.param("x", kind)
    b.assert_(LT(IntImm(i64, 1), IntImm(i64, 0)), "{} of {{}}", x)  # noqa: PT009
    assert both(tl.compile(b.build()), value) == f"{text} of {{}}"


def test_messages_have_places_for_values() -> None:
    @tl.kernel
    def kernel(x: tl.i32[n], y: tl.i32[n]):
        for i in range(n):
            assert x[i] == y[i], f"{{at}} {i}: {x[i]} and {y[i] * 2}{'!'}"
            assert x[i] != 3, f"{i} is {x[i]}"

    x, y = np.array([1, 2], np.int32), np.array([1, 5], np.int32)
    assert both(kernel, x, y) == "{at} 1: 2 and 10! (x[i] = 2, i = 1, y[i] = 5)"
    assert both(kernel, x + 2, x + 2) == "0 is 3 (x[i] = 3, i = 0)"
    assert 'assert x[i] == y[i], "{{at}} {}: {} and {}!".format(i, x[i], y[i] * 2)' in str(kernel.ir).replace(
        "tl.i32(2)", "2"
    )
    assert tl.structural_equal(tl.parse(str(kernel.ir)), kernel.ir)


def test_an_assert_in_a_parallel_loop_tells_too() -> None:
    @tl.kernel
    def kernel(x: tl.f64[n]):
        for i in tl.parallel(n):
            t = tl.alloc(tl.f64[n])
            t[0] = x[i]
            assert t[0] < 7, f"{t[0]} at {i}"

    assert both(kernel, np.arange(9.0)) == "7.0 at 7 (t[0] = 7.0)"


def test_numbers_are_as_short_as_they_can_be() -> None:
    stmt = Assert(IntImm(bool_, 0), "{} {} {} {}", (Var("a", f32), Var("b", f64), Var("c", u64), Var("d", f32)))
    assert "0.3 0.30000000000000004 7 what was never written" in str(
        failure(stmt, (float(np.float32(0.3)), 0.1 + 0.2, 7, None))
    )
    assert shown(stmt).labels == ()


@pytest.mark.parametrize("text", ["{} and {}", "{0}", "{", "none"])
def test_a_message_with_other_places_is_refused(text: str) -> None:
    func = Builder("f")
    func.add(Assert(IntImm(bool_, 1), text, (IntImm(i64, 1),)))
    with pytest.raises(tl.KernelError, match="assert-places"):
        validate(func.build())


@pytest.mark.parametrize("text", ['f"{k!r}"', 'f"{k:3}"', '"{}".format(k, k)', '"{k}".format(k=k)', "3", "k"])
def test_other_messages_are_refused(text: str) -> None:
    with pytest.raises(tl.KernelError):
        tl.parse(f"@tl.kernel\ndef f(k: tl.i64):\n    assert k > 0, {text}")
