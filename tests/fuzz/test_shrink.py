"""A program that fails becomes one that holds little else than what it takes to fail."""

from __future__ import annotations

from itertools import count

from fuzz.generator import generate
from fuzz.program import Program
from fuzz.shrink import smallest

from tirlite.ir import While, statements


def loops(program: Program) -> int:
    return sum(isinstance(stmt, While) for stmt in statements(program.func.body))


def test_what_it_does_not_take_to_fail_is_gone() -> None:
    program = next(program for program in map(generate, count(8)) if loops(program) > 0)
    least = smallest(program, lambda candidate: loops(candidate) > 0)
    assert loops(least) == 1
    assert len(list(statements(least.func.body))) < 5 < len(list(statements(program.func.body)))
