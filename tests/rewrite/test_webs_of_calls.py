"""SplitWebs and calls: a temporary begins anew where the callee writes all of it before it reads any."""

from __future__ import annotations

from random import Random
from textwrap import indent

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.interp import interpret
from tirlite.ir import validate

DIMS = """
n = tl.dim("n")
k = tl.dim("k")
m = tl.dim("m", min=0)
d = tl.dim("d", multiple_of=4)
"""
CALLEES = """
@tl.kernel
def fill(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = 2 * x[i]

@tl.kernel
def sums(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = x[i]
    for i in range(1, n):
        y[i] += y[i - 1]

@tl.kernel
def twice(x: tl.f32[n], y: tl.f32[n]):
    t = tl.alloc(tl.f32[n])
    tl.call(fill, x, t)
    y[0] = 1.0
    tl.call(fill, t, y)

@tl.kernel
def slowly(x: tl.f32[n], y: tl.f32[n]):
    for j in range(3):
        tl.call(fill, x, y)
        y[0] += 1.0

@tl.kernel
def halves(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n // 2):
        y[i] = x[i]
    for i in range(n // 2, n):
        y[i] = 2 * x[i]

@tl.kernel
def blocks(x: tl.f32[d], y: tl.f32[d]):
    for i in range(d // 4):
        for j in range(4):
            y[4 * i + j] = x[4 * i + j]

@tl.kernel
def most(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n - 1):
        y[i] = x[i]

@tl.kernel
def some(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        if x[i] > 0:
            y[i] = x[i]

@tl.kernel
def add(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] += x[i]

@tl.kernel
def late(x: tl.f32[n], y: tl.f32[n]):
    x0 = y[0]
    for i in range(n):
        y[i] = x[i] + x0

@tl.kernel
def seen(x: tl.f32[n], y: tl.f32[n]):
    v = tl.view(y, tl.f32[n])
    for i in range(n):
        v[i] = x[i]

@tl.kernel
def inner_add(x: tl.f32[n], y: tl.f32[n]):
    tl.call(add, x, y)

@tl.kernel
def never(x: tl.f32[n], y: tl.f32[n]):
    for j in range(0):
        tl.call(fill, x, y)

@tl.kernel
def maybe(x: tl.f32[n], y: tl.f32[n]):
    if x[0] > 0:
        tl.call(fill, x, y)

@tl.kernel
def often(z: tl.f32[k], y: tl.f32[n]):
    for j in range(k):
        for i in range(n):
            y[i] = z[j]

@tl.kernel
def untouched(x: tl.f32[n], y: tl.f32[n]):
    x[0] = 1.0
"""


def kernel(body: str) -> tl.PrimFunc:
    """The kernel over x, z and y, of which z may be empty, with this body, and with the callees that it names."""
    text = "@tl.kernel\ndef f(x: tl.f32[n], z: tl.f32[m], y: tl.f32[n]):\n" + indent(body.strip("\n"), "    ")
    for callee in reversed(CALLEES.split("@tl.kernel\n")[1:]):
        if f"tl.call({callee[4 : callee.index('(')]}," in text:
            text = f"@tl.kernel\n{callee}{text}"
    return tl.parse(DIMS + text)


def split(func: tl.PrimFunc) -> tl.PrimFunc:
    after = tl.passes.SplitWebs()(tl.passes.Normalize()(func))
    validate(after)
    return after


def body_of(func: tl.PrimFunc) -> str:
    """The lines of the function's body, without those that it calls."""
    text = str(func)
    lines = text[text.index("def f(") :].strip().splitlines()[1:]
    return "\n".join(line[4:] for line in lines)


USED = """
t = tl.alloc(tl.f32[n])
tl.call(fill, x, t)
tl.call(fill, t, y)
{again}
tl.call(add, t, y)
"""


def test_a_buffer_filled_by_two_calls_becomes_two() -> None:
    assert body_of(split(kernel(USED.format(again="tl.call(sums, x, t)")))) == (
        "t = tl.alloc(tl.f32[n])\n"
        "t_1 = tl.alloc(tl.f32[n])\n"
        "tl.call(fill, x, t)\n"
        "tl.call(fill, t, y)\n"
        "tl.call(sums, x, t_1)\n"
        "tl.call(add, t_1, y)"
    )


def is_split(again: str) -> bool:
    func = tl.passes.Normalize()(kernel(USED.format(again=again)))
    return split(func) is not func


@pytest.mark.parametrize("name", ["fill", "sums", "twice", "slowly", "halves"])
def test_a_callee_that_writes_all_elements_first_begins_anew(name: str) -> None:
    assert is_split(f"tl.call({name}, x, t)")


@every("name", ["most", "some", "add", "late", "seen", "inner_add", "never", "maybe", "untouched"])
def test_a_callee_that_may_leave_or_read_an_old_value_goes_on(name: str) -> None:
    assert not is_split(f"tl.call({name}, x, t)")


