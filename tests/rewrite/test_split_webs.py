"""SplitWebs, before and after: a buffer that serves unrelated values becomes several."""

from __future__ import annotations

from functools import partial
from random import Random
from textwrap import dedent

import numpy as np
import pytest
from every import every
from parsed import parsed
from random_cases import IS_THOROUGH

import tirlite as tl
from tirlite.interp import interpret
from tirlite.ir import Builder, Store, f32, validate
from tirlite.rewrite import Normalize, SplitWebs, StorageRewrite

HEADER = 'n = tl.dim("n", min=0)\nm = tl.dim("m")\n\n@tl.kernel\ndef f(x: tl.f32[n, m], y: tl.f32[n, m]):\n'


kernel = partial(parsed, HEADER)


def split(func: tl.PrimFunc) -> tl.PrimFunc:
    after = SplitWebs()(Normalize()(func))
    validate(after)
    return after


def expect_split(before: str, after: str) -> None:
    assert str(split(kernel(before))).strip() == str(kernel(after)).strip()


def expect_whole(body: str) -> None:
    """That nothing is split."""
    func = Normalize()(kernel(body))
    assert split(func) is func


def test_a_buffer_used_twice_becomes_two() -> None:
    expect_split(
        """
        t = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                t[i, j] = x[i, j]
        for i in range(n):
            y[i, 0] = t[i, 0]
        for i in range(n):
            for j in range(m):
                t[i, j] = 2 * x[i, j]
        for i in range(n):
            y[i, 0] += t[i, 0]
        """,
        """
        t = tl.alloc(tl.f32[n, m])
        t_1 = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                t[i, j] = x[i, j]
        for i in range(n):
            y[i, 0] = t[i, 0]
        for i in range(n):
            for j in range(m):
                t_1[i, j] = 2 * x[i, j]
        for i in range(n):
            y[i, 0] += t_1[i, 0]
        """,
    )


USED = """
t = tl.alloc(tl.f32[{extent}])
for i in range({extent}):
    t[i] = x[0, i]
y[0, 0] = t[0]
{again}
y[0, 1] = t[1]
"""


def is_split(again: str, extent: str = "m") -> bool:
    """Whether `t`, written and read, begins anew with the statement `again`."""
    func = Normalize()(kernel(USED.format(extent=extent, again=dedent(again).strip())))
    return split(func) is not func


@every(
    "again, extent",
    [
        ("for i in range(m - 1, -1, -1):\n    t[i] = 1.0", "m"),
        ("for i in range(m):\n    t[m - 1 - i] = 1.0", "m"),
        ("for i in tl.parallel(m):\n    t[i] = 1.0", "m"),
        ("for i in range(m):\n    k = m - i\n    t[k - 1] = 1.0", "m"),
        ("for i in range(m):\n    for j in range(4):\n        t[4 * i + j] = 1.0", "4 * m"),
        ("for j in range(4):\n    for i in range(m):\n        t[4 * i + j] = 1.0", "4 * m"),
        ("for j in range(4):\n    for i in range(m):\n        t[m * j + i] = 1.0", "4 * m"),
        (
            "for i in range(m // 4 + 1):\n for j in range(4):\n  k = 4 * i + j\n  if k < m:\n   t[k] = 1.0",
            "m",
        ),
        ("for i in range(0, m, 4):\n    for j in range(4):\n        if i + j < m:\n            t[i + j] = 1.0", "m"),
        ("for k in range(3):\n    for i in range(m):\n        t[i] = tl.f32(k)", "m"),
        ("for k in range(m):\n    for i in range(m):\n        t[i] = tl.f32(k)", "m"),
        ("for i in range(2):\n    t[tl.ramp(4 * i, 1, 4)] = tl.broadcast(tl.f32(1), 4)", "8"),
        ("for i in range(m):\n    t[i] = 0.0\n    for j in range(m):\n        t[i] += x[0, j]", "m"),
        ("for i in range(m):\n    t[0] = 1.0\n    t[i] = 0.0", "m"),
        # several stores together
        ("for i in range(m):\n    if x[0, i] > 0:\n        t[i] = 1.0\n    else:\n        t[i] = 0.0", "m"),
        (
            "for i in range(m):\n    if i < 3:\n        t[i] = 1.0\n    else:\n        t[i] = 0.0\n    t[i] += 1.0",
            "m",
        ),
        ("for i in range(m // 2):\n    t[i] = 1.0\nfor i in range(m // 2, m):\n    t[i] = 0.0", "m"),
        ("for i in range(2, m + 2):\n    t[i] = 1.0\nt[1] = 0.0\nt[0] = 0.0", "m + 2"),
        ("for i in range(m):\n    t[i] = 1.0\nfor i in range(m):\n    t[m + i] = 0.0", "2 * m"),
    ],
)
def test_what_writes_all_elements_begins_anew(again: str, extent: str) -> None:
    assert is_split(again, extent)


