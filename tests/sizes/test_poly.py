import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from every import every

from tirlite.diag import KernelError
from tirlite.sizes import Dim, Poly, Scalar, Size, as_size, evaluate, maximum
from tirlite.sizes.unknown import sum_of

n, m = Dim("n"), Dim("m")
k = Dim("k", multiple_of=8)


def test_sums_are_equal_when_their_normal_forms_are() -> None:
    assert (n + m) * (n - m) == n * n - m * m
    assert hash((n + m) * (n - m)) == hash(n * n - m * m)
    assert n + 0 == n
    assert hash(n + 0) == hash(n)
    assert n + 1 != n
    assert n + m != n * m


@pytest.mark.parametrize("sizes", [(), (3, -3), (3, n + 1, 4), (n + 2, -n, m), (n + 0, 5 - n), (2 * n, -2 * n)])
def test_what_many_come_to_is_what_they_come_to_one_by_one(sizes: tuple[Size, ...]) -> None:
    found = sum_of(sizes)
    assert found == sum(sizes)
    assert type(found) is type(sum(sizes))


def test_what_is_constant_is_an_int() -> None:
    assert n - n == 0
    assert type(n - n) is int
    assert type((n + 3) - n) is int
    assert type(as_size(np.int64(3))) is int
    assert isinstance(n + 0, Poly)


@every(
    "size, text",
    [
        (4 * n * m + 8, "4*m*n + 8"),
        (n - m, "n - m"),
        (8 - n, "8 - n"),
        (-n, "-n"),
        (-n - m, "-m - n"),
        (n * n * 3 - 2, "3*n*n - 2"),
        ((n + 7) // 8, "(n + 7)//8"),
        (8 * ((n + 7) // 8), "8*((n + 7)//8)"),
        (-(n // 8), "-(n//8)"),
        (m - n // 8, "m - n//8"),
        (m % 8 + 1, "m % 8 + 1"),
        (n // (m + 1), "n//(m + 1)"),
    ],
)
def test_text_is_python_over_the_names(size: Poly, text: str) -> None:
    assert str(size) == text
    assert eval(text, {"n": n, "m": m}) == size


def test_text_does_not_depend_on_the_order_of_making() -> None:
    b, a = Dim("b"), Dim("a")
    assert str(b + a + b * a) == str(a * b + a + b) == "a*b + a + b"


def test_numpy_integers_are_integers() -> None:
    assert np.int64(3) * n == 3 * n
    assert n + np.int32(1) == n + 1
    assert type((np.int64(3) * n).terms[()] if () in (np.int64(3) * n).terms else 0) is int


def test_floats_are_refused() -> None:
    with pytest.raises(TypeError):
        n * 1.5
    with pytest.raises(TypeError):
        1.5 + n
    with pytest.raises(TypeError, match="a size is an int"):
        as_size(1.5)


def test_sizes_have_no_order() -> None:
    with pytest.raises(TypeError):
        assert n < m
    with pytest.raises(TypeError):
        max(n + 1, m + 1)


@every(
    "size, simpler",
    [
        ((8 * n + m) // 8, n + m // 8),
        ((8 * n + 16) // 8, n + 2),
        (4 * n // 8, n // 2),
        ((4 * n + 7) // 8, (n + 1) // 2),
        ((n - 1) // 8, (n + 7) // 8 - 1),
        (-(-n // 8), (n + 7) // 8),
        (n // 2 // 4, n // 8),
        ((n // 2 + 3) // 4, (n + 6) // 8),
        ((n * m + m) // m, n + 1),
        (3 * n * m // (3 * m), n),
        (n // -8, -n // 8),
        ((k + 7) // 8, k // 8),
        (0 // n, 0),
        ((2 * n + 2) // (n + 1), 2),
        (Dim("small", max=7) // 8, 0),
    ],
)
def test_quotients_are_simplified(size: Poly, simpler: Poly) -> None:
    assert size == simpler


def test_quotients_stay_two_where_one_would_be_by_more_than_an_integer_holds() -> None:
    assert str(n // 2**32 // 2**20) == "n//4503599627370496"
    assert str(n // 2**32 // 2**32) == "(n//4294967296)//4294967296"


@every(
    "size, simpler",
    [
        ((9 * n) % 8, n % 8),
        ((n + 8) % 8, n % 8),
        ((8 * n + 3) % 8, 3),
        (k % 8, 0),
        ((k * n + 3) % 4, 3),
        ((2 * n) % 8, 2 * (n % 4)),
        ((n * m + n) % m, n % m),
        (n % n, 0),
    ],
)
def test_remainders_are_simplified(size: Poly, simpler: Poly) -> None:
    assert size == simpler


def test_copies_and_pickles_are_equal() -> None:
    assert copy.deepcopy([n, n // 8 + m]) == [n, n // 8 + m]
    for value in (n, n + 1, n // 8 + m, maximum(n, m) % 3):
        assert pickle.loads(pickle.dumps(value)) == value
    with pytest.raises(TypeError, match="`n` is not a dim"):
        pickle.dumps(Scalar("n") + 1)


@pytest.mark.parametrize(
    ("divide", "division"),
    [
        (lambda: (4 * n + 1) // 0, "`(4*n + 1)//0`"),
        (lambda: (4 * n + 1) % (m - m), "`(4*n + 1) % 0`"),
        (lambda: evaluate((4 * n + 1) // (m - 2), {n: 1, m: 2}), "`(4*n + 1)//(m - 2)`"),
        (lambda: evaluate((4 * n + 1) % (m - 2), {n: 1, m: 2}), "`(4*n + 1) % (m - 2)`"),
    ],
)
def test_division_by_zero_is_refused(divide: Callable[[], Size], division: str) -> None:
    with pytest.raises(KernelError) as error:
        divide()
    assert str(error.value) == (f"error[size-division-by-zero]: the size `4*n + 1` is divided by zero in {division}")


def power(base: Size, exponent: int) -> Size:
    result: Size = 1
    for _ in range(exponent):
        result = result * base
    return result


def test_a_product_of_sums_is_refused_by_its_terms() -> None:
    assert len(str(power(n + m + k, 12)).split(" + ")) == 91
    with pytest.raises(KernelError, match=r"size-too-long.* it has up to 1144 terms, and 1024 are the most"):
        power(n + m + k + 1, 60)


def test_a_product_is_refused_by_its_factors() -> None:
    assert str(power(n + 0, 24)) == "*".join(["n"] * 24)
    with pytest.raises(KernelError, match=r"size-too-long.* 25 factors in one term, and 24 are the most"):
        power(n + 0, 25)


def test_a_size_that_is_short_only_because_its_parts_are_shared_is_refused() -> None:
    def grown(size: Size, times: int) -> Size:
        return grown(size // 8 * 9, times - 1) if times else size

    assert evaluate(grown(n + 7, 3), {n: 1}) == 9
    with pytest.raises(KernelError, match=r"size-too-long.* parts, and 100000 are the most"):
        grown(n + 7, 60)


def test_a_sum_may_have_any_number_of_terms() -> None:
    dims = [Dim(f"d{i}") for i in range(3000)]
    assert evaluate(n * sum(dims, start=m + 0), {n: 2, m: 3, **dict.fromkeys(dims, 1)}) == 6006


def test_a_size_is_pickled_alike_whatever_was_asked_of_it() -> None:
    size = n // 8 + m
    before = pickle.dumps(size)
    assert {size: evaluate(size, {n: 17, m: 2})} == {size: 4}
    assert str(size) == "n//8 + m" or str(size) == "m + n//8"
    assert pickle.dumps(size) == before
    assert pickle.loads(before) == size