@pytest.mark.parametrize(
    ("again", "begins"),
    [
        ("for j in range(3):\n    tl.call(fill, x, t)\n    y[0] += t[0]", True),
        ("for j in range(3):\n    y[0] += t[0]\n    tl.call(fill, x, t)", False),
        ("for j in range(m):\n    tl.call(fill, x, t)", False),  # m may be 0
        ("if n > 3:\n    tl.call(fill, x, t)", False),
        ("if n > 3:\n    tl.call(fill, x, t)\nelse:\n    tl.call(sums, x, t)", True),
        ("for j in range(1 + tl.i64(t[0])):\n    tl.call(fill, x, t)", False),
        ("v = tl.view(t, tl.f32[n])\ntl.call(fill, x, v)", False),
    ],
)
def test_a_call_counts_where_it_surely_happens(again: str, begins: bool) -> None:
    assert is_split(again) is begins


def test_an_extent_that_may_be_zero_proves_nothing_in_the_callee() -> None:
    """`often` fills `t` once for each element of `z`, of which there may be none."""
    assert not is_split("tl.call(often, z, t)")
    assert is_split("tl.call(often, x, t)")


def test_what_is_demanded_of_an_extent_may_be_relied_on() -> None:
    assert is_split("tl.call(blocks, x, t)")


def test_a_call_and_loops_may_alternate_and_views_stay_with_their_part() -> None:
    func = kernel(
        """
t = tl.alloc(tl.f32[n])
v = tl.view(t, tl.f32[n])
for i in range(n):
    t[i] = x[i]
tl.call(fill, t, y)
tl.call(fill, x, t)
tl.call(add, v, y)
"""
    )
    assert body_of(split(func)) == (
        "t = tl.alloc(tl.f32[n])\n"
        "t_1 = tl.alloc(tl.f32[n])\n"
        "v = tl.view(t_1, tl.f32[n])\n"
        "for i in range(n):\n"
        "    t[i] = x[i]\n"
        "tl.call(fill, t, y)\n"
        "tl.call(fill, x, t_1)\n"
        "tl.call(add, v, y)"
    )


def test_a_part_that_calls_fill_is_allocated_in_the_loop_that_holds_it() -> None:
    func = kernel(
        "t = tl.alloc(tl.f32[n])\nfor j in range(m):\n    tl.call(fill, x, t)\n    tl.call(add, t, y)\n"
        "for i in range(n):\n    t[i] = 1.0\ny[0] = t[0]"
    )
    assert body_of(split(func)).splitlines()[:4] == [
        "t = tl.alloc(tl.f32[n])",
        "for j in range(m):",
        "    t_1 = tl.alloc(tl.f32[n])",
        "    tl.call(fill, x, t_1)",
    ]


def test_storage_is_saved_by_it() -> None:
    func = kernel(
        """
t = tl.alloc(tl.f32[n])
tl.call(fill, x, t)
u = tl.alloc(tl.f32[n])
tl.call(sums, t, u)
v = tl.alloc(tl.f32[n])
tl.call(sums, u, v)
tl.call(sums, v, t)
tl.call(fill, t, y)
"""
    )
    apart, whole = (
        tl.allocations(tl.passes.StorageRewrite("share", in_place=False, webs=webs)(tl.passes.Normalize()(func)))
        for webs in (True, False)
    )
    assert (len(apart), len(whole)) == (2, 3)


NAMES = ("fill", "sums", "twice", "slowly", "halves", "most", "add", "inner_add", "seen", "never", "maybe")


def random_body(random: Random, depth: int = 0) -> list[str]:
    """Statements on `t`, `u` and `y`: calls that fill all or part of them, reads, ifs and loops."""
    lines: list[str] = []
    for _ in range(random.randint(2, 5)):
        t = random.choice("tu")
        kind = random.randrange(8 if depth < 2 else 6)
        if kind < 3:
            lines += [f"tl.call({random.choice(NAMES)}, {random.choice(('x', 'x', 'ut'[t == 'u']))}, {t})"]
        elif kind == 3:
            lines += ["for i in range(n):", f"    {t}[i] = {random.randint(0, 9)}.0"]
        elif kind < 6:
            lines += [f"tl.call(fill, {t}, y)" if kind == 4 else f"y[{random.randint(0, 3)}] += {t}[1]"]
        else:
            head = "if x[1] > 0.0:" if kind == 6 else f"for r{depth} in range({random.randint(0, 2)}):"
            lines += [head, *("    " + line for line in random_body(random, depth + 1))]
            if kind == 6 and random.random() < 0.6:
                lines += ["else:", *("    " + line for line in random_body(random, depth + 1))]
    return lines


def result(func: tl.PrimFunc, seed: int) -> np.ndarray:
    x, z, y = (np.random.default_rng(seed).standard_normal(size).astype(np.float32) for size in (4, 0, 4))
    values = {
        **{dim: {"n": 4, "m": 0}[dim.name] for dim in func.dims},
        **dict(zip(func.params, (x, z, y), strict=True)),
    }
    interpret(func, values)
    return np.asarray(y)


def test_random_programs_mean_the_same_when_split() -> None:
    count = 0
    for seed in range(60):
        random = Random(seed)
        start = ["t = tl.alloc(tl.f32[n])", "u = tl.alloc(tl.f32[n])"]
        start += ["for i in range(n):", "    t[i] = 1.0", "    u[i] = 2.0"]
        func = tl.passes.Normalize()(kernel("\n".join([*start, *random_body(random)])))
        after = split(func)
        count += after is not func
        np.testing.assert_array_equal(result(after, seed), result(func, seed), err_msg=f"seed {seed}")
    assert count > 15
