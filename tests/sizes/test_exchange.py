import subprocess
import sys

import pytest
import sympy
from every import every

from tirlite.diag import KernelError
from tirlite.sizes import Dim, Size, ceildiv, dims_of, from_sympy, maximum, minimum, to_sympy

n, m = Dim("n"), Dim("m")
N, M = sympy.symbols("n m", integer=True, positive=True)
HALF = sympy.Rational(1, 2)


@every(
    "expression, size",
    [
        (7, 7),
        (sympy.Integer(7), 7),
        (4 * N * M + 8, 4 * n * m + 8),
        ((N + 1) ** 3, (n + 1) * (n + 1) * (n + 1)),
        (sympy.floor((N + 7) / 8), (n + 7) // 8),
        (sympy.ceiling(N / 8), ceildiv(n, 8)),
        (sympy.floor(N / M), n // m),
        (sympy.floor(N / 2 + M / 3), (3 * n + 2 * m) // 6),
        (sympy.Mod(N, 8), n % 8),
        (sympy.Mod(N * M, N + 2), (n * m) % (n + 2)),
        (sympy.Max(N, 2 * M, 3), maximum(n, 2 * m, 3)),
        (sympy.Min(N, M), minimum(n, m)),
        (2 * sympy.Max(N * HALF, M), maximum(n, 2 * m)),
        (sympy.Mul(2, N * HALF + HALF, evaluate=False) - 1, n),
    ],
)
def test_from_sympy(expression: object, size: Size) -> None:
    assert from_sympy(expression, {"n": n, "m": m}) == size


@pytest.mark.parametrize(
    "size",
    [0, n * m - 3, (n + 7) // 8 * 8, n % 5 + n // m, maximum(n, 2 * m, 3) - minimum(n, m), -((n + m) // (n * m + 1))],
)
def test_round_trip(size: Size) -> None:
    assert from_sympy(to_sympy(size), {"n": n, "m": m}) == size


def test_facts_can_show_that_a_fraction_is_whole() -> None:
    k = Dim("k", multiple_of=8)
    assert from_sympy(sympy.Symbol("k") / 8, {"k": k}) == k // 8


def test_unknown_symbols_become_one_dim_each() -> None:
    size = from_sympy(N * M + N, {"m": m})
    assert [dim.name for dim in dims_of(size)] == ["m", "n"]
    assert m in dims_of(size)


def test_symbols_carry_the_sign() -> None:
    assert to_sympy(n).is_positive
    assert to_sympy(Dim("z", min=0)).is_nonnegative
    assert to_sympy(Dim("s", min=-1)).is_nonnegative is None


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (N / 2, "`n/2` is not a size: it is not known to be whole"),
        (sympy.sqrt(N), "`sqrt(n)` is not a size"),
        (2**N, "`2**n` is not a size"),
        (sympy.Float(1.5) * N, "is not a size: there is no Float"),
        (sympy.Max(N / M, 1), "the sign of `m`"),
        (sympy.Piecewise((N, N > M), (M, True)), "is not a size"),
        (sympy.oo, "is not a size"),
    ],
)
def test_what_is_no_size_is_named(expression: object, text: str) -> None:
    with pytest.raises(KernelError) as error:
        from_sympy(expression, {})
    assert error.value.code == "not-a-size"
    assert text in str(error.value)


W = sympy.Symbol("w", integer=True, nonnegative=True)


def test_symbols_keep_what_they_are_declared_to_be() -> None:
    assert from_sympy(sympy.Max(4 * W, 4), {}) == maximum(4 * Dim("w", min=0), 4)
    assert from_sympy(sympy.Symbol("e", even=True, positive=True) / 2, {}) == Dim("e", multiple_of=2) // 2
    assert from_sympy(sympy.Symbol("n") + W, {"w": m}) == n + m


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (sympy.Symbol("k", negative=True), "`k` is nonpositive"),
        (sympy.Symbol("k", odd=True), "`k` is odd"),
        (sympy.Symbol("k", prime=True), "`k` is prime"),
        (sympy.Symbol("k", integer=False), "`k` is not an integer"),
        (sympy.Symbol("k", positive=True) + sympy.Symbol("k", nonnegative=True), "another one of that name is not"),
        (sympy.Symbol("s", nonnegative=True), "`s` is nonnegative, and Dim[(]'s', min=-1[)] need not be"),
        (sympy.Symbol("s", even=True), "`s` is even, and Dim[(]'s', min=-1[)] need not be"),
    ],
)
def test_symbols_that_say_more_than_a_dim_are_refused(expression: object, text: str) -> None:
    with pytest.raises(KernelError, match=text) as error:
        from_sympy(expression, {"s": Dim("s", min=-1)})
    assert error.value.code == "bad-symbol"


def test_sizes_are_compared_with_expressions_and_become_such() -> None:
    size = 4 * n * maximum(m, 3)
    assert size == 4 * N * sympy.Max(M, 3)
    assert 4 * N * sympy.Max(M, 3) == size
    assert size == 4 * sympy.Symbol("n") * sympy.Max(sympy.Symbol("m"), 3)
    assert Dim("n", max=8) * 4 == 4 * sympy.Symbol("n")
    assert size != sympy.sqrt(N)
    assert sympy.sympify(size) == to_sympy(size)
    assert n + N == 2 * n
    assert N + m == to_sympy(n + m)


def test_two_dims_of_one_name_have_no_common_symbol() -> None:
    with pytest.raises(KernelError) as error:
        to_sympy(n + Dim("n", max=8))
    assert error.value.code == "shared-dim-name"


def test_sympy_is_loaded_by_the_exchange_alone() -> None:
    program = """
import sys
from tirlite.sizes import Dim, ceildiv, from_sympy, maximum, prove_le, to_sympy
n = Dim("n")
prove_le(maximum(n, ceildiv(n, 8)), n * 2)
from_sympy(3, {})
assert "sympy" not in sys.modules
to_sympy(n)
assert "sympy" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_symbol_beside_a_size_is_the_dim_of_its_name_there() -> None:
    n = Dim("n", multiple_of=8)
    symbol = sympy.Symbol("n", integer=True, positive=True)
    assert 4 * n + symbol == 5 * n
    assert (4 * n - symbol) // symbol == 3
    assert (n + symbol) % 8 == 0
