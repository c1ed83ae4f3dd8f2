"""Sums of constants are computed, with the ends of i64 among them."""

from every import every

from tirlite.ir import Add, Expr, FloorDiv, FloorMod, Sub, Var, const, i64, structural_equal
from tirlite.rewrite.affine_exprs import folded

i = Var("i", i64)
LEAST, MOST = const(i64.min, i64), const(i64.max, i64)


@every(
    "written, computed",
    [
        (Sub(Add(i, const(3, i64)), const(1, i64)), Add(i, const(2, i64))),
        (Add(const(-2, i64), i), Sub(i, const(2, i64))),
        (Add(LEAST, i), Add(i, LEAST)),
        (Sub(Add(i, const(1, i64)), LEAST), Add(Add(i, const(1, i64)), LEAST)),
        (Add(i, FloorDiv(const(-3, i64), const(2, i64))), Add(i, const(-2, i64))),
        (Add(i, FloorMod(const(-3, i64), const(2, i64))), Add(i, const(1, i64))),
        (FloorMod(const(3, i64), const(0, i64)), FloorMod(const(3, i64), const(0, i64))),
        (Add(Sub(i, const(1, i64)), MOST), Add(Sub(i, const(1, i64)), MOST)),
    ],
)
def test_constants_of_a_sum_become_one_where_they_fit(written: Expr, computed: Expr) -> None:
    assert structural_equal(folded(written), computed)
