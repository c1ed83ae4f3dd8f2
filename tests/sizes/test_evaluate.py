import numpy as np
import pytest

from tirlite.diag import KernelError
from tirlite.sizes import Dim, Size, dims_of, evaluate, maximum, minimum, substitute
from tirlite.sizes.evaluate import Evaluated

n, m = Dim("n"), Dim("m")


def test_values_are_exact() -> None:
    assert evaluate(4 * n * m + 8, {n: 2**40, m: 2**40}) == 4 * 2**80 + 8
    assert evaluate((n - 10) // 4, {n: 1}) == -3
    assert evaluate((m - n) % 4, {n: 3, m: 1}) == 2
    assert evaluate(maximum(n, 2 * m), {n: 5, m: 3}) == 6
    assert evaluate(minimum(n, 2 * m), {n: 5, m: 3}) == 5
    assert evaluate(7, {}) == 7
    assert evaluate(n * n, {n: np.int64(2**40)}) == 2**80


def test_a_dim_without_a_value_is_named() -> None:
    with pytest.raises(KernelError) as error:
        evaluate(n + 2 * m, {n: 1})
    assert str(error.value) == "error[dim-without-value]: no value is given for the dim `m` of the size `2*m + n`"


def test_division_by_a_size_that_is_zero() -> None:
    with pytest.raises(KernelError) as error:
        evaluate(n // (m - 1), {n: 3, m: 1})
    assert error.value.code == "size-division-by-zero"


def test_dims_come_by_name_and_once() -> None:
    assert dims_of(n * n + maximum(m, n // 2 + m * 0)) == (m, n)
    assert dims_of(3) == ()


def test_substitution_is_simultaneous_and_simplifies() -> None:
    assert substitute(n - 2 * m, {n: m, m: n}) == m - 2 * n
    assert substitute((n + 7) // 8, {n: 8 * m}) == m
    assert substitute(maximum(n, m), {n: m + 1}) == m + 1
    assert substitute(n * m, {n: 3, m: 4}) == 12


def test_deep_nests_need_no_recursion() -> None:
    size: Size = n + 0
    for step in range(1200):
        size = (size + m) // (m + step % 2)
    assert evaluate(size, {n: 7, m: 3}) == evaluate(substitute(size, {n: m + 4}), {m: 3})
    assert dims_of(size) == (m, n)
    assert len(str(size)) > 1200
    again: Size = n + 0
    for step in range(1200):
        again = (again + m) // (m + step % 2)
    assert size == again


def test_sizes_at_several_bindings_are_those_at_each() -> None:
    a, b = Dim("a"), Dim("b", min=0)
    cut = maximum(a // 3 - b, 0)
    sizes: list[Size] = [7, a + 0, 4 * a * b - cut, cut * cut + minimum(a, 2 * b) % (a + 1), 1 << 70]
    bindings = [{a: 1, b: 0}, {a: 97, b: 3}, {a: 1 << 40, b: 1 << 41}]
    evaluated = Evaluated(bindings)
    for size in (*sizes, *sizes):
        assert evaluated.values(size) == tuple(evaluate(size, binding) for binding in bindings)
    with pytest.raises(KernelError):
        evaluated.values(a // b)
