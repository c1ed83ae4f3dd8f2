"""Quotients of vectors under `approximate`: where dividing takes most of the time, by reciprocals, within a few ULP."""

from __future__ import annotations

import numpy as np
import pytest
from effort import effort
from every import every

import tirlite as tl
from tirlite.analysis.facts import Facts
from tirlite.codegen import Effort
from tirlite.ir import Op, Store, statements_of
from tirlite.ir.expr import Call, Div
from tirlite.ir.walk import walk
from tirlite.rewrite import Normalize, VectorizeLoops
from tirlite.rewrite.forms import Form

SOURCE = """
n = tl.dim("n")

@tl.kernel(allow="approximate")
def f(x: tl.f32[n], y: tl.f32[n], at: tl.f32[n], out: tl.out[tl.f32[n]]):
    for j in range(n):
        s = tl.f32(0)
        for i in tl.reduce(n):
            s += {term}
        out[j] = s
"""
WORK = " + ".join(f"abs(at[j] - {place}.0)" for place in range(6))
SLOW = tl.Target("x86-64-v4", workers=1)


def lowered(term: str, target: tl.Target = SLOW) -> tl.PrimFunc:
    return tl.compile(tl.parse(SOURCE.format(term=term)), target=target).lowered


def functions(func: tl.PrimFunc) -> set[Op]:
    fast = (Op.FAST_RECIPROCAL, Op.FAST_RSQRT)
    return {node.op for node in walk(func.body) if isinstance(node, Call) and node.op in fast}


@every(
    "term, wanted",
    [
        ("1.0 / (1.0 + x[i] * at[j])", {Op.FAST_RECIPROCAL}),
        ("x[i] / (y[i] - at[j])", {Op.FAST_RECIPROCAL}),
        ("x[i] / tl.sqrt(y[i] + at[j])", {Op.FAST_RSQRT}),
        ("x[i] / (at[j] * tl.sqrt(y[i] + at[j]))", {Op.FAST_RSQRT, Op.FAST_RECIPROCAL}),
        # A root that stays keeps the divider busy, so that a quotient with some work beside it is better off elsewhere.
        (f"({WORK}) / (tl.sqrt(at[j]) + y[i])", {Op.FAST_RECIPROCAL}),
        (f"({WORK}) / (at[j] + y[i])", set()),
        # An elementary function keeps the processor busy while it divides.
        ("1.0 / (1.0 + tl.exp(x[i] - at[j]))", set()),
        ("x[i] * at[j]", set()),
    ],
)
def test_what_takes_most_of_a_loop_is_approximated(term: str, wanted: set[Op]) -> None:
    assert functions(lowered(term)) == wanted


@every("name", ["x86-64-v3", "x86-64-v2", "aarch64"])
def test_processors_that_divide_quickly_divide(name: str) -> None:
    func = lowered("1.0 / (1.0 + x[i] * at[j])", tl.Target(name, workers=1))
    assert not functions(func)
    assert any(isinstance(node, Div) for node in walk(func.body))


def test_elements_one_by_one_are_divided() -> None:
    func = tl.parse(
        """
n = tl.dim("n")

@tl.kernel(allow="approximate")
def f(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    y[0] = x[0]
    for i in range(1, n):
        y[i] = x[i] / (y[i - 1] + 2.0)
"""
    )
    assert not functions(tl.compile(func, target=SLOW).lowered)


# Zeros, denormals, the ends of the range, infinities and nan.
BITS = (0, 1, 0x1FFFFF, 0x200001, 0x3FFFFF, 0x7FFFFF, 0x800000, 0x7E7FFFFF, 0x7E800000, 0x7EFFFFFF, 0x7F000000)
BITS += (0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x3F800000, 0x3F7FFFFF, 0x40490FDB)