@every(
    "again, extent",
    [
        ("for i in range(m - 1):\n    t[i] = 1.0", "m"),  # not the last
        ("for i in range(1, m):\n    t[i] = 1.0", "m"),  # not the first
        ("for i in range(0, m, 2):\n    t[i] = 1.0", "m"),  # not the odd ones
        ("for i in range(m // 2):\n    t[2 * i] = 1.0", "m"),
        ("for i in range(m // 4):\n    for j in range(4):\n        t[4 * i + j] = 1.0", "m"),  # not the rest
        ("for i in range(m):\n    for j in range(4):\n        t[5 * i + j] = 1.0", "5 * m"),  # every fifth is left out
        ("for i in range(m):\n    if x[0, i] > 0:\n        t[i] = 1.0", "m"),  # under a condition
        ("for i in range(m):\n    if i < m - 1:\n        t[i] = 1.0", "m"),
        ("for i in range(m):\n    t[i] = t[i] + 1.0", "m"),  # reads the old values
        ("for i in range(m):\n    t[i] = 1.0\n    y[0, 0] = t[m - 1]", "m"),
        ("for i in range(m):\n    y[0, i] = t[i]\n    t[i] = 1.0", "m"),
        ("for k in range(n):\n    for i in range(m):\n        t[i] = tl.f32(k)", "m"),  # n may be 0
        ("for i in range(m):\n    for j in range(i, m):\n        t[j] = 1.0", "m"),  # not seen
        ("for i in range(m):\n    t[i * i % m] = 1.0", "m"),
        ("v = tl.view(t, tl.f32[m])\nfor i in range(m):\n    v[i] = 1.0", "m"),
        # not all of it, or not before it is read
        ("for i in range(m - 1):\n    if x[0, i] > 0:\n        t[i] = 1.0\n    else:\n        t[i + 1] = 0.0", "m"),
        ("for i in range(m):\n    if x[0, i] > 0:\n        t[i] = 1.0\n    else:\n        t[i] = t[i] + 1.0", "m"),
        ("for i in range(m):\n    if t[i] > 0:\n        t[i] = 1.0\n    else:\n        t[i] = 0.0", "m"),
        ("for i in range(m // 2):\n    t[i] = 1.0\nfor i in range(m // 2 + 1, m):\n    t[i] = 0.0", "m"),
        ("for i in range(m // 2):\n    t[i] = 1.0\nfor i in range(m // 2, m):\n    t[i] = t[0]", "m"),
        ("for i in range(m):\n    t[i] = 1.0\ny[0, 0] = t[m]\nfor i in range(m):\n    t[m + i] = 0.0", "2 * m"),
        ("if n > 1:\n    for i in range(m):\n        t[i] = 1.0\nfor i in range(m):\n    t[m + i] = 0.0", "2 * m"),
    ],
)
def test_what_may_leave_an_old_value_goes_on(again: str, extent: str) -> None:
    assert not is_split(again, extent)


def test_both_branches_of_an_if_may_begin_anew() -> None:
    expect_split(
        """
        t = tl.alloc(tl.f32[8])
        for i in range(8):
            t[i] = x[0, i]
        y[0, 0] = t[0]
        if m > 9:
            for i in range(8):
                t[i] = 1.0
        else:
            for i in range(8):
                t[i] = 2.0
        y[0, 1] = t[1]
        """,
        """
        t = tl.alloc(tl.f32[8])
        t_1 = tl.alloc(tl.f32[8])
        for i in range(8):
            t[i] = x[0, i]
        y[0, 0] = t[0]
        if m > 9:
            for i in range(8):
                t_1[i] = 1.0
        else:
            for i in range(8):
                t_1[i] = 2.0
        y[0, 1] = t_1[1]
        """,
    )


