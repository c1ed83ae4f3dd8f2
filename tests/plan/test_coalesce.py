"""Strategy `coalesce`: one region for each memory and element type, sizes summed and rounded up to the alignment."""

from __future__ import annotations

from random import Random

from tirlite.plan import Pool, Problem, Request, solve
from tirlite.sizes import Dim


def test_offsets_are_sums_of_rounded_sizes():
    requests = (
        Request("a", 100, (0, 1), align=64, kind="f32"),
        Request("b", 64, (1, 2), align=64, kind="f32"),
        Request("c", 1, (2, 3), align=64, kind="f32"),
    )
    plan = solve(Problem(requests), "coalesce")
    assert [plan.placements[name].offset for name in "abc"] == [0, 128, 192]
    assert plan.total == 256


def test_each_element_type_and_each_memory_has_a_region():
    requests = (
        Request("a", 64, (0, 1), kind="f32", pools=("x",)),
        Request("b", 64, (0, 1), kind="i64", pools=("x",)),
        Request("c", 64, (0, 1), kind="f32", pools=("y",)),
        Request("d", 64, (0, 1), kind="f32", pools=("x",)),
    )
    plan = solve(Problem(requests, (Pool("x"), Pool("y"))), "coalesce")
    assert plan.residents == {"x f32": ("a", "d"), "x i64": ("b",), "y f32": ("c",)}


def test_sizes_may_be_symbolic():
    n = Dim("n")
    requests = tuple(Request(name, 4 * n, (i, i + 1), align=64) for i, name in enumerate("abc"))
    plan = solve(Problem(requests), "coalesce")
    for value in (1, 16, 17):
        rounded = -(-4 * value // 64) * 64
        at = plan.at({n: value})
        assert [at.placements[name].offset for name in "abc"] == [0, rounded, 2 * rounded]
        assert at.total == 3 * rounded


def test_a_fixed_request_keeps_its_offset():
    requests = (Request("a", 8, (0, 1)), Request("b", 8, (0, 1), fixed=32))
    plan = solve(Problem(requests), "coalesce")
    assert plan.placements["b"].offset == 32


def test_alignments_may_differ():
    random = Random(0)
    for _ in range(50):
        aligns = [2 ** random.randrange(8) for _ in range(8)]
        sizes = [random.randrange(300) for _ in aligns]
        requests = tuple(
            Request(str(i), size, (0, 1), align=a) for i, (size, a) in enumerate(zip(sizes, aligns, strict=True))
        )
        plan = solve(Problem(requests), "coalesce")
        assert all(plan.placements[str(i)].offset % align == 0 for i, align in enumerate(aligns))
