import pytest

from tirlite.diag import KernelError
from tirlite.sizes import Dim, ceildiv, evaluate, round_up

n, m = Dim("n"), Dim("m")
k = Dim("k", multiple_of=64)


def test_ceildiv_rounds_up() -> None:
    assert [ceildiv(a, 8) for a in (0, 1, 8, 9, -1)] == [0, 1, 1, 2, 0]
    assert str(ceildiv(n, 8)) == "(n + 7)//8"
    assert ceildiv(k, 8) == k // 8
    assert ceildiv(8 * n + 1, 8) == n + 1


@pytest.mark.parametrize("divisor", [m, m - 3, -2])
def test_ceildiv_by_what_may_be_negative(divisor: object) -> None:
    for a in range(1, 9):
        for b in (1, 2, 4, 5):
            number = evaluate(divisor, {m: b})
            assert evaluate(ceildiv(n, divisor), {n: a, m: b}) == -(-a // number)


def test_round_up_leaves_multiples_alone() -> None:
    assert [round_up(a, 64) for a in (0, 1, 64, 65)] == [0, 64, 64, 128]
    assert round_up(k * n, 64) == k * n
    assert str(round_up(4 * n, 64)) == "64*((n + 15)//16)"


def test_a_divisor_of_zero_is_refused() -> None:
    for a in (n, 3):
        with pytest.raises(KernelError) as error:
            ceildiv(a, 0)
        assert error.value.code == "size-division-by-zero"
