from every import every

from tirlite.sizes import (
    Dim,
    Proof,
    SizeLike,
    ceildiv,
    lower_bound,
    maximum,
    minimum,
    prove_divides,
    prove_eq,
    prove_le,
    prove_lt,
    round_up,
    upper_bound,
)
from tirlite.sizes.prove import is_at_most

n, m = Dim("n"), Dim("m")
z = Dim("z", min=0)
b = Dim("b", max=1024)
k = Dim("k", multiple_of=8)
s = Dim("s", min=-5, max=5)
y = Dim("y", max=3)


@every(
    "small, large",
    [
        (3, 3),
        (n, n * m),
        (n + m, n * m + 1),
        (b, 1024),
        (b * m, 1024 * m),
        (b * b, 1024 * b),
        (z, z * z),
        (s * s, 25),
        (-5, s),
        (8, k),
        (n, round_up(n, 8)),
        (8, round_up(n, 8)),
        (round_up(n, 8), n + 7),
        (ceildiv(n, 8), n),
        (8 * ceildiv(z, 8), 12 * z),
        (n // 8, (n + 7) // 8),
        (m * (n // m), n),
        (n, m * ceildiv(n, m)),
        (n % 8, 7),
        (n % m, m - 1),
        (k % (8 * m), 8 * m - 8),
        ((8 * n) % (k + 8), k),
        ((8 * z) % Dim("j", max=64, multiple_of=8), 56),
        (n % m, n),
        (m * (n % 8), 7 * m),
        (n, maximum(n, m)),
        (maximum(n, m), n + m),
        (maximum(n, m), maximum(n, m, z)),
        (maximum(n, m) + 8, maximum(n + 8, m + 9)),
        (minimum(n, m), n),
        (minimum(n, m, b), minimum(n, b)),
        (n * maximum(m, z), maximum(n * m, n * z)),
        (s * maximum(n, m), maximum(s * n, s * m)),
        (k % 16, 8),
        (z, 3 * (z // y) + 2),
    ],
)
def test_at_most_for_all_values(small: SizeLike, large: SizeLike) -> None:
    assert prove_le(small, large) is Proof.YES
    assert prove_lt(large, small) is Proof.NO


@every(
    "a, c",
    [
        (n, m),
        (n, n * z),
        (b, 1023),
        (k, 8),
        (n, n // 8 * 8),
        (n, maximum(m, z)),
        (s * s, 24),
        (s, 3 * (s // y) + 2),
    ],
)
def test_what_holds_for_some_values_is_unknown(a: SizeLike, c: SizeLike) -> None:
    assert prove_le(a, c) is Proof.UNKNOWN


@every(
    "a, c, answer",
    [
        (8 * (k // 8), k, Proof.YES),
        (8 * (n // 8) + n % 8, n, Proof.YES),
        (Dim("five", min=5, max=5), 5, Proof.YES),
        (maximum(n, m) + 1, maximum(n + 1, m + 1), Proof.YES),
        (k, 12, Proof.NO),
        (2 * n, 2 * m + 1, Proof.NO),
        (n, n + 1, Proof.NO),
        (n, m, Proof.UNKNOWN),
    ],
)
def test_equality(a: SizeLike, c: SizeLike, answer: Proof) -> None:
    assert prove_eq(a, c) is answer
    assert prove_eq(c, a) is answer


@every(
    "divisor, size, answer",
    [
        (8, 24, Proof.YES),
        (8, 25, Proof.NO),
        (8, k * n, Proof.YES),
        (16, 2 * k + 16 * n, Proof.YES),
        (2, 2 * n + 1, Proof.NO),
        (8, n - n % 8, Proof.YES),
        (4, maximum(k * n, 4 * m), Proof.YES),
        (4, k // 2, Proof.YES),
        (4, (4 * n) % k, Proof.YES),
        (8, n, Proof.UNKNOWN),
        (0, n - n, Proof.YES),
        (0, n, Proof.NO),
    ],
)
def test_divisibility(divisor: int, size: SizeLike, answer: Proof) -> None:
    assert prove_divides(divisor, size) is answer


@every(
    "size, low, high",
    [
        (7, 7, 7),
        (n * m - n, 0, None),
        (b // 8, 0, 128),
        (b % 16, 0, 15),
        (1024 - b, 0, 1023),
        (b * s, -5120, 5120),
        (maximum(b, 8), 8, 1024),
        (minimum(b, n), 1, 1024),
        (n - m, None, None),
    ],
)
def test_bounds(size: SizeLike, low: int | None, high: int | None) -> None:
    assert (lower_bound(size), upper_bound(size)) == (low, high)


def test_hopeless_statements_end() -> None:
    dims = [Dim(f"d{i}") for i in range(12)]
    left = sum(((dim + 3) // 4 for dim in dims), start=0)
    right = sum(((dim * n + 5) // 7 for dim in dims), start=0)
    assert prove_le(left, right) is Proof.UNKNOWN
    assert prove_le(left * right, right * right) is Proof.UNKNOWN


def test_a_search_with_a_budget_ends_sooner() -> None:
    small, large = maximum(n, m) + 8, maximum(n + 8, m + 9)
    assert [is_at_most(small, large, budget) for budget in (0, 50, None)] == [False, True, True]


def test_what_is_proved_does_not_depend_on_which_dim_was_made_first() -> None:
    for _ in range(50):
        m = Dim("m", min=0)
        assert prove_le(12 * m, ceildiv(maximum(12 * m, 6), 4) * 4) is Proof.YES


def test_sums_of_multiples_take_whole_steps() -> None:
    assert prove_le(4 * (z // 4) + 12, 8 * (z // 8) + 16) is Proof.YES
    assert prove_le(4 * (z // 4) + 13, 8 * (z // 8) + 16) is not Proof.YES


def test_a_proof_over_very_many_factors_is_given_up() -> None:
    dims = [Dim(f"d{i}") for i in range(20)]
    one, other = dims[0] + 0, dims[0] + 1
    for dim in dims[1:]:
        one, other = one * dim, other * dim
    assert prove_le(one, other) is Proof.YES
    assert prove_le(one, other - dims[0] * dims[1]) is Proof.UNKNOWN
    assert prove_le(maximum(one, 3), other - dims[0] * dims[1]) is Proof.UNKNOWN
