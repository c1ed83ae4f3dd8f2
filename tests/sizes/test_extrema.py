from tirlite.sizes import Dim, Size, evaluate, maximum, minimum

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
