"""Recursion by generators: results, exceptions, depth."""

from __future__ import annotations

import pytest

from tirlite.ir import Steps, run


def factorial(n: int) -> Steps[int]:
    return n * (yield factorial(n - 1)) if n else 1


def count_down(n: int) -> Steps[int]:
    return (yield count_down(n - 1)) + 1 if n else 0


def test_gives_the_result() -> None:
    assert run(factorial(20)) == 2432902008176640000


def test_goes_deeper_than_the_stack_of_python() -> None:
    assert run(count_down(100_000)) == 100_000


def test_several_calls_in_one_step() -> None:
    def fibonacci(n: int) -> Steps[int]:
        if n < 2:
            return n
        return (yield fibonacci(n - 1)) + (yield fibonacci(n - 2))

    assert run(fibonacci(15)) == 610


def failing(n: int) -> Steps[int]:
    if n == 0:
        raise ValueError("the bottom")
    return (yield failing(n - 1))


def test_an_exception_comes_out() -> None:
    with pytest.raises(ValueError, match="the bottom"):
        run(failing(1_000))


def test_an_exception_can_be_caught_at_the_yield() -> None:
    def careful() -> Steps[str]:
        try:
            yield failing(3)
        except ValueError as error:
            return f"caught {error}, then {(yield factorial(3))}"
        return "nothing"

    assert run(careful()) == "caught the bottom, then 6"


def test_finally_runs_on_the_way_out() -> None:
    seen: list[str] = []

    def tidy() -> Steps[int]:
        try:
            return (yield failing(0))
        finally:
            seen.append("tidied")

    with pytest.raises(ValueError, match="the bottom"):
        run(tidy())
    assert seen == ["tidied"]
