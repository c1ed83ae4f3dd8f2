"""A u64 compared with a signed integer: exactly, as NumPy 2 does, where their common type f64 would round."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl

OPERATORS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
OPERATORS |= {"==": np.equal, "!=": np.not_equal}
UNSIGNED = np.array([0, 1, 5, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)


@pytest.mark.parametrize("signed", ["i8", "i64"])
def test_comparisons_are_exact_in_both_orders(signed: str) -> None:
    lines = "".join(
        f"        r[{2 * k}, i] = u[i] {op} s[i]\n        r[{2 * k + 1}, i] = s[i] {op} u[i]\n"
        for k, op in enumerate(OPERATORS)
    )
    func = tl.parse(
        'n = tl.dim("n")\n@tl.kernel\n'
        f"def f(u: tl.u64[n], s: tl.{signed}[n], r: tl.bool_[12, n]):\n    for i in range(n):\n{lines}"
    )
    assert tl.structural_equal(func, tl.parse(str(func)))
    limits = np.iinfo(getattr(tl, signed).numpy)
    values = np.array([0, 1, -1, 5, limits.min, limits.max - 1, limits.max], limits.dtype)
    u, s = (part.ravel().copy() for part in np.meshgrid(UNSIGNED, values))
    wanted = [row for op in OPERATORS.values() for row in (op(u, s), op(s, u))]
    kernel = tl.compile(func)
    for run in (kernel, kernel.interpret):
        told = np.zeros((12, len(u)), bool)
        run(u, s, told)
        np.testing.assert_array_equal(told, wanted)


def test_vectors_and_chains_compute_each_value_once() -> None:
    func = tl.parse(
        "@tl.kernel\ndef f(u: tl.u64[4], k: tl.i64, r: tl.bool_[5]):\n"
        "    r[tl.ramp(0, 1, 4)] = u[tl.ramp(0, 1, 4)] < k\n"
        "    r[4] = -1 <= k // 7 < u[1] < 9\n"
    )
    told = np.zeros(5, bool)
    tl.compile(func)(np.array([0, 6, 7, 2**63], np.uint64), 7, told)
    assert told.tolist() == [True, True, False, False, True]
    assert str(func).count("k // 7") == 1


def test_a_failed_assert_tells_both_values() -> None:
    func = tl.parse("@tl.kernel\ndef f(u: tl.u64[1], k: tl.i64):\n    assert u[0] < k\n")
    with pytest.raises(tl.KernelAssertionError, match=r"u\[0\] < k \(k = -3, u\[0\] = 5\)"):
        tl.compile(func)(np.array([5], np.uint64), -3)
