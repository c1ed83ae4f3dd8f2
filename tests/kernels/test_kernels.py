"""Every kernel of the library gives what its NumPy reference gives: interpreted, compiled, and compiled with checks."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from effort import effort
from random_cases import IS_THOROUGH

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.ir import Call, Op, walk
from tirlite.kernels.case import Case
from tirlite.kernels.gallery import CASES

STRATEGIES = ("none", "tvm", "share") if IS_THOROUGH else ("none", "share")
# The IEEE standard fixes their results to the last bit, as those of + - * /.
EXACT_FUNCTIONS = {Op.SQRT, Op.ABS, Op.FLOOR, Op.CEIL, Op.TRUNC, Op.ROUND, Op.FMA, Op.ISNAN}

# By the module: all tests of a kernel run in a row, in one process, which compiles it once.
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel.name, scope="module")


@cache
def compiled(case: Case, strategy: str, *, debug: bool = False) -> tl.Kernel:
    """The kernel, ready to be called. LLVM takes long, and tries hard for one strategy only: results are the same."""
    with effort(Effort.FULL if strategy == "share" and not debug else Effort.NONE):
        kernel = tl.compile(case.kernel, strategy=strategy, debug=debug)
        kernel(*inputs(case, case.sizes[0]))
    return kernel


def inputs(case: Case, size: tuple[int, ...]) -> tuple[object, ...]:
    return case.inputs(np.random.default_rng(list(size)), *size)


def assert_close(result: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    if tolerance == 0:
        np.testing.assert_array_equal(result, expected)
    else:
        largest = np.abs(expected).max(initial=0)
        np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance * largest)


def rounds_alike_everywhere(kernel: tl.Kernel) -> bool:
    calls = [node.op for node in walk(kernel.ir) if isinstance(node, Call)]
    return all(op in EXACT_FUNCTIONS or not op.is_math for op in calls)


@each_case
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_compiled_kernels_give_what_numpy_gives(case: Case, strategy: str) -> None:
    kernel = compiled(case, strategy)
    for size in case.sizes:
        arguments = inputs(case, size)
        assert_close(kernel(*arguments), case.reference(*arguments), case.tolerance)


@each_case
def test_checked_kernels_give_what_plain_ones_give(case: Case) -> None:
    checked = compiled(case, "share", debug=True)
    for size in case.sizes:
        arguments = inputs(case, size)
        np.testing.assert_array_equal(checked(*arguments), compiled(case, "share")(*arguments), strict=True)


@each_case
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rewritten_kernels_mean_the_same(case: Case, strategy: str) -> None:
    """The function after the passes is itself interpreted, which would report a read of what another buffer left."""
    rewritten = tl.compile(compiled(case, strategy).lowered, strategy="none")
    for size in case.sizes:
        if 0 in size:  # the passes were told that the dims are positive
            continue
        arguments = inputs(case, size)
        assert_close(rewritten.interpret(*arguments), case.reference(*arguments), case.tolerance)


@each_case
def test_interpreted_kernels_give_what_numpy_gives(case: Case) -> None:
    for size in case.sizes:
        arguments = inputs(case, size)
        assert_close(case.kernel.interpret(*arguments), case.reference(*arguments), case.tolerance)


@each_case
def test_sharing_storage_changes_no_bit(case: Case) -> None:
    alone, shared = (compiled(case, strategy) for strategy in ("none", "share"))
    for size in case.sizes:
        arguments = inputs(case, size)
        np.testing.assert_array_equal(alone(*arguments), shared(*arguments), strict=True)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if rounds_alike_everywhere(case.kernel)],
    ids=lambda case: case.kernel.name,
    scope="module",
)
def test_interpreter_and_native_code_agree_to_the_bit(case: Case) -> None:
    kernel = compiled(case, "share")
    for size in case.sizes:
        arguments = inputs(case, size)
        np.testing.assert_array_equal(kernel.interpret(*arguments), kernel(*arguments), strict=True)


def test_most_kernels_are_held_to_the_bit() -> None:
    assert [case.kernel.name for case in CASES if not rounds_alike_everywhere(case.kernel)] == [
        "gated",
        "softmax",
        "attention",
    ]


@each_case
def test_arguments_are_left_alone(case: Case) -> None:
    arguments = inputs(case, case.sizes[-1])
    again = inputs(case, case.sizes[-1])
    compiled(case, "share")(*arguments)
    for argument, original in zip(arguments, again, strict=True):
        np.testing.assert_array_equal(argument, original)
