"""What a plan tells of a kernel: why two buffers do not go in place, and what lives at the peak."""

from __future__ import annotations

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def mirrored(x: tl.f32[n], y: tl.f32[n]):
    a = tl.alloc(tl.f32[n])
    b = tl.alloc(tl.f32[n])
    for i in range(n):
        a[i] = 2 * x[i]
    for i in range(n):
        b[i] = a[n - 1 - i]
    for i in range(n):
        y[i] = b[i]


def test_a_refused_pair_comes_with_the_condition_that_failed() -> None:
    text = mirrored.plan.explain("a", "b")
    assert "`b` cannot overwrite `a` in place: `b[i]` may be written before `a[n - 1 - i]` is read" in text
    assert mirrored.plan.explain("b", "a").endswith(text.splitlines()[-1])


def test_a_pair_that_was_allowed_and_not_taken_is_told() -> None:
    problem = tl.plan.Problem(
        (tl.plan.Request("a", 8, ((0, 2),)), tl.plan.Request("b", 8, ((1, 3),))), in_place=(("b", "a"),)
    )
    assert "`b` could overwrite `a` in place" in tl.plan.solve(problem, "none").explain("a", "b")


def test_each_pair_is_told_without_being_asked_for_where_they_are_few() -> None:
    requests = [tl.plan.Request(f"r{k}", 8, ((k, k + 2),)) for k in range(13)]
    few, many = (tl.plan.solve(tl.plan.Problem(requests[:count]), "share").explain() for count in (12, 13))
    plan = mirrored.plan
    assert all(f"    {line}" in plan.explain().splitlines() for line in plan.explain("a", "b").splitlines())
    assert few.count("`r0` and ") == 11
    assert "78 pairs: `explain(first, second)` tells why two of them share, or do not" in many


def test_the_peak_is_told_with_what_is_live_then_as_a_formula() -> None:
    assert mirrored.plan.explain().splitlines()[-1].startswith("peak of global: 8*n bytes at time ")
    assert mirrored.plan.explain().splitlines()[-1].endswith(": a, b")


@tl.kernel(unchecked=True)
def unbounded(x: tl.i64[n], y: tl.i64[n]):
    for i in range(n):
        total = tl.i64(0)
        row = tl.alloc(tl.i64[x[i]])
        for j in range(x[i]):
            row[j] = j * i
        for j in range(x[i]):
            total += row[j]
        y[i] = total


def test_what_is_not_planned_is_told_with_the_reason() -> None:
    assert unbounded.plan.explain().splitlines() == [
        "not planned, as local memory is left to the registers: total",
        "not planned, as its size is not known on entry to the function, nor a bound on it: row",
    ]
    assert unbounded.plan.explain("row").startswith("`row` is not planned, as its size is not known on entry")
    assert unbounded.plan.explain("row", "total") == unbounded.plan.explain("row")
