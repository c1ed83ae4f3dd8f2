"""StorageRewrite, before and after: one allocation for each pool of the plan, views where the Allocates stood."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from parsed import parsed

import tirlite as tl
from tirlite.ir import Builder, SeqStmt, f32
from tirlite.rewrite import Normalize, Step, StorageRewrite, default_pipeline, run_pipeline, verify_after
from tirlite.sizes import Proof, SizeLike, prove_le_by_cases

HEADER = 'n, m = tl.dims("n m")\n\n@tl.kernel\ndef f(x: tl.f32[n, m], y: tl.f32[n, m]):\n'


kernel = partial(parsed, HEADER)


def rewritten(func: tl.PrimFunc, strategy: str = "share") -> tl.PrimFunc:
    """What the passes make of loops as they are written."""
    passes = default_pipeline(strategy, in_place=False, unchecked=True, schedule=None)
    return run_pipeline(func, passes, [verify_after])


def expect_rewrite(before: str, after: str, strategy: str = "share") -> None:
    got = rewritten(kernel(before), strategy)
    assert str(got).strip() == str(kernel(after)).strip()


def left(body: str, strategy: str = "share") -> list[str]:
    """The allocations left in a kernel with this body after the rewrite."""
    return [str(each) for each in tl.allocations(rewritten(kernel(body), strategy))]


def test_a_buffer_of_the_same_type_and_shape_becomes_a_view() -> None:
    expect_rewrite(
        """
        a = tl.alloc(tl.f32[n, m])
        a[0, 0] = x[0, 0]
        b = tl.alloc(tl.f32[n, m])
        b[0, 0] = a[0, 0]
        c = tl.alloc(tl.f32[n, m])
        c[0, 0] = b[0, 0]
        y[0, 0] = c[0, 0]
        """,
        """
        a = tl.alloc(tl.f32[n, m])
        b = tl.alloc(tl.f32[n, m])
        a[0, 0] = x[0, 0]
        b[0, 0] = a[0, 0]
        c = tl.view(a, tl.f32[n, m], fresh=True)
        c[0, 0] = b[0, 0]
        y[0, 0] = c[0, 0]
        """,
    )


def test_buffers_of_different_shapes_share_storage_with_one_axis() -> None:
    expect_rewrite(
        """
        a = tl.alloc(tl.f32[n])
        a[0] = x[0, 0]
        y[0, 0] = a[0]
        b = tl.alloc(tl.f32[n, m])
        b[0, 0] = x[0, 1]
        y[0, 1] = b[0, 0]
        """,
        """
        arena = tl.alloc(tl.f32[n * m])
        a = tl.view(arena, tl.f32[n], fresh=True)
        a[0] = x[0, 0]
        y[0, 0] = a[0]
        b = tl.view(arena, tl.f32[n, m], fresh=True)
        b[0, 0] = x[0, 1]
        y[0, 1] = b[0, 0]
        """,
    )


def test_storage_that_the_pass_makes_has_a_name_that_nothing_else_has() -> None:
    expect_rewrite(
        """
        arena = tl.alloc(tl.f32[8])
        arena[0] = x[0, 0]
        y[0, 0] = arena[0]
        wide = tl.alloc(tl.f32[16])
        for arena_1 in range(n):
            wide[0] = x[arena_1, 1]
            y[arena_1, 1] = wide[0]
        """,
        """
        arena_2 = tl.alloc(tl.f32[16])
        arena = tl.view(arena_2, tl.f32[8], fresh=True)
        arena[0] = x[0, 0]
        y[0, 0] = arena[0]
        wide = tl.view(arena_2, tl.f32[16], fresh=True)
        for arena_1 in range(n):
            wide[0] = x[arena_1, 1]
            y[arena_1, 1] = wide[0]
        """,
    )


def test_an_allocation_leaves_serial_loops_and_ifs() -> None:
    expect_rewrite(
        """
        for i in range(n):
            if i > 2:
                t = tl.alloc(tl.f32[m])
                t[0] = x[i, 0]
                y[i, 0] = t[0]
        """,
        """
        arena = tl.alloc(tl.f32[m])
        for i in range(n):
            if i > 2:
                t = tl.view(arena, tl.f32[m], fresh=True)
                t[0] = x[i, 0]
                y[i, 0] = t[0]
        """,
    )


def test_an_allocation_stays_inside_its_parallel_loop() -> None:
    expect_rewrite(
        """
        for i in tl.parallel(n):
            for j in range(m):
                t = tl.alloc(tl.f32[8])
                t[0] = x[i, j]
                y[i, j] = t[0]
        """,
        """
        for i in tl.parallel(n):
            arena = tl.alloc(tl.f32[8])
            for j in range(m):
                t = tl.view(arena, tl.f32[8], fresh=True)
                t[0] = x[i, j]
                y[i, j] = t[0]
        """,
    )


def test_storage_of_different_parallel_loops_is_not_shared() -> None:
    body = """
        for i in tl.parallel(n):
            t = tl.alloc(tl.f32[8])
            t[0] = x[i, 0]
            y[i, 0] = t[0]
        for i in tl.parallel(n):
            u = tl.alloc(tl.f32[8])
            u[0] = x[i, 0]
            y[i, 0] = u[0]
    """
    assert left(body) == ["t: f32[8] in global", "u: f32[8] in global"]


def test_scopes_do_not_mix() -> None:
    body = """
        t = tl.alloc(tl.f32[8])
        t[0] = x[0, 0]
        y[0, 0] = t[0]
        u = tl.alloc(tl.f32[8], scope="shared")
        u[0] = x[0, 1]
        y[0, 1] = u[0]
    """
    assert left(body) == ["t: f32[8] in global", "u: f32[8] in shared"]


def test_local_memory_and_small_buffers_are_left_to_the_registers() -> None:
    body = """
        a = tl.alloc(tl.f32[64], scope="local")
        a[0] = x[0, 0]
        y[0, 0] = a[0]
        b = tl.alloc(tl.f32[64], scope="local")
        b[0] = x[0, 1]
        y[0, 1] = b[0]
        s = tl.alloc(tl.f32[1])
        s[0] = x[0, 2]
        y[0, 2] = s[0]
        r = tl.alloc(tl.f32[1])
        r[0] = x[0, 3]
        y[0, 3] = r[0]
    """
    assert len(left(body)) == 4


def test_with_exact_dtype_only_equal_types_share() -> None:
    func = Normalize()(
        kernel(
            """
            a = tl.alloc(tl.f32[64])
            a[0] = x[0, 0]
            b = tl.alloc(tl.i32[64])
            b[0] = tl.i32(a[0])
            y[0, 0] = tl.f32(b[0])
            c = tl.alloc(tl.f32[80])
            c[0] = 3
            y[0, 1] = c[0]
            """
        )
    )
    for strategy in ("share", "pack", "exact"):
        after = StorageRewrite(strategy, exact_dtype=True)(func)
        types = [str(each).split(": ")[1] for each in tl.allocations(after)]
        assert types == ["f32[80] in global", "i32[64] in global"]


def test_merged_storage_has_the_widest_element_type_rounded_up_to_whole_elements() -> None:
    body = """
        a = tl.alloc(tl.u8[100])
        a[0] = 1
        y[0, 0] = a[0]
        b = tl.alloc(tl.f64[5])
        b[0] = x[0, 0]
        y[0, 1] = tl.f32(b[0])
    """
    assert left(body) == ["arena: f64[13] in global"]


def test_a_slot_grows_to_its_largest_sharer() -> None:
    body = """
        a = tl.alloc(tl.f32[100])
        a[0] = x[0, 0]
        y[0, 0] = a[0]
        b = tl.alloc(tl.f32[200])
        b[0] = x[0, 0]
        y[0, 1] = b[0]
    """
    assert left(body) == ["arena: f32[200] in global"]
    assert left(body, "tvm") == ["arena: f32[200] in global"]


def test_sizes_that_nothing_proves_comparable_share_their_maximum() -> None:
    body = """
        a = tl.alloc(tl.f32[n])
        a[0] = x[0, 0]
        y[0, 0] = a[0]
        b = tl.alloc(tl.f32[m])
        b[0] = x[0, 0]
        y[0, 1] = b[0]
    """
    assert left(body) == ["arena: f32[max(m, n)] in global"]


def test_a_size_made_of_a_let_is_hoisted_with_what_the_let_stands_for() -> None:
    expect_rewrite(
        """
        for i in range(n):
            k = m // 2 + 1
            t = tl.alloc(tl.f32[k])
            t[0] = x[i, 0]
            y[i, 0] = t[0]
        """,
        """
        arena = tl.alloc(tl.f32[m // 2 + 1])
        for i in range(n):
            k = m // 2 + 1
            t = tl.view(arena, tl.f32[k], fresh=True)
            t[0] = x[i, 0]
            y[i, 0] = t[0]
        """,
    )


def test_branches_of_an_if_share() -> None:
    body = """
        a = tl.alloc(tl.f32[64])
        b = tl.alloc(tl.f32[64])
        if n > 4:
            a[0] = x[0, 0]
            y[0, 0] = a[0]
        else:
            b[0] = x[0, 1]
            y[0, 1] = b[0]
    """
    assert left(body) == ["a: f32[64] in global"]


def test_an_allocation_that_nothing_touches_disappears_with_its_views() -> None:
    expect_rewrite(
        """
        t = tl.alloc(tl.f32[n])
        v = tl.view(t, tl.f32[4])
        y[0, 0] = x[0, 0]
        """,
        "y[0, 0] = x[0, 0]",
        strategy="none",
    )


def test_none_leaves_every_allocation_where_it_is() -> None:
    expect_rewrite(
        body := """
        for i in range(n):
            t = tl.alloc(tl.f32[m])
            t[0] = x[i, 0]
            y[i, 0] = t[0]
        """,
        body,
        strategy="none",
    )


def test_an_address_handed_on_keeps_storage_to_the_end() -> None:
    body = """
        a = tl.alloc(tl.f32[64])
        a[0] = x[0, 0]
        tl.call_extern("i32", "keep", tl.address_of(a[0]))
        b = tl.alloc(tl.f32[64])
        b[0] = x[0, 1]
        y[0, 1] = b[0]
    """
    assert len(left(body)) == 2


def test_a_view_keeps_its_root_alive() -> None:
    body = """
        a = tl.alloc(tl.f32[64])
        v = tl.view(a, tl.f32[4])
        a[0] = x[0, 0]
        b = tl.alloc(tl.f32[64])
        b[0] = x[0, 1]
        y[0, 0] = v[0]
        y[0, 1] = b[0]
    """
    assert len(left(body)) == 2


def test_a_value_carried_over_iterations_is_not_overwritten() -> None:
    body = """
        carried = tl.alloc(tl.f32[64])
        carried[0] = x[0, 0]
        for i in range(n):
            y[i, 0] = carried[0]
            t = tl.alloc(tl.f32[64])
            t[0] = x[i, 0]
            carried[0] = t[0]
    """
    assert len(left(body)) == 2


def test_big_sizes_are_exact() -> None:
    body = """
        a = tl.alloc(tl.i32[16384, 16384])
        a[0, 0] = 1
        y[0, 0] = a[0, 0]
        b = tl.alloc(tl.i32[16384, 16384, 2])
        b[0, 0, 0] = 1
        y[0, 1] = b[0, 0, 0]
    """
    assert left(body) == ["arena: i32[536870912] in global"]


def test_one_statement_object_twice_gets_storage_that_is_right_at_both_places() -> None:
    b = Builder("twice")
    y = b.param("y", f32[64])
    with b.for_("i", 0, 64) as i:
        t = b.alloc("t", f32[64])
        b.store(t, i, 1.0)
        b.store(y, i, t[i])
    func = b.build()
    (loop,) = func.body.stmts
    doubled = func.replaced(body=SeqStmt((loop, loop)))
    after = rewritten(doubled)
    assert [str(each) for each in tl.allocations(after)] == ["arena: f32[64] in global"]
    assert str(after).count("tl.view(arena") == 2


def test_storage_scope_attributes_become_fields() -> None:
    body = """
        t = tl.alloc(tl.f32[64])
        with tl.attr(t, "storage_scope", "shared"):
            t[0] = x[0, 0]
            y[0, 0] = t[0]
    """
    assert left(body) == ["t: f32[64] in shared"]


def test_an_unknown_strategy_is_answered_with_the_names() -> None:
    with pytest.raises(tl.PlanError, match="`share`"):
        rewritten(kernel("y[0, 0] = x[0, 0]"), "shere")


@pytest.mark.parametrize("strategy", ["none", "tvm", "share"])
def test_plan_and_program_agree_on_the_bytes(strategy: str) -> None:
    func = kernel(
        """
        a = tl.alloc(tl.f32[n, m])
        a[0, 0] = x[0, 0]
        b = tl.alloc(tl.f32[n])
        b[0] = a[0, 0]
        c = tl.alloc(tl.f32[n, m])
        c[0, 0] = b[0]
        y[0, 0] = c[0, 0]
        """
    )
    steps: list[Step] = []
    after = run_pipeline(func, default_pipeline(strategy), [steps.append])
    plan = steps[-1].plan
    assert isinstance(plan, tl.plan.Plan)
    n, m = (var.dim for var in func.dims)
    sizes = [each.bytes for each in tl.allocations(after)]
    assert str(sum(sizes[1:], start=sizes[0])) == str(plan.total)


def test_what_is_proved_safe_in_place_takes_over_the_bytes() -> None:
    func = kernel(
        """
        a = tl.alloc(tl.f32[n])
        b = tl.alloc(tl.f32[n])
        for i in range(n):
            a[i] = x[i, 0]
        for i in range(n):
            b[i] = a[i] * 2
        for i in range(n):
            y[i, 0] = b[i]
        """
    )
    for in_place, number in ((True, 1), (False, 2)):
        assert len(tl.allocations(run_pipeline(func, default_pipeline("share", in_place=in_place)))) == number


@pytest.mark.parametrize(
    ("stmt", "tvm"),
    [("b[i] = a[i] + a[i]", 1), ("b[i] = a[min(i + 1, 63)]", 2), ("value = a[i]\n        b[i] = value", 2)],
    ids=["at its own index", "at another one", "by a variable"],
)
def test_tvm_takes_in_place_what_its_rule_takes_and_share_what_is_safe(stmt: str, tvm: int) -> None:
    func = Normalize()(
        kernel(f"""
    a = tl.alloc(tl.f32[64])
    b = tl.alloc(tl.f32[64])
    for i in range(64):
        a[i] = i
    for i in range(64):
        {stmt}
    for i in range(64):
        y[0, 0] = y[0, 0] + b[63 - i]
    """)
    )
    counts = [len(tl.allocations(StorageRewrite(strategy)(func))) for strategy in ("tvm", "share")]
    assert counts == [tvm, 1]


def test_what_is_not_safe_in_place_stands_apart() -> None:
    func = kernel(
        """
        a = tl.alloc(tl.f32[n])
        b = tl.alloc(tl.f32[n])
        for i in range(n):
            a[i] = x[i, 0]
        for i in range(n):
            b[i] = a[n - 1 - i]
        for i in range(n):
            y[i, 0] = b[i]
        """
    )
    assert len(tl.allocations(run_pipeline(func, default_pipeline("share", in_place=True)))) == 2


@pytest.mark.parametrize("strategy", ["pack", "auto"])
def test_what_is_cut_off_at_nought_is_proved_to_lie_inside_the_largest(strategy: str) -> None:
    body = """
        a = tl.alloc(tl.f32[13 * m])
        a[0] = x[0, 0]
        y[0, 0] = a[0]
        b = tl.alloc(tl.f32[257 * m * max(n - 2, 0)])
        c = tl.alloc(tl.f32[64 * m * max(n - 2, 0)])
        for i in range(m * max(n - 2, 0)):
            b[i] = x[0, 0]
            c[i] = x[0, 1]
            y[0, 0] = b[i] + c[i]
        d = tl.alloc(tl.f32[32 * m * max(n - 6, 0)])
        for i in range(32 * m * max(n - 6, 0)):
            d[i] = x[0, 0]
            y[0, 0] = d[i]
    """
    assert left(body, strategy) == ["arena: f32[max(13*m, 32*m*max(n - 6, 0), 321*m*max(n - 2, 0))] in global"]


@pytest.mark.parametrize("strategy", ["pack", "auto"])
def test_where_only_the_proof_is_missing_a_weaker_plan_is_taken(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
        a = tl.alloc(tl.f32[2 * n + 3 * m])
        a[0] = x[0, 0]
        y[0, 0] = a[0]
        b = tl.alloc(tl.f32[2 * n])
        c = tl.alloc(tl.f32[3 * m])
        b[0] = x[0, 0]
        c[0] = x[0, 1]
        y[0, 0] = b[0] + c[0]
    """
    assert len(left(body, strategy)) == 1
    proved = prove_le_by_cases

    def forgets_offsets(low: SizeLike, high: SizeLike) -> Proof:
        return Proof.UNKNOWN if low == 0 and not isinstance(high, int) else proved(low, high)

    monkeypatch.setattr("tirlite.sizes.prove_le_by_cases", forgets_offsets)
    rewrite = StorageRewrite(strategy)
    assert rewrite.planned(kernel(body)).plan.strategy == "share"
    assert left(body, strategy) == left(body, "share")

    monkeypatch.setattr("tirlite.sizes.prove_le_by_cases", lambda *given: Proof.UNKNOWN)
    assert rewrite.planned(kernel(body)).plan.strategy == "none"


def test_the_pass_alone_knows_what_attributes_say_of_a_buffer() -> None:
    func = kernel(
        """
        a = tl.alloc(tl.f32[64])
        b = tl.alloc(tl.f32[64])
        with tl.attr(a, "volatile_scope"):
            with tl.attr(b, "storage_scope", "shared"):
                a[0] = x[0, 0]
                b[0] = a[0]
        c = tl.alloc(tl.f32[64])
        c[0] = b[0]
        y[0, 0] = c[0]
        """
    )
    alone = StorageRewrite("share")(func)
    assert str(alone) == str(StorageRewrite("share")(Normalize()(func)))
    left = ["a: f32[64] in global", "b: f32[64] in shared", "c: f32[64] in global"]
    assert sorted(map(str, tl.allocations(alone))) == left


@pytest.mark.parametrize("attribute", ['"volatile_scope"', '"storage_scope", "global"'])
def test_what_attributes_say_of_parameters_is_told_of_them(attribute: str) -> None:
    func = kernel(
        f"""
        with tl.attr(y, {attribute}):
            for i in range(n):
                y[i, 0] = x[i, 0] + 1
        """
    )
    x = np.ones((3, 2), np.float32)
    for run in (tl.compile(func), tl.compile(func, debug=True), tl.compile(func).interpret):
        y = np.zeros((3, 2), np.float32)
        run(x, y)
        assert y.tolist() == [[2, 0]] * 3
    assert ("volatile=True" in str(tl.compile(func).lowered)) == ("volatile" in attribute)


def test_what_c_fills_takes_the_place_of_what_is_dead_by_then() -> None:
    func = tl.parse(
        """
        n = tl.dim("n")

        @tl.kernel
        def f(x: tl.f32[n], y: tl.f32[n]):
            filled = tl.alloc(tl.f32[n])
            turned = tl.alloc(tl.f32[n])
            for i in range(n):
                turned[i] = x[n - 1 - i] + 1
            for i in range(n):
                y[i] = turned[i]
            tl.call_extern("handle", "memcpy", tl.access_ptr(filled, 0, n, "w"), tl.access_ptr(x, 0, n, "r"), n * 4)
            for i in range(n):
                y[i] = y[i] + 10 * filled[i]
        """
    )
    compiled = tl.compile(func)
    assert str(compiled.plan.total) == "4*n"
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    compiled(x, y)
    np.testing.assert_array_equal(y, x[::-1] + 1 + 10 * x)


def test_a_function_that_allocates_nothing_stays_as_it_is_and_wrong_options_are_told_all_the_same() -> None:
    func = kernel("y[0, 0] = x[0, 0]")
    made = StorageRewrite("pack").planned(func)
    assert made.func is func
    assert made.plan is None
    with pytest.raises(tl.PlanError, match="there is no strategy `packs`"):
        StorageRewrite("packs")(func)
    with pytest.raises(tl.PlanError, match="has no option `match_range`"):
        StorageRewrite("pack", match_range=2)(func)

    def planner(problem: tl.plan.Problem) -> tl.plan.Plan:
        return tl.plan.solve(problem, "none")

    assert StorageRewrite(planner).planned(func).plan.strategy == "none"
