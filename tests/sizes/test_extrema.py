from itertools import product

from tirlite.sizes import Dim, Size, evaluate, maximum, minimum
from tirlite.sizes.extrema import each_of, halves_of

n, m = Dim("n"), Dim("m")


def test_what_is_dominated_is_left_out() -> None:
    assert maximum(3, 5, 4) == 5
    assert maximum(n, 2 * n, 1) == 2 * n
    assert maximum(n, n * m, n + 3) == maximum(n * m, n + 3)
    assert minimum(n, n + 1, m) == minimum(n, m)
    assert minimum(n, 1) == 1
    assert maximum(Dim("b", max=64), 64) == 64


def test_sets_are_flat_and_unordered() -> None:
    assert maximum(n, maximum(m, 7)) == maximum(7, m, n)
    assert hash(maximum(n, m)) == hash(maximum(m, n))
    assert maximum(n, m) != minimum(n, m)
    assert str(maximum(n, 2 * m, 7)) == "max(2*m, n, 7)"


def test_they_take_part_in_sums() -> None:
    size = 2 * maximum(n, m) - minimum(n, m)
    assert str(size) == "2*max(m, n) - min(m, n)"
    assert maximum(n, m) - maximum(m, n) == 0
    assert evaluate(size, {n: 3, m: 10}) == 17


def test_forty_unrelated_dims_stay_forty() -> None:
    dims = [Dim(f"d{i}") for i in range(40)]
    at_once = maximum(*dims)
    one_by_one: Size = 0
    for dim in dims:
        one_by_one = maximum(one_by_one, dim, dim - 1)
    assert at_once == one_by_one
    assert str(at_once).count(",") == 39
    assert evaluate(at_once, {dim: i for i, dim in enumerate(dims, start=1)}) == 40


def test_a_common_factor_stands_outside() -> None:
    m, n = Dim("m"), Dim("n")
    widest = maximum(4 * m, 4 * n)
    assert str(widest) == "4*max(m, n)"
    assert widest // 4 == maximum(m, n)
    assert maximum(widest, 8 * m) == 4 * maximum(2 * m, n)


def test_a_sum_is_told_apart_by_what_its_extrema_are_picked_from() -> None:
    last = n - 1
    clamped = [minimum(m - 3, last), last - minimum(m - 3, last), last - maximum(m - 5, 0) - minimum(n, m)]
    mirrored = [last - minimum(m, 2 * last - m), maximum(2 * n - m, m - 4) - 2, 2 * maximum(n - 4, m - n) - 3]
    several = 0
    for size in (*clamped, *mirrored):
        parts, halves = each_of(size), [*halves_of(size)]
        several += len(parts) > 1
        for values in product(range(1, 9), repeat=2):
            binding = dict(zip((n, m), values, strict=True))
            holds = evaluate(size, binding) >= 0
            assert all(evaluate(part, binding) >= 0 for part in parts) == holds
            assert holds or all(evaluate(half, binding) < 0 for half in halves)
    assert several >= 2
    assert evaluate(*halves_of(mirrored[0]), {n: 1, m: 7}) == 1
