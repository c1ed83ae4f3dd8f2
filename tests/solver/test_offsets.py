"""Offsets by native code: the answers of Python, or a named error, and never a number that has wrapped."""

from random import Random

import numpy as np
import pytest

import tirlite as tl
from tirlite.plan import Problem, Request, offset_evaluator, parse_facts, solve
from tirlite.plan.shape.formulas import formulas
from tirlite.plan.tables.text import parse_size
from tirlite.sizes import Dim, ceildiv, maximum, minimum
from tirlite.solver import compiled_offsets
from tirlite.solver.offsets import safe_limits

n, m = Dim("n"), Dim("m", max=64)
SIZES = (16 * n, 8 * m + 4, maximum(8 * n, 4 * n * m), 4 * ceildiv(n, 7) * m, minimum(n * n, 64 * m), 12 * n + m % 5)


def together(sizes):
    """All live at one time, so that offsets are sums of sizes."""
    return solve(Problem(tuple(Request(f"r{i}", size, (0, 1)) for i, size in enumerate(sizes))), "pack")


def test_native_code_and_python_give_the_same_offsets():
    plan = together(SIZES)
    python, native = offset_evaluator(plan), compiled_offsets(plan)
    random = Random(1)
    for _ in range(200):
        values = tuple(dim.nth(int(2 ** random.uniform(0, 30))) for dim in plan.problem.dims)
        offsets = native(values)
        assert offsets.dtype == np.int64
        assert tuple(offsets) == python(values)


def test_the_array_is_the_same_each_time():
    native = compiled_offsets(together((4 * n, 8 * n)))
    assert native((3,)) is native((4,))


def test_what_native_code_could_wrap_is_computed_exactly_or_refused():
    k = Dim("k")
    plan = together((1 << 40, k * k * k // 4, 8 * k * k * k // 4, 4))
    python, native = offset_evaluator(plan), compiled_offsets(plan)
    fits = [value for value in range(1 << 20, 1 << 21, 1 << 12) if max(python((value,))) < 1 << 63]
    assert max(max(python((value,))) for value in fits) > 1 << 61
    for value in fits:
        assert tuple(native((value,))) == python((value,))
    for value in (1 << 22, 1 << 63, (1 << 64) + 4, 1 << 200):
        with pytest.raises(tl.CallValueError, match="offset-too-large"):
            native((value,))
    assert tuple(native((5,))) == python((5,))


def test_values_against_the_facts_get_the_answers_of_python():
    plan = together((4 * m, 8 * m))
    python, native = offset_evaluator(plan), compiled_offsets(plan)
    assert tuple(native((1000,))) == python((1000,))


@pytest.mark.parametrize(
    ("text", "facts", "largest"),
    [
        ("8*N", "", (1 << 58)),
        ("8*N", "N<=100", 100),
        ("N*N", "", 1 << 30),
        ("max(N, 4*M) - M", "M<=8", 1 << 61),
        ("N//(M+1)", "", 1 << 61),
        (f"N*{1 << 70}", "", None),
    ],
)
def test_limits_within_which_no_step_wraps(text, facts, largest):
    dims = {"N": Dim("N"), "M": Dim("M"), **parse_facts(facts)}
    size = parse_size(text, dims)
    limits = safe_limits(formulas([size + 1], tuple(dims.values())), tuple(dims.values()))
    assert (limits and dict(zip(dims, limits, strict=True))["N"][1]) == largest


def test_there_are_no_limits_where_a_divisor_may_be_0():
    dims = Dim("N"), Dim("M")
    assert safe_limits(formulas([dims[0] // (dims[1] - 1)], dims), dims) is None


def test_plans_with_constant_offsets_need_no_native_code():
    plan = together((4, 8))
    offsets = compiled_offsets(plan)
    found = offsets(())
    assert sorted(found) == [0, 8] or sorted(found) == [0, 4]
    found[:] = -1
    assert min(offsets(())) == 0
