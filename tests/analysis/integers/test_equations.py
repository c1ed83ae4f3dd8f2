"""What is learned from equations is true of every solution; checked by trying all values."""

from __future__ import annotations

from itertools import product

import hypothesis.strategies as st
from hypothesis import given

from tirlite.analysis.integers.equations import System, solve
from tirlite.sizes import Dim


def test_the_digits_of_a_number_are_pinned() -> None:
    # 100 a + 10 b + c = 0 with differences of digits.
    system = System()
    a, b, c = (system.variable(-9, 9) for _ in range(3))
    system.equate(0, {a: 100, b: 10, c: 1})
    assert solve(system) == {a: 0, b: 0, c: 0}


def test_digits_of_symbolic_width_are_pinned() -> None:
    m = Dim("m")
    system = System()
    row, column = system.variable(None, None), system.variable(1 - m, m - 1)
    system.equate(0, {row: m + 0, column: 1})
    assert solve(system) == {row: 0, column: 0}


def test_a_wider_digit_is_not_pinned() -> None:
    m = Dim("m")
    system = System()
    row, column = system.variable(None, None), system.variable(-m, m + 0)
    system.equate(0, {row: m + 0, column: 1})
    assert solve(system) == {}


def test_even_and_odd_never_meet() -> None:
    system = System()
    a, b = system.variable(None, None), system.variable(None, None)
    system.equate(1, {a: 2, b: -4})
    assert solve(system) is None


def test_what_one_equation_shows_helps_the_next() -> None:
    system = System()
    a, b = system.variable(-5, 5), system.variable(-5, 5)
    system.equate(0, {a: 1, b: -3, system.variable(0, 1): 0})
    system.equate(-2, {b: 1})
    assert solve(system) is None


def test_bounds_that_cross_leave_no_solution() -> None:
    system = System()
    system.variable(1, 0)
    assert solve(system) is None


@given(
    bounds=st.lists(st.tuples(st.integers(-3, 1), st.integers(-1, 3)), min_size=1, max_size=3),
    rows=st.lists(st.lists(st.integers(-6, 6), min_size=4, max_size=4), min_size=1, max_size=3),
)
def test_it_agrees_with_trying_all_values(bounds: list[tuple[int, int]], rows: list[list[int]]) -> None:
    system = System()
    names = [system.variable(low, high) for low, high in bounds]
    for row in rows:
        system.equate(row[3], dict(zip(names, row, strict=False)))
    values = [range(low, high + 1) for low, high in bounds]
    solutions = [
        point for point in product(*values) if all(sum(map(int.__mul__, row, point)) + row[3] == 0 for row in rows)
    ]
    known = solve(system)
    if known is None:
        assert solutions == []
    else:
        assert all(point[name] == value for point in solutions for name, value in known.items())
