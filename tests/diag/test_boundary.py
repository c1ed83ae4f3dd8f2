"""A traceback ends at the line of the user's own that called tirlite, unless all frames are asked for."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from io import StringIO

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.diag import InternalError, KernelError, Message, boundary
from tirlite.interp import interpret
from tirlite.plan import Plan, Problem, Request, read_csv, solve, write_csv

n = tl.dim("n")


@tl.kernel
def double(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 2 * x[i]


@tl.kernel
def beyond(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = x[i + 1]


def misspelt(x: tl.f32[n]):
    x[0] = y[0]


PAIR = Problem((Request("a", 4, (0, 2)), Request("b", 4, (1, 3))), in_place=(("b", "a"),))
WRONG: dict[str, Callable[[], object]] = {
    "kernel": lambda: tl.kernel(misspelt),
    "kernel with options": lambda: tl.kernel(strategy="share")(misspelt),
    "kernel with wrong options": lambda: tl.kernel(strategy="shared"),
    "compile of a function": lambda: tl.compile(misspelt),
    "compile of anything": lambda: tl.compile(5),
    "compile with wrong options": lambda: tl.compile(double, strategy="shared"),
    "call": lambda: double([1]),
    "call without arguments": lambda: double(),
    "kernel.interpret": lambda: beyond.interpret(np.ones(3, np.float32)),
    "interpret": lambda: interpret(double.ir, {}),
    "parse": lambda: tl.parse("def f("),
    "parse of anything": lambda: tl.parse(double),
    "pass of a kernel": lambda: tl.passes.StorageRewrite()(double),
    "pass with wrong options": lambda: tl.passes.StorageRewrite(strategy="shared")(double.ir),
    "allocations of a kernel": lambda: tl.allocations(double),
    "structural_equal of a kernel": lambda: tl.structural_equal(double, double.ir),
    "validate": lambda: tl.ir.validate(double.ir.replaced(params=())),
    "dims": lambda: tl.dims("2n"),
    "dim": lambda: tl.dim("n", max="8"),
    "solve": lambda: solve(Problem((Request("a", 4, (0, 2)),)), strategy="shared"),
    "explain": lambda: double.plan.explain("z"),
    "Plan.from_json": lambda: Plan.from_json("{}"),
    "Problem.from_json": lambda: Problem.from_json("{}"),
    "read_csv": lambda: read_csv(StringIO("")),
    "write_csv": lambda: write_csv(PAIR),
    "with_memory of anything": lambda: tl.Target.host().with_memory("local.UB", 1024),
    "with_memory": lambda: tl.Target.host().with_memory("local", tl.MemoryInfo(8, 64, 64, None)),
}


@every("entry", WRONG)
def test_no_frame_from_inside_is_shown(entry: str) -> None:
    with pytest.raises(tl.TirliteError) as caught:
        WRONG[entry]()
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert set(files) == {__file__}
    assert "During handling" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("entry", WRONG)
def test_all_frames_are_shown_on_demand(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIRLITE_FULL_TRACEBACK", "1")
    with pytest.raises(tl.TirliteError) as caught:
        WRONG[entry]()
    assert "/tirlite/" in traceback.extract_tb(caught.value.__traceback__)[-1].filename


class Broken(Message):
    code = "broken-for-the-test"
    raises = InternalError
    title = "it is our fault"


def test_our_own_faults_keep_their_frames() -> None:
    def inside() -> None:
        raise Broken().error()

    with pytest.raises(InternalError) as caught, boundary:
        inside()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "inside"


def test_what_is_no_error_of_tirlite_passes_as_it_is() -> None:
    def inside() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught, boundary:
        inside()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "inside"


def test_a_cause_is_kept() -> None:
    with pytest.raises(KernelError) as caught, boundary:
        raise KernelError() from OSError("the cause")
    assert isinstance(caught.value.__cause__, OSError)
