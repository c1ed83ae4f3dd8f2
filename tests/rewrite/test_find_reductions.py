"""FindReductions: loops that combine values become reductions, where `reassociate` is granted."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.analysis.facts import Facts
from tirlite.driver.build import version_of
from tirlite.driver.front import Front
from tirlite.rewrite import FindReductions, Normalize
from tirlite.rewrite.forms import Form
from tirlite.rewrite.options import Options

HEADER = """
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n], y: tl.f32[n], k: tl.i32[n]):
"""


def rewritten(body: str) -> tl.PrimFunc:
    return FindReductions()(Normalize()(tl.parse(HEADER + body)))


def under(grant: str, *lines: str) -> str:
    return f'    with tl.allow("{grant}"):\n' + "".join(f"        {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("loop", "update"),
    [
        ("for i in range(n):", "y[0] += x[i] * x[i]"),
        ("for i in range(1, n):", "y[0] = max(y[0], x[i - 1])"),
        ("for i in range(n):", "y[k[i]] *= x[i]"),
        ("for i in range(n):", "y[0] -= x[i]"),
    ],
)
def test_a_loop_that_combines_is_a_reduction(loop: str, update: str) -> None:
    found = rewritten(under("reassociate", loop, f"    {update}"))
    wanted = rewritten(under("reassociate", loop.replace("range", "tl.reduce"), f"    {update}"))
    assert tl.structural_equal(found, wanted), f"{found}\nis not\n{wanted}"


@pytest.mark.parametrize(
    ("condition", "kept"),
    [("x[i] < y[0]", "x[i]"), ("y[0] >= x[i]", "x[i]"), ("x[i] >= y[0]", "x[i]"), ("y[0] < x[i] * 2", "x[i] * 2")],
)
def test_what_keeps_the_least_value_by_a_branch_is_a_reduction(condition: str, kept: str) -> None:
    loop = "for i in range(n):"
    found = rewritten(under("reassociate", loop, f"    if {condition}:", f"        y[0] = {kept}"))
    choice = f"    y[0] = tl.select({condition}, {kept}, y[0])"
    wanted = rewritten(under("reassociate", loop.replace("range", "tl.reduce"), choice))
    assert tl.structural_equal(found, wanted), f"{found}\nis not\n{wanted}"


@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "u1"])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_least_and_the_greatest_by_branches_are_those_in_order(kind: str, workers: int) -> None:
    dtype = getattr(tl, f"{kind[0]}{8 * int(kind[1])}")
    size = tl.dim("size")

    @tl.kernel(allow="reassociate", target=tl.Target.host(workers=workers))
    def ends(x: dtype[size], y: dtype[3]):
        least = dtype(7)
        greatest = odd = x[0]
        for i in range(size):
            if x[i] < least:
                least = x[i]
            if greatest <= x[i]:
                greatest = x[i]
            if x[i] != 1:
                if x[i] * 2 > odd:
                    odd = x[i] * 2
        y[0] = least
        y[1] = greatest
        y[2] = odd

    rng = np.random.default_rng(0)
    for count in (1, 2, 17, 64, 5000):
        for share in (0, 0.3, 1):
            x = rng.integers(0, 100, count).astype(kind)
            if kind.startswith("f"):
                x[rng.random(count) < share / 2] = np.inf
                x[rng.random(count) < share] = np.nan
            least, greatest, odd = x.dtype.type(7), x[0], x[0]
            for value in x:
                least = value if value < least else least
                greatest = value if greatest <= value else greatest
                twice = value + value
                odd = twice if value != 1 and twice > odd else odd
            found = np.zeros(3, kind)
            ends(x, found)
            np.testing.assert_array_equal(found, np.array([least, greatest, odd], kind))
            if count < 100:
                again = np.zeros(3, kind)
                ends.interpret(x, again)
                np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize(
    "lines",
    [
        ("for i in range(n):", "    y[i] = x[i]"),
        ("for i in range(1, n):", "    y[i] = y[i - 1] + x[i]"),
        ("for i in range(n):", "    y[0] = y[0] + x[i]", "    y[1] = y[0]"),
        ("for i in range(n):", "    y[0] = y[0] + x[i]", "    y[0] = max(y[0], 1)"),
        ("for i in tl.parallel(n):", "    y[i] += x[i]"),
        ("for i in range(n):", "    if x[i] < y[k[i]]:", "        y[k[i]] = x[i]"),
        ("for i in range(n):", "    if x[i] < y[0]:", "        y[0] = 2 * x[i]"),
        ("for i in range(n):", "    if x[i] < y[0]:", "        y[0] = x[i]", "    else:", "        y[0] = y[0]"),
        ("for i in range(n):", "    if x[i] < y[0]:", "        y[0] = x[i]", "    y[0] = min(y[0], x[i])"),
    ],
)
def test_other_loops_stay_as_they_are(lines: tuple[str, ...]) -> None:
    body = under("reassociate", *lines)
    func = Normalize()(tl.parse(HEADER + body))
    assert FindReductions()(func) is func


def test_without_the_grant_loops_go_on_in_order() -> None:
    func = Normalize()(tl.parse(HEADER + under("contract", "for i in range(n):", "    y[0] += x[i]")))
    assert FindReductions()(func) is func


def test_of_nested_loops_those_are_taken_that_hold_no_others() -> None:
    lines = ("for j in range(n):", "    for i in range(n):", "        y[j] += x[i]")
    inner = (lines[0], lines[1].replace("range", "tl.reduce"), lines[2])
    assert tl.structural_equal(rewritten(under("reassociate", *lines)), rewritten(under("reassociate", *inner)))


def test_loops_over_several_axes_become_reductions_together() -> None:
    lines = ("for j in range(n):", "    for i in range(n):", "        y[0] += x[i] * x[j]")
    both = tuple(line.replace("range", "tl.reduce") for line in lines)
    assert tl.structural_equal(rewritten(under("reassociate", *lines)), rewritten(under("reassociate", *both)))


def test_a_regrouped_sum_is_what_the_lowered_function_says() -> None:
    n = tl.dim("n")

    @tl.kernel(allow="reassociate")
    def norm(x: tl.f32[n], y: tl.out[tl.f32[1]]):
        total = tl.f32(0)
        for i in range(n):
            total += x[i] * x[i]
        y[0] = total

    x = np.random.default_rng(0).uniform(-1, 1, 1000).astype(np.float32)
    found = norm(x)
    assert "tl.ramp" in str(norm.lowered), "the sum goes by vectors"
    assert found == tl.compile(norm.lowered).interpret(x)
    exact = np.sum(x.astype(np.float64) ** 2)
    assert abs(found[0] - exact) <= 1000 * np.finfo(np.float32).eps * exact


INTEGERS = """
n = tl.dim("n")

