"""Random programs keep their meaning through the passes next to the storage rewrite, in any choice of these.

`python -m pytest tests/fuzz/test_passes.py --programs 20000` runs more of them.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

import numpy as np
import pytest
from effort import at_effort
from fuzz.doubling import doubled, generate_doubled
from fuzz.generator import generate
from fuzz.program import Arguments, assert_same, outcomes
from fuzz.setups import drawn_passes, target_of
from fuzz.stages import generate_stages

import tirlite as tl
from tirlite.analysis.facts import Facts
from tirlite.codegen import Effort
from tirlite.interp import interpreter
from tirlite.ir import validate
from tirlite.rewrite import InjectVirtualThreads, Normalize, Pass, SplitThreads, run_pipeline
from tirlite.schedules.auto import ScheduleTemporaries

GROUP = 10
TARGET = target_of(2)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first" in metafunc.fixturenames:
        metafunc.parametrize("first", range(0, metafunc.config.getoption("--programs") // 10, GROUP))


def drawn(seed: int) -> tuple[Pass, ...]:
    """Some passes, threads taken apart before or not."""
    random = Random(seed)
    threads = (InjectVirtualThreads(), SplitThreads()) if random.random() < 0.5 else ()
    return (Normalize(), *threads, *drawn_passes(random))


def test_programs_of_all_kinds_keep_their_meaning(first: int) -> None:
    for seed in range(first, first + GROUP):
        program = generate(seed)
        wanted = outcomes(program)
        after = run_pipeline(program.func, drawn(seed))
        validate(after)
        assert_same(wanted, outcomes(program, func=after))
        if seed % 5 == 0:
            kernel = compiled(after, seed, ("share", "pack")[seed % 2])
            assert_same(wanted, outcomes(program, partial(call, kernel), func=after))


def compiled(func: tl.PrimFunc, seed: int, strategy: str) -> Callable[..., object]:
    """Native code. LLVM tries hard for one in four."""
    kernel = tl.compile(func, strategy=strategy, target=TARGET)
    return at_effort(Effort.FULL if seed % 20 == 0 else Effort.NONE, kernel)


def call(kernel: Callable[..., object], func: tl.PrimFunc, values: Arguments) -> None:
    kernel(*(values[param] for param in func.params))


def test_programs_of_stages_keep_their_meaning(first: int) -> None:
    for seed in range(first, first + GROUP):
        before = Normalize()(generate_stages(seed))
        after = run_pipeline(before, (ScheduleTemporaries(),) if seed % 2 else drawn(seed))
        validate(after)
        kernel = compiled(after, seed, "share") if seed % 5 == 0 else None
        assert_same_rows(before, after, kernel, seed)


def assert_same_rows(before: tl.PrimFunc, after: tl.PrimFunc, kernel: Callable[..., object] | None, seed: int) -> None:
    """That functions over x and y do the same at some sizes, and a kernel too, if there is one."""
    runs = [interpreter(func) for func in (before, after)]
    for n, m in ((0, 2), (1, 3), (2, 1), (3, 2), (4, 3), (7, 2)):
        arrays = [np.random.default_rng([seed, k]).standard_normal((n, m), np.float32) for k in (1, 2)]
        found = []
        for func, run in zip((before, after), runs, strict=True):
            x, y = (array.copy() for array in arrays)
            run(dict(zip((*func.params, *func.dims), (x, y, n, m), strict=True)))
            found.append(y)
        np.testing.assert_array_equal(found[1], found[0], err_msg=f"seed {seed}, n = {n}, m = {m}")
        if kernel is not None:
            x, y = (array.copy() for array in arrays)
            kernel(x, y)
            np.testing.assert_array_equal(y, found[0], err_msg=f"seed {seed}, compiled, n = {n}, m = {m}")


def test_marked_buffers_are_filled_ahead(first: int) -> None:
    for seed in range(first, first + GROUP, 5):
        before = Normalize()(generate_doubled(seed))
        after = doubled(before)
        if after is not None:
            validate(after)
            kernel = compiled(after, seed, "auto") if seed % 50 == 0 else None
            assert_same_rows(before, after, kernel, seed)


def test_many_can_be_filled_ahead() -> None:
    assert sum(doubled(Normalize()(generate_doubled(seed))) is not None for seed in range(30)) >= 8


def test_stages_are_fused_and_contracted() -> None:
    counts = Counter[str]()
    for seed in range(60):
        trace = ScheduleTemporaries().scheduled(Facts(Normalize()(generate_stages(seed))))
        assert trace is not None
        counts.update({each.name for each in trace.taken})
    assert all(counts[name] >= 5 for name in ("join", "shrink", "store-at"))
