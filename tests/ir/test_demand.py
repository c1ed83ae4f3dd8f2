"""Each pass and each analysis of a function tells of a kernel, or of anything else, that it is given instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial

import pytest
from every import every

import tirlite as tl


@tl.kernel
def double(x: tl.f32[8], y: tl.out[tl.f32[8]]):
    for i in range(8):
        y[i] = 2 * x[i]


def _parameters(function: Callable[..., object]) -> list[str]:
    return [*inspect.signature(function).parameters]


def _of_functions() -> dict[str, Callable[[object], object]]:
    """All public passes, and all public functions whose first parameter is a PrimFunc, or its facts."""
    found: dict[str, Callable[[object], object]] = {}
    for module in (tl.passes, tl.analysis):
        for name in module.__all__:
            each = getattr(module, name)
            if inspect.isclass(each) and each is not tl.passes.Pass and _parameters(each.__call__)[1:] == ["func"]:
                found[name] = each()
            elif inspect.isfunction(each) and _parameters(each)[0] in ("func", "facts"):
                found[name] = each
    return found


OF_FUNCTIONS = _of_functions() | {
    "run_pipeline": lambda given: tl.passes.run_pipeline(given, (tl.passes.Normalize(),)),
    "storage_problem": lambda given: tl.passes.storage_problem(given, tl.Target.host()),
    "check_storage": partial(tl.analysis.check_storage, double.ir),
}


def test_all_are_there() -> None:
    assert {"Normalize", "StorageRewrite", "lifetimes", "linear_sequence", "in_place_candidates"} <= set(OF_FUNCTIONS)


@every("name", OF_FUNCTIONS)
def test_a_kernel_is_answered_with_where_its_function_is(name: str) -> None:
    with pytest.raises(tl.CallTypeError, match=r"no-primfunc(.|\n)*`\.ir`"):
        OF_FUNCTIONS[name](double)


@every("name", OF_FUNCTIONS)
def test_anything_else_is_answered_with_what_makes_a_function(name: str) -> None:
    with pytest.raises(tl.CallTypeError, match=r"no-primfunc(.|\n)*`tl\.parse`"):
        OF_FUNCTIONS[name]("x")
