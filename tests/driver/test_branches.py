"""A function whose sizes choose between two parts is compiled part by part, and is whole for all who look at it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from threading import Barrier

import numpy as np
import numpy.typing as npt
import pytest

import tirlite as tl
from tirlite.driver.branches import branches_of, is_met
from tirlite.interp import interpret
from tirlite.ir import IfThenElse
from tirlite.runtime.workspace import quick_block

PRODUCT = """
n, m, k = tl.dims("n m k")

@tl.kernel
def product(a: tl.f32[n, k], b: tl.f32[k, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
            for p in tl.reduce(k):
                y[i, j] += a[i, p] * b[p, j]
"""
# A panel of the second factor is packed from a 32nd of the second cache on: these are enough for one of 2 MiB.
SMALL, LARGE = (5, 7, 9), (7, 131, 131)


def product() -> tl.Kernel:
    return tl.compile(tl.parse(PRODUCT))


def operands(sizes: tuple[int, int, int]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    n, m, k = sizes
    numbers = np.random.default_rng(n)
    return numbers.integers(-8, 8, (n, k)).astype(np.float32), numbers.integers(-8, 8, (k, m)).astype(np.float32)


def are_compiled(kernel: tl.Kernel) -> tuple[bool, bool]:
    branches = kernel._version.branches
    assert branches is not None
    return branches[0]._executable is not None, branches[1]._executable is not None


def test_what_workers_share_is_compiled_where_there_is_enough_for_them() -> None:
    source = """
n = tl.dim("n")

@tl.kernel(allow="contract")
def f(x: tl.f32[n], a: tl.f32, y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = a * x[i] + 1
"""
    kernel = tl.compile(tl.parse(source), target=tl.Target.host(workers=2))
    for count, known in ((7, (False, True)), (20_000, (True, True)), (8, (True, True))):
        for _ in range(20):
            np.testing.assert_array_equal(kernel(np.arange(count, dtype=np.float32), 2.0), np.arange(count) * 2 + 1)
        assert are_compiled(kernel) == known
    alone = tl.compile(tl.parse(source), target=tl.Target.host(workers=1))
    assert alone._version.branches is None


def test_each_branch_is_compiled_at_the_first_call_for_it() -> None:
    kernel = product()
    for sizes, known in ((SMALL, (False, True)), (LARGE, (True, True))):
        a, b = operands(sizes)
        np.testing.assert_array_equal(kernel(a, b), a @ b)
        assert are_compiled(kernel) == known


def test_calls_find_their_branch_however_often_they_come() -> None:
    """After some calls a compiled function looks at the arguments, for one branch and then for the other."""
    kernel = product()
    given = [operands(sizes) for sizes in (SMALL, LARGE)]
    for _ in range(12):
        for a, b in given:
            y = np.empty((len(a), b.shape[1]), np.float32)
            kernel(a, b, y)
            np.testing.assert_array_equal(y, a @ b)
            np.testing.assert_array_equal(kernel(a, b=b), a @ b)
    assert len(kernel._quick_versions) == 2
    for a, b in given:
        y = np.empty((len(a), b.shape[1]), np.float32)
        assert kernel._quick is not None
        assert kernel._quick(a, b, y) is None
        np.testing.assert_array_equal(y, a @ b)


def test_a_quick_call_for_the_other_branch_goes_on_to_it_and_no_further() -> None:
    """Arguments are looked at once for both branches, and not taken by the one that finds no room for temporaries."""
    kernel = product()
    record = ctypes.cast(quick_block().address, ctypes.POINTER(ctypes.c_int64))
    (a, b), (c, d) = given = [operands(sizes) for sizes in (LARGE, SMALL)]
    for left, right in given * 12:
        kernel(left, right, left @ right)
    assert [version.executable.elsewhere > 0 for _, version in kernel._quick_versions] == [True, True]
    call = kernel._quick
    assert call is not None
    y, z = np.zeros_like(a @ b), np.zeros_like(c @ d)
    record[0] = 1
    assert call(a, b, y) is NotImplemented
    assert call(c, d, z) is None
    assert record[0] == 1
    record[0] = 0
    assert not y.any()
    assert call(a, b, y) is None
    assert record[0] == 0
    assert call(a, b, z) is NotImplemented
    np.testing.assert_array_equal(y, a @ b)
    np.testing.assert_array_equal(z, c @ d)


def test_the_function_is_whole_for_all_who_look() -> None:
    kernel = product()
    a, b = operands(LARGE)
    y = kernel(a, b)
    assert isinstance(kernel.lowered.body.stmts[-1], IfThenElse)
    found = np.empty_like(y)
    func = kernel.lowered
    dims = {"n": len(a), "m": b.shape[1], "k": len(b)}
    given = dict(zip(func.params, (a, b, found), strict=True)) | {dim: dims[dim.name] for dim in func.dims}
    interpret(func, given)
    np.testing.assert_array_equal(found, y)
    assert str(kernel.schedule).startswith("s = tl.schedule(product)\ns.specialize('i'")
    assert "else in the other part" not in str(kernel.lowered)


def test_what_is_compiled_ahead_serves_all_calls() -> None:
    kernel = product().compile()
    for sizes in (SMALL, LARGE):
        a, b = operands(sizes)
        np.testing.assert_array_equal(kernel(a, b), a @ b)
    assert are_compiled(kernel) == (False, False)


def test_threads_that_need_different_branches() -> None:
    kernel = product()
    given = [operands(sizes) for sizes in (SMALL, LARGE)] * 20
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda each: kernel(*each), given))
    for (a, b), y in zip(given, found, strict=True):
        np.testing.assert_array_equal(y, a @ b)


def test_threads_that_come_first_together_see_the_same_branches() -> None:
    """Each saw branches of its own: a call that another thread's branch sent away then ran in order."""
    kernel = product()
    ready = Barrier(4)

    def look(_: int) -> object:
        ready.wait()
        return kernel._version.branches

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(look, range(4)))) == 1


def test_a_network_of_rows_chooses_once_for_all_heads() -> None:
    """What decides stands around the loop over heads, in which nothing else stands."""
    from tirlite.bench.definitions import attention

    assert branches_of(attention.lowered) is not None


def test_the_condition_is_that_of_the_function() -> None:
    func = tl.compile(tl.parse(PRODUCT), target=tl.Target("x86-64-v4")).lowered
    n, m, k = sorted(func.dims, key=lambda dim: "nmk".index(dim.name))
    for sizes, met in (((6, 32, 256), True), ((5, 32, 256), False), ((6, 31, 1000), False), ((6, 32, 255), False)):
        assert is_met(func, dict(zip((n, m, k), sizes, strict=True))) is met


@pytest.mark.parametrize("condition", ["x[0] > 4", "large > 4", "n > 4 and n // m > 2"])
def test_what_dims_do_not_tell_is_no_condition(condition: str) -> None:
    loops = "\n".join(f"        for i in range(n):\n            x[i] = {number}" for number in range(16))
    func = tl.parse(
        f"""
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.i64[n], y: tl.i64[m], large: tl.i64):
    if {condition}:
{loops}
    else:
{loops}
"""
    )
    assert branches_of(func) is None
    assert branches_of(tl.parse(str(func).replace(condition, "n > 4 or m > 9"))) is not None


def run(source: str, settings: Mapping[str, str]) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(tl.__file__).parent.parent), **settings}
    command = [sys.executable, "-c", dedent(source)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_another_process_finds_the_branch_that_one_has_compiled(tmp_path: Path) -> None:
    """Without a pass being run for it; for the other branch it compiles that one."""
    file = tmp_path / "products.py"
    file.write_text(f"import tirlite as tl\n{PRODUCT}")
    source = """
        import sys, numpy as np
        from products import product
        for n in map(int, sys.argv[1:] or {sizes}):
            a = np.ones((n, n), np.float32)
            assert (product(a, a) == n).all()
            print([each._rewritten is not None for each in (product._version, *product._version.branches)])
    """
    settings = {
        "TIRLITE_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join((str(Path(tl.__file__).parent.parent), str(tmp_path))),
    }
    assert run(source.format(sizes=[5]), settings) == "[True, False, True]\n"
    assert run(source.format(sizes=[5]), settings) == "[False, False, False]\n"
    assert run(source.format(sizes=[5, 200]), settings) == "[False, False, False]\n[True, True, False]\n"
    assert run(source.format(sizes=[200, 5]), settings) == "[False, False, False]\n[False, False, False]\n"
