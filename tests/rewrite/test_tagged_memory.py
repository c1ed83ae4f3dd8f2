"""Tagged memory: one allocation a scope, aligned, within its capacity."""

from __future__ import annotations

import pytest
from parsed import parsed

import tirlite as tl
from tirlite.rewrite import default_pipeline, run_pipeline, verify_after

# 256-bit vectors, 8 KiB.
UB = tl.MemoryInfo(unit_bits=8, max_simd_bits=256, max_num_bits=8 * 8192)
TARGET = tl.Target.host().with_memory("local.UB", UB)
HEADER = 'n = tl.dim("n")\nk = tl.dim("k", max=100)\n\n@tl.kernel\ndef f(x: tl.f32[n, k], y: tl.f32[n, k]):\n'


def rewritten(body: str, strategy: str = "share", target: tl.Target = TARGET) -> tl.PrimFunc:
    func = parsed(HEADER, body)
    return run_pipeline(func, default_pipeline(strategy, target=target), [verify_after])


def both_alive(first: str, second: str) -> str:
    return f"""
        a = tl.alloc({first}, scope="local.UB")
        b = tl.alloc({second}, scope="local.UB")
        a[0] = 1
        b[0] = 2
        y[0, 0] = a[0]
        y[0, 1] = b[0]
    """


@pytest.mark.parametrize("strategy", ["tvm", "share"])
def test_all_of_one_tagged_scope_is_one_allocation_with_each_part_aligned(strategy: str) -> None:
    func = rewritten(both_alive("tl.f32[3]", "tl.f32[5]"), strategy)
    assert [str(each) for each in tl.allocations(func)] == ["arena: f32[16] in local.UB"]
    assert "b = tl.view(arena, tl.f32[5], byte_offset=32, fresh=True)" in str(func)


def test_mixed_types_are_placed_by_bytes() -> None:
    func = rewritten(both_alive("tl.i8[3]", "tl.f32[5]"))
    assert [each.bytes for each in tl.allocations(func)] == [64]
    assert "b = tl.view(arena, tl.f32[5], byte_offset=32, fresh=True)" in str(func)


def test_lifetimes_that_do_not_overlap_share() -> None:
    func = rewritten(
        """
        a = tl.alloc(tl.f32[64], scope="local.UB")
        a[0] = x[0, 0]
        y[0, 0] = a[0]
        b = tl.alloc(tl.f32[32], scope="local.UB")
        b[0] = x[0, 1]
        y[0, 1] = b[0]
        """
    )
    assert [each.bytes for each in tl.allocations(func)] == [256]


def test_a_size_with_a_proved_bound_takes_the_bound() -> None:
    func = rewritten(both_alive("tl.f32[k]", "tl.f32[8]"))
    assert [each.bytes for each in tl.allocations(func)] == [13 * 32 + 32]


def test_a_size_without_a_bound_is_refused() -> None:
    with pytest.raises(tl.PlanError, match=r"buffer `a` in `local.UB` needs 4\*n bytes"):
        rewritten(both_alive("tl.f32[n]", "tl.f32[8]"))


@pytest.mark.parametrize("strategy", ["none", "tvm", "share"])
def test_too_much_at_once_names_the_memory_and_the_buffers(strategy: str) -> None:
    with pytest.raises(tl.CapacityError, match=r"local\.UB.*8192(.|\n)*`a`, `b`"):
        rewritten(both_alive("tl.f32[1024]", "tl.f32[1025]"), strategy)
    rewritten(both_alive("tl.f32[1024]", "tl.f32[1024]"), strategy)


def test_one_buffer_alone_is_checked_too() -> None:
    with pytest.raises(tl.CapacityError, match="8224"):
        rewritten('a = tl.alloc(tl.f32[2049], scope="local.UB")\na[0] = 1\ny[0, 0] = a[0]')


@pytest.mark.parametrize("strategy", ["share", "pack", "exact"])
def test_the_error_points_at_the_largest_buffer_that_is_live_at_the_peak(strategy: str) -> None:
    with pytest.raises(tl.CapacityError) as caught:
        rewritten(both_alive("tl.f32[1024]", "tl.f32[1025]"), strategy)
    assert 'b = tl.alloc(tl.f32[1025], scope="local.UB")' in str(caught.value)
    assert "`b` is the largest of what is live then" in str(caught.value)


def test_an_unknown_tag_is_answered_with_the_nearest() -> None:
    with pytest.raises(tl.PlanError, match=r"`local\.UV`(.|\n)*did you mean `local\.UB`"):
        rewritten('a = tl.alloc(tl.f32[8], scope="local.UV")\na[0] = 1\ny[0, 0] = a[0]')


def test_dyn_and_workspace_are_ordinary_memory() -> None:
    func = rewritten('a = tl.alloc(tl.f32[8], scope="shared.dyn")\na[0] = 1\ny[0, 0] = a[0]')
    assert [str(each) for each in tl.allocations(func)] == ["a: f32[8] in shared.dyn"]


def test_memory_that_cannot_be_is_refused() -> None:
    with pytest.raises(tl.PlanError, match="max_simd_bits = 24"):
        tl.Target.host().with_memory("local.UB", tl.MemoryInfo(8, 24, 1024))
    with pytest.raises(tl.PlanError, match="ordinary memory"):
        tl.Target.host().with_memory("local", UB)