def test_one_branch_alone_does_not_end_the_old_value() -> None:
    expect_whole(
        """
        t = tl.alloc(tl.f32[8])
        for i in range(8):
            t[i] = x[0, i]
        y[0, 0] = t[0]
        if m > 9:
            for i in range(8):
                t[i] = 1.0
        y[0, 1] = t[1]
        """
    )


def test_the_parts_are_allocated_in_the_body_that_holds_them() -> None:
    expect_split(
        """
        t = tl.alloc(tl.f32[m])
        for b in range(n):
            for i in range(m):
                t[i] = x[b, i]
            y[b, 0] = t[0]
            if b > 3:
                for i in range(m):
                    t[i] = 2 * x[b, i]
                y[b, 1] = t[1]
        """,
        """
        for b in range(n):
            t = tl.alloc(tl.f32[m])
            for i in range(m):
                t[i] = x[b, i]
            y[b, 0] = t[0]
            if b > 3:
                t_1 = tl.alloc(tl.f32[m])
                for i in range(m):
                    t_1[i] = 2 * x[b, i]
                y[b, 1] = t_1[1]
        """,
    )


def test_a_value_carried_to_the_next_iteration_keeps_a_buffer_whole() -> None:
    expect_whole(
        """
        t = tl.alloc(tl.f32[m])
        for i in range(m):
            t[i] = 0.0
        for b in range(n):
            y[b, 0] = t[0]
            for i in range(m):
                t[i] = x[b, i]
            y[b, 1] = t[1]
            for i in range(m):
                t[i] = 2 * x[b, i]
        """
    )


def test_a_value_that_a_while_tests_is_carried() -> None:
    expect_whole(
        """
        t = tl.alloc(tl.f32[2])
        t[0] = 1.0
        t[1] = 1.0
        while t[0] < 9.0:
            for i in range(2):
                t[i] = 2 * t[i]
            y[0, 0] = t[1]
            for i in range(2):
                t[i] = 10.0
        """
    )


def test_a_view_is_of_one_part() -> None:
    expect_split(
        """
        t = tl.alloc(tl.f32[8])
        v = tl.view(t, tl.f32[4], byte_offset=16)
        for i in range(8):
            t[i] = x[0, i]
        y[0, 0] = t[0]
        for i in range(8):
            t[i] = 1.0
        y[0, 1] = v[1]
        """,
        """
        t = tl.alloc(tl.f32[8])
        t_1 = tl.alloc(tl.f32[8])
        v = tl.view(t_1, tl.f32[4], byte_offset=16)
        for i in range(8):
            t[i] = x[0, i]
        y[0, 0] = t[0]
        for i in range(8):
            t_1[i] = 1.0
        y[0, 1] = v[1]
        """,
    )


@pytest.mark.parametrize(
    "again",
    [
        'tl.call_extern("i32", "abs", tl.address_of(t[0]))',
        'with tl.attr(t, "double_buffer"):\n    y[0, 0] = t[0]',
        'with tl.attr("extern_scope"):\n    y[0, 0] = t[0]',
    ],
)
def test_opaque_and_remarked_buffers_stay_whole(again: str) -> None:
    assert is_split("for i in range(m):\n    t[i] = 1.0")
    assert not is_split(again + "\nfor i in range(m):\n    t[i] = 1.0")


def test_a_statement_object_that_stands_twice_keeps_its_buffer() -> None:
    b = Builder("f")
    y, t = b.param("y", f32[4]), b.alloc("t", f32[1])
    again = Store(y, y[0].indices, t[0])
    b.store(t, 0, 1.0)
    b.add(again)
    b.store(t, 0, 2.0)
    b.add(again)
    func = Normalize()(b.build())
    assert split(func) is func


REUSED = """
t = tl.alloc(tl.f32[m])
for i in range(m):
    t[i] = x[0, i] + 1
u = tl.alloc(tl.f32[m])
for i in range(m):
    u[i] = t[m - 1 - i]
v = tl.alloc(tl.f32[m])
for i in range(m):
    v[i] = u[m - 1 - i]
for i in range(m):
    t[i] = v[m - 1 - i]
for i in range(m):
    y[0, i] = t[i]
"""