@tl.kernel
def f(x: tl.i32[n, n], y: tl.i32[n], z: tl.f32[n]):
"""


def of_integers(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return str(FindReductions(integers=True)(Normalize()(tl.parse(INTEGERS + body))))


@pytest.mark.parametrize(
    "lines",
    [
        ("for i in range(n):", "    y[0] += x[i, 0]"),
        ("for i in range(n):", "    for j in range(n):", "        y[0] = max(y[0], x[i, j])"),
        ("for i in range(n):", "    if x[i, 0] > 0:", "        y[0] += 1"),
        ("for i in range(n):", "    y[x[i, 0] & 1] ^= x[i, 0]"),
    ],
)
def test_workers_may_share_a_nest_that_combines_integers(lines: tuple[str, ...]) -> None:
    assert of_integers(*lines) == of_integers(*(line.replace("range", "tl.reduce") for line in lines))


def test_a_function_that_goes_over_arrays_waits_for_large_ones() -> None:
    def waits(*lines: str) -> int:
        func = Normalize()(tl.parse(INTEGERS + "".join(f"    {line}\n" for line in lines)))
        found = FindReductions(integers=True, shared_from=1000).on(Facts(func))
        assert (found.func is func) is bool(found.limits.large_from)
        return found.limits.large_from

    assert waits("for i in range(n):", "    y[0] += x[i, 0]") == 4000
    assert waits("for i in range(n):", "    z[i] = 0", "for i in range(n):", "    y[x[i, 0] & 1] += 1") == 4000
    assert waits("for i in range(n):", "    for j in range(n):", "        y[0] += x[i, j]") == 0
    assert waits("for i in range(n):", "    y[0] += tl.i32(i & 1)") == 0


@pytest.mark.parametrize(
    "lines",
    [
        ("for i in range(n):", "    z[0] += tl.f32(x[i, 0])"),
        ("for i in range(n):", "    y[0] += x[i, 0]", "    z[0] = max(z[0], 1)"),
        ("for i in range(n):", "    y[i] += x[i, 0]"),
        ("for i in range(n):", "    for j in range(n):", "        y[i] += x[i, j]"),
        ("for i in range(1, n):", "    y[i] += y[i - 1]"),
    ],
)
def test_sums_of_floats_and_loops_below_others_stay(lines: tuple[str, ...]) -> None:
    assert "tl.reduce" not in of_integers(*lines)


def test_a_count_is_shared_by_workers_unless_loops_run_as_written() -> None:
    n = tl.dim("n")

    @tl.kernel
    def above(x: tl.f32[n], y: tl.out[tl.i64[1]]):
        y[0] = 0
        for i in range(n):
            if x[i] > 0.5:
                y[0] += 1

    x = np.random.default_rng(1).uniform(0, 1, 300_000).astype(np.float32)
    as_written = tl.compile(above, schedule=None)
    assert above(x) == as_written(x) == np.count_nonzero(x > 0.5)
    target = tl.Target("x86-64-v3", workers=2)

    def lowered(form: Form) -> str:
        return str(version_of(Front(above.ir), Options(target=target), is_empty=False, form=form).rewritten.func)

    assert "tl.parallel" in lowered(Form.LARGE)
    assert "tl.parallel" not in lowered(Form.USUAL)
    assert version_of(Front(above.ir), Options(target=target), is_empty=False, form=Form.USUAL).limits.large_from > 0
    assert "tl.parallel" not in str(as_written.lowered)
