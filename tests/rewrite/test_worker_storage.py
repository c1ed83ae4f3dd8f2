"""Temporaries inside parallel loops: where they attach, and how often they count."""

from __future__ import annotations

import numpy as np

import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def chain(x: tl.f32[n, 512], y: tl.out[tl.f32[n, 512]]):
    outside = tl.alloc(tl.f32[512])
    for j in range(512):
        outside[j] = x[0, j]
    for i in tl.parallel(n):
        a = tl.alloc(tl.f32[512])
        b = tl.alloc(tl.f32[512])
        c = tl.alloc(tl.f32[512])
        for j in range(512):
            a[j] = x[i, j] + outside[j]
        for j in range(512):
            b[j] = a[511 - j] * 2
        for j in range(512):
            c[j] = b[511 - j] + 1
        for j in range(512):
            y[i, j] = c[j]


def planned(kernel: tl.Kernel, workers: int, strategy: str = "share") -> tl.Kernel:
    return tl.compile(kernel, strategy=strategy, target=tl.Target.host(workers=workers))


def test_bytes_count_once_a_worker() -> None:
    # Of a, b and c, two live at once; the third takes the place of the first. `outside` is there once.
    for workers in (1, 2, 5):
        plan = planned(chain, workers).plan
        assert plan.total == 2048 + workers * 2 * 2048
        assert plan.lower_bound == plan.total
    assert "global in i  2048 x 5" in str(plan)
    assert "2048 bytes x 5 copies" in plan.explain()


def test_they_are_declared_inside_the_loop() -> None:
    lines = str(planned(chain, 2).lowered).splitlines()
    loop = next(number for number, line in enumerate(lines) if "tl.parallel" in line)
    found = [number for number, line in enumerate(lines) if "tl.alloc" in line]
    assert [number > loop for number in found] == [False, True, True]


def test_no_more_copies_than_iterations() -> None:
    @tl.kernel
    def two(x: tl.f32[2, 512], y: tl.out[tl.f32[2, 512]]):
        for i in tl.parallel(2):
            t = tl.alloc(tl.f32[512])
            for j in range(512):
                t[j] = x[i, j]
            for j in range(512):
                y[i, j] = t[511 - j]

    assert [planned(two, workers).plan.total for workers in (1, 2, 8)] == [2048, 4096, 4096]


def test_what_stands_in_an_inner_parallel_loop_belongs_to_that_and_exists_once_a_worker() -> None:
    @tl.kernel
    def nest(x: tl.f32[n, m, 512], y: tl.out[tl.f32[n, m, 512]]):
        for i in tl.parallel(n):
            shared = tl.alloc(tl.f32[512])
            for c in range(512):
                shared[c] = x[i, 0, c]
            for j in tl.parallel(m):
                t = tl.alloc(tl.f32[512])
                for c in range(512):
                    t[c] = x[i, j, c]
                for c in range(512):
                    y[i, j, c] = t[511 - c] + shared[c]

    plan = planned(nest, 4).plan
    assert {region.memory for region in plan.pools.values()} == {"global in i", "global in j"}
    assert plan.total == 4 * (2048 + 2048)
    x = np.random.default_rng(0).standard_normal((40, 30, 512)).astype(np.float32)
    wanted = x[:, :, ::-1] + x[:, :1]
    for strategy in ("none", "tvm", "share", "pack", "auto"):
        np.testing.assert_array_equal(planned(nest, 4, strategy)(x), wanted)


def test_memory_from_outside_is_not_lent_to_workers_though_it_is_dead_there() -> None:
    """Each worker would need a copy of it, and there is one."""

    @tl.kernel
    def lending(x: tl.f32[n, 512], y: tl.out[tl.f32[n, 512]]):
        before = tl.alloc(tl.f32[512])
        for j in range(512):
            before[j] = x[0, j]
        for j in range(512):
            y[0, j] = before[511 - j]
        for i in tl.parallel(1, n):
            t = tl.alloc(tl.f32[512])
            for j in range(512):
                t[j] = x[i, j]
            for j in range(512):
                y[i, j] = t[511 - j]
        after = tl.alloc(tl.f32[512])
        for j in range(512):
            after[j] = y[0, j]
        for j in range(512):
            y[0, j] = after[j] + 0

    for strategy in ("tvm", "share", "pack", "exact", "auto"):
        plan = planned(lending, 2, strategy).plan
        assert plan.total == 2048 + 2 * 2048, strategy
        memories = {name: plan.pools[place.pool].memory for name, place in plan.placements.items()}
        assert memories == {"before": "global", "t": "global in i", "after": "global"}
