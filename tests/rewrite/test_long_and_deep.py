"""The passes beside the storage rewrite take long and deep programs: no recursion, no work that grows squared."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType

import pytest

import tirlite as tl
from tirlite.ir import Builder, f32
from tirlite.rewrite import Normalize, Pass, RemoveNoOps, UnrollLoops, VectorizeLoops
from tirlite.schedules.auto import ScheduleTemporaries

PASSES: tuple[Pass, ...] = (ScheduleTemporaries(), RemoveNoOps(), UnrollLoops(), VectorizeLoops())


def long(count: int) -> tl.PrimFunc:
    """Statements in a row, each with a temporary."""
    builder = Builder("long")
    last = builder.param("x", f32[4])
    y = builder.param("y", f32[4])
    for number in range(count):
        t = builder.alloc(f"t{number}", f32[4])
        builder.store(t, 0, last[0] * 2)
        last = t
    builder.store(y, 0, last[0])
    return builder.build()


def deep(count: int) -> tl.PrimFunc:
    """Loops inside one another around the only use of a temporary."""
    builder = Builder("deep")
    x, y = builder.param("x", f32[2]), builder.param("y", f32[2])
    t = builder.alloc("t", f32[2])
    with ExitStack() as loops:
        for _ in range(count):
            var = loops.enter_context(builder.for_("i", 0, 2))
        builder.store(t, var, x[var])
        builder.store(y, var, t[var])
    return builder.build()


@pytest.mark.parametrize("each", PASSES, ids=lambda each: each.name)
@pytest.mark.parametrize("make", [long, deep])
def test_passes_end(make: Callable[[int], tl.PrimFunc], each: Pass) -> None:
    func = make(2000)
    after = each(Normalize()(func))
    assert after.params == func.params


def calls_while(run: Callable[[], object], *names: str) -> int:
    """How often functions of these names are called by `run`."""
    calls = 0

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_name in names

    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


def test_short_loops_beside_each_other_are_told_apart_by_few_looks() -> None:
    """LLVM writes out each of them: none is to be compared with all others, nor each element that they store."""
    builder = Builder("short")
    n = tl.dim("n")
    x, y = builder.param("x", f32[n, 8]), builder.param("y", f32[n, 100, 8])
    with builder.for_("i", 0, n) as i:
        for number in range(100):
            with builder.for_("j", 0, 8) as j:
                builder.store(y, (i, number, j), x[i, j] * number)
    func = Normalize()(builder.build())
    looks = calls_while(lambda: VectorizeLoops()(func), "is_at", "is_written_out")
    assert 0 < looks < 50 * 100


def test_elements_that_a_called_function_stores_are_found_among_those_it_loads_by_few_looks() -> None:
    """Sums of pairs, written out: no store is compared with each load."""
    builder = Builder("pairs")
    n = tl.dim("n")
    x, y = builder.param("x", f32[9, n + 200]), builder.param("y", f32[900, n])
    with builder.for_("i", 0, n) as i, builder.for_("j", 0, 9) as j:
        for number in range(100):
            builder.store(y, (9 * number + j, i), x[j, i + 2 * number] + x[j, i + 2 * number + 1])
    func = Normalize()(builder.build())
    looks = calls_while(lambda: VectorizeLoops(called=True)(func), "_first_difference", "structural_key")
    assert 0 < looks < 50 * 100