@pytest.mark.parametrize("size", ["m", "n * m"], ids=["at least 1", "maybe 0"])
def test_storage_rewrite_splits_where_that_takes_less(size: str) -> None:
    """While `u` and `v` live, `t` does not: as a whole it keeps its bytes."""
    reused = (
        REUSED.replace("f32[m]", f"f32[{size}]").replace("range(m)", f"range({size})").replace("m - 1", f"{size} - 1")
    )
    func = Normalize()(kernel(reused.replace("y[0, i]", "y[0, 0]").replace("x[0, i]", "x[0, 0]")))
    whole = tl.allocations(StorageRewrite("share", in_place=False, webs=False)(func))
    parts = tl.allocations(StorageRewrite("share", in_place=False)(func))
    assert [len(whole), len(parts)] == [3, 2]


def test_storage_rewrite_leaves_whole_what_takes_no_more() -> None:
    body = "t = tl.alloc(tl.f32[m])\n" + 2 * "for i in range(m):\n    t[i] = x[0, i]\ny[0, 0] = t[0]\n"
    func = Normalize()(kernel(body))
    assert split(func) is not func
    assert len(tl.allocations(StorageRewrite("share")(func))) == 1


def test_what_does_not_fit_into_tagged_memory_as_a_whole_is_split() -> None:
    body = REUSED.replace("f32[m]", 'f32[8], scope="local.UB"')
    func = Normalize()(kernel(body.replace("range(m)", "range(8)").replace("m - 1", "7")))
    target = tl.Target.host().with_memory("local.UB", tl.MemoryInfo(8, 8, 8 * 64))
    assert [each.bytes for each in tl.allocations(StorageRewrite(target=target, in_place=False)(func))] == [64]
    with pytest.raises(tl.PlanError, match="local.UB"):
        StorageRewrite(target=target, in_place=False, webs=False)(func)


def random_body(random: Random, depth: int = 0) -> list[str]:
    """Statements on `t` and `u` of 4 elements each: whole and partial writes, reads, ifs and loops."""
    lines: list[str] = []
    for _ in range(random.randint(2, 5)):
        t, k = random.choice("tu"), random.randint(0, 3)
        kind = random.randrange(8 if depth < 3 else 5)
        if kind < 2:
            start, stop = random.choice([(0, 4), (0, 4), (0, 4), (1, 4), (0, 3), (0, 2), (2, 4)])
            store = f"{t}[i] = x[0, i] + {random.randint(0, 99)}.0"
            other = f"        {t}[{random.choice('iii0')}] = {k}.0"
            both = ["    if x[0, i] > 0.0:", f"        {store}", "    else:", other]
            lines += [f"for i in range({start}, {stop}):", *(both if random.random() < 0.3 else [f"    {store}"])]
            if (start, stop) in ((0, 2), (2, 4)):
                lines += [f"for i in range({(start + 2) % 4}, {stop % 4 + 2}):", f"    {t}[i] = 5.0"]
        elif kind == 2:
            lines += [f"{t}[{k}] = {random.randint(0, 99)}.0"]
        elif kind < 5:
            lines += [f"y[0, {k}] = y[0, {k}] * 2.0 + {t}[{random.randint(0, 3)}]"]
        else:
            head = ["if x[0, {k}] > 0.0:", "for r{depth} in range({k}):", "for r{depth} in range(2):"][kind - 5]
            lines += [head.format(k=k, depth=depth), *("    " + line for line in random_body(random, depth + 1))]
            if kind == 5 and random.random() < 0.6:
                lines += ["else:", *("    " + line for line in random_body(random, depth + 1))]
    return lines


def result(func: tl.PrimFunc, seed: int) -> np.ndarray:
    """What `func` leaves in `y`, for n = 1 and m = 4."""
    x, y = np.random.default_rng(seed).standard_normal((2, 1, 4)).astype(np.float32)
    interpret(func, dict(zip((*func.dims, *func.params), (1, 4, x, y), strict=True)))
    return np.asarray(y)


SEEDS = range(150 if IS_THOROUGH else 60)


def test_random_programs_mean_the_same_when_split() -> None:
    """All is written first, so that no value is poison; then only what the split drops could be."""
    count = 0
    for seed in SEEDS:
        random = Random(seed)
        start = ["t = tl.alloc(tl.f32[4])", "u = tl.alloc(tl.f32[4])"]
        start += ["for i in range(4):", "    t[i] = 1.0", "    u[i] = 2.0"]
        func = Normalize()(kernel("\n".join([*start, *random_body(random)])))
        after = split(func)
        count += after is not func
        np.testing.assert_array_equal(result(after, seed), result(func, seed), err_msg=f"seed {seed}")
    assert count > len(SEEDS) // 5