def numbers(seed: int, count: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    special = np.array([*BITS, *(bits | 0x80000000 for bits in BITS)], np.uint32)
    usual = random.integers(0, 1 << 32, count - special.size, dtype=np.uint64).astype(np.uint32)
    return random.permutation(np.concatenate([special, usual])).view(np.float32)


@every("op, most", [(Op.FAST_RECIPROCAL, 1.1), (Op.FAST_RSQRT, 1.5)])
@pytest.mark.parametrize("lanes", [1, 4, 64])
def test_a_reciprocal_errs_by_little_and_never_where_there_is_no_start(op: Op, most: float, lanes: int) -> None:
    source = f"""
@tl.kernel
def f(x: tl.f32[4096], y: tl.out[tl.f32[4096]]):
    for i in range(4096 // {lanes}):
        y[tl.ramp(i * {lanes}, 1, {lanes})] = tl.{op.label}(x[tl.ramp(i * {lanes}, 1, {lanes})], fast=True)
"""
    kernel = tl.compile(tl.parse(source if lanes > 1 else source.replace("tl.ramp(i * 1, 1, 1)", "i")), schedule=None)
    x = numbers(lanes, 4096)
    y = kernel(x)
    np.testing.assert_array_equal(y.view(np.uint32), kernel.interpret(x).view(np.uint32))
    with np.errstate(all="ignore"):
        exact = 1 / (x.astype(np.float64) if op is Op.FAST_RECIPROCAL else np.sqrt(x.astype(np.float64)))
        rounded = exact.astype(np.float32)
    usual = np.isfinite(rounded)
    np.testing.assert_array_equal(y[~usual], rounded[~usual])
    assert np.max(np.abs(y[usual] - exact[usual]) / np.spacing(np.abs(rounded[usual])).astype(np.float64)) <= most


@every("seed", range(12))
def test_code_is_the_interpreter_and_near_what_is_written(seed: int) -> None:
    random = np.random.default_rng(seed)
    tops = ("1.0", "x[i]", "x[i] - at[j]", "tl.f32(3)")
    below = ("(y[i] - at[j])", "(1.0 + y[i] * at[j])", "tl.sqrt(y[i] + at[j])", "(at[j] * tl.sqrt(y[i]))")
    term = f"{random.choice(tops)} / {random.choice(below)}"
    with effort(Effort.NONE):
        kernel = tl.compile(tl.parse(SOURCE.format(term=term)), target=tl.Target.host(workers=1))
    low = tl.compile(kernel.lowered, schedule=None)
    for size in (1, 15, 40, 70):
        x, y, at = (random.uniform(0.1, 4, size).astype(np.float32) for _ in range(3))
        for place in range(3 * (seed % 3)):
            (x, y, at)[place % 3][random.integers(size)] = np.array([0, np.inf, 1e-39, 3e38])[random.integers(4)]
        with np.errstate(all="ignore"):
            got, same, exact = kernel(x, y, at), low.interpret(x, y, at), kernel.interpret(x, y, at)
        np.testing.assert_array_equal(got.view(np.uint32), same.view(np.uint32))
        if not seed % 3:
            np.testing.assert_allclose(got, exact, 1e-4, 1e-4 * float(np.max(np.abs(exact))))


ROWS = """
n, m = tl.dims("n m")

@tl.kernel(allow=("contract", "approximate"))
def f(x: tl.f32[m, n], y: tl.f32[m, n], at: tl.f32[n], out: tl.f32[m, n]):
    for i in range(m):
        for j in range(n):
{lines}
"""
LINES = (
    ("out[i, j] = {top} / {below}",),
    ("d = {below}", "out[i, j] = {top} / d"),
    ("x[i, j] = {top} / {below}",),
    ("if y[i, j] > 1:", "    out[i, j] = {top} / {below}"),
    ("if y[i, j] > 1:", "    out[i, j] = {top} / {below}", "else:", "    out[i, j] = at[j]"),
    ("out[i, j] = min({top} / {below}, at[j] / (y[i, j] + 2))",),
)
TOPS = ("1.0", "x[i, j]", "(x[i, j] - at[j])", "tl.f32(3)", "at[j]")
BELOW = ("(y[i, j] + at[j])", "tl.sqrt(y[i, j] * y[i, j] + at[j] * at[j])", "(at[j] * tl.sqrt(y[i, j]))", "y[i, j]")


@every("seed", range(18))
def test_loops_over_elements_go_by_vectors_where_they_divide(seed: int) -> None:
    random = np.random.default_rng(seed)
    given = {"top": random.choice(TOPS), "below": random.choice(BELOW)}
    lines = "\n".join(f"            {line.format(**given)}" for line in LINES[seed % len(LINES)])
    func = tl.parse(ROWS.format(lines=lines))
    assert functions(tl.compile(func, target=SLOW).lowered)
    with effort(Effort.NONE):
        kernel = tl.compile(func, target=tl.Target.host(workers=1 + seed % 2))
    low = tl.compile(kernel.lowered, schedule=None)
    for rows, columns in ((1, 1), (2, 7), (3, 33), (1, 70), (0, 5), (2, 128)):
        x, y, at = (random.uniform(0.1, 4, shape).astype(np.float32) for shape in [(rows, columns)] * 2 + [(columns,)])
        if x.size and seed % 3 == 2:
            y.flat[random.integers(y.size)] = np.array([0, np.inf, 1e-39, 3e38, np.nan])[random.integers(5)]
        results = []
        for run in (kernel, low.interpret, kernel.interpret):
            own, out = x.copy(), np.zeros_like(x)
            with np.errstate(all="ignore"):
                run(own, y, at, out)
            results.append(np.concatenate([own, out]))
        np.testing.assert_array_equal(results[0].view(np.uint32), results[1].view(np.uint32))
        np.testing.assert_allclose(results[0], results[2], 1e-6, 1e-37)


@every("form, has_large", [(Form.USUAL, True), (Form.LARGE, False), (Form.ALONE, False)])
def test_large_arrays_keep_a_version_of_their_own(form: Form, has_large: bool) -> None:
    func = Normalize()(tl.parse(ROWS.format(lines="            out[i, j] = x[i, j] / (y[i, j] + at[j])")))
    found = VectorizeLoops(target="x86-64-v4", form=form).on(Facts(func))
    assert bool(found.limits.large_from) is has_large
    assert any(store.value.dtype.lanes > 1 for store in statements_of(found.func.body, Store))


@every("place, is_faster", [("j", True), ("3 * j", False), ("(n - 1 - j)", True)])
def test_elements_that_lie_apart_are_left_to_llvm(place: str, is_faster: bool) -> None:
    func = tl.parse(f"""
    n = tl.dim("n")

    @tl.kernel(allow="approximate")
    def f(x: tl.f32[3 * n], out: tl.f32[n]):
        for j in range(n):
            out[j] = 1 / (x[{place}] + 1)
    """)
    assert bool(functions(tl.compile(func, target=SLOW).lowered)) is is_faster
