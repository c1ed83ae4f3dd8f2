"""Whether webs are split is judged by bytes, and at no sizes does a strategy then take more than a weaker one."""

import pytest

import tirlite as tl
from tirlite.plan import Plan
from tirlite.rewrite import StorageRewrite

# With `t` split, whole slots take less at all sizes. Offsets take less at some and more at others.
SPLIT = """
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.i64[n], z: tl.i64[m]):
    a = tl.alloc(tl.i32[n + 1])
    b = tl.alloc(tl.u8[n + m])
    t = tl.alloc(tl.i64[n + 1])
    for i in range(n + 1):
        a[i] = tl.i32(i)
        t[i] = i
    for i in range(n + m):
        b[i] = tl.u8(a[n] + t[0])
    c = tl.alloc(tl.u32[n + 1])
    for i in range(n + 1):
        c[i] = tl.u32(a[n - i])
    d = tl.alloc(tl.i64[4])
    for i in range(4):
        d[i] = c[0]
    z[0] = d[3]
    for i in range(n + 1):
        t[i] = a[n - i]
    e = tl.alloc(tl.i64[min(n, 2)])
    g = tl.alloc(tl.i64[2])
    h = tl.alloc(tl.u8[min(n, 2)])
    for q in range(2):
        for i in range(min(n, 2)):
            e[i] = t[i]
        for i in range(2):
            g[i] = e[0]
        for i in range(min(n, 2)):
            h[i] = tl.u8(g[0] + e[0])
        if x[0] > 0:
            k = tl.alloc(tl.u8[m])
            for i in range(m):
                k[i] = tl.u8(g[i % 2] + h[0])
            z[0] = k[m - 1]
    z[0] = z[0] + a[0] + b[0] + t[0] + c[0]
"""


def planned(strategy: str) -> Plan:
    plan = StorageRewrite(strategy).planned(tl.parse(SPLIT)).plan
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize("strategy", ["pack", "auto", "exact"])
def test_what_whole_slots_gain_by_splitting_is_not_lost_with_offsets(strategy: str) -> None:
    slots, offsets = planned("share"), planned(strategy)
    for n in range(1, 9):
        for m in (1, 3, 5, 30):
            few, many = (
                plan.at({dim: {"n": n, "m": m}[dim.name] for dim in plan.problem.dims}) for plan in (offsets, slots)
            )
            assert few.total <= many.total
