"""The options of a kernel reach the passes."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.ir import callees

n = tl.dim("n")
UB = tl.Target.host().with_memory("local.UB", tl.MemoryInfo(unit_bits=8, max_simd_bits=256, max_num_bits=8 * 1024))


@tl.kernel
def chain(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    a = tl.alloc(tl.f32[n])
    b = tl.alloc(tl.f32[n])
    for i in range(n):
        a[i] = x[i] + 1
    for i in range(n):
        b[i] = a[i] * 2
    for i in range(n):
        y[i] = b[i] - 3


@tl.kernel(target=UB)
def tagged(x: tl.f32[64], y: tl.out[tl.f32[64]]):
    t = tl.alloc(tl.f32[64], scope="local.UB")
    for i in range(64):
        t[i] = x[i]
    for i in range(64):
        y[i] = t[63 - i]


def test_in_place_saves_a_buffer_and_can_be_turned_off() -> None:
    x = np.arange(10, dtype=np.float32)
    together, apart = (tl.compile(chain, strategy="pack", in_place=choice) for choice in (True, False))
    assert (str(together.plan.total), str(apart.plan.total)) == ("4*n", "8*n")
    assert np.array_equal(together(x), apart(x))
    assert np.array_equal(together(x), (x + 1) * 2 - 3)


def test_tagged_memory_is_planned_as_the_target_says() -> None:
    x = np.arange(64, dtype=np.float32)
    assert np.array_equal(tagged(x), x[::-1])
    assert [str(each) for each in tl.allocations(tagged.lowered)] == ["arena: f32[64] in local.UB"]
    with pytest.raises(tl.PlanError, match="does not describe"):
        tl.compile(tagged, target=tl.Target.host()).plan


def test_exact_takes_a_budget() -> None:
    b = tl.ir.Builder("staggered")
    y = b.param("y", tl.u8[8])
    before = None
    for number, size in enumerate((320, 640, 320, 960, 640)):
        t = b.alloc(f"t{number}", tl.u8[size])
        b.store(t, 0, 1)
        if before is not None:
            b.store(y, 0, before[0])
        before = t
    kernel = tl.compile(b.build(), strategy="exact", budget=1000)
    assert kernel.plan.total == 960 + 640
    assert kernel.plan.proved_optimal


def test_an_option_that_does_not_exist_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="strat"):
        tl.compile(chain, strat="share")  # type: ignore[call-arg]


@pytest.mark.parametrize("choice", [{"schedule": np.zeros(2)}, {"allow": UB}, {"allow": [["contract"]]}])
def test_options_of_any_kind_are_refused_by_name(choice: dict[str, object]) -> None:
    with pytest.raises(tl.CallTypeError, match=next(iter(choice))):
        tl.compile(chain, **choice)  # type: ignore[arg-type]


@tl.kernel(strategy="share", in_place=False)
def mixed(x: tl.f32[64], y: tl.out[tl.f32[64]]):
    a = tl.alloc(tl.f32[64])
    b = tl.alloc(tl.i32[64])
    c = tl.alloc(tl.f32[4])
    for i in range(64):
        a[i] = x[i]
    for i in range(64):
        b[63 - i] = tl.i32(a[i])
    for i in range(4):
        c[i] = tl.f32(b[i]) + tl.f32(b[63 - i])
    for i in range(64):
        y[i] = c[i % 4]


def allocated(kernel: tl.Kernel) -> list[str]:
    return [str(each) for each in tl.allocations(kernel.lowered)]


def test_exact_dtype_keeps_element_types_apart() -> None:
    x = np.arange(64, dtype=np.float32)
    together, apart = (tl.compile(mixed, strategy="pack", exact_dtype=choice) for choice in (False, True))
    assert allocated(together) == ["arena: f32[128] in global"]
    assert allocated(apart) == ["arena: f32[64] in global", "arena_1: i32[64] in global"]
    assert np.array_equal(apart(x), mixed(x))


def test_a_match_range_keeps_sizes_apart() -> None:
    x = np.arange(64, dtype=np.float32)
    assert allocated(mixed) == ["arena: f32[64] in global", "b: i32[64] in global"], "`c` takes the place of `a`"
    apart = tl.compile(mixed, strategy="share", in_place=False, match_range=8)
    assert allocated(apart) == ["a: f32[64] in global", "b: i32[64] in global", "c: f32[4] in global"]
    assert np.array_equal(apart(x), mixed(x))


def test_kernels_with_other_options_do_not_share_plans() -> None:
    cache = tl.plan.PlanCache()
    plans = [
        tl.compile(mixed, strategy=strategy, in_place=False, cache=cache, **choices).plan
        for strategy, choices in (
            ("pack", {}),
            ("pack", {"exact_dtype": True}),
            ("share", {}),
            ("share", {"match_range": 8}),
            ("share", {}),
        )
    ]
    assert [plan.total for plan in plans] == [512, 512, 512, 528, 512]
    assert len(plans[0].pools) == 1
    assert len(plans[1].pools) == 2


def test_callees_are_planned_with_the_same_options() -> None:
    @tl.kernel
    def outer(x: tl.f32[64], y: tl.out[tl.f32[64]]):
        tl.call(mixed, x, y)

    for match_range, count in ((None, 2), (8, 3)):
        apart = tl.compile(outer, strategy="share", in_place=False, match_range=match_range)
        (callee,) = callees(apart.lowered)
        assert len(tl.allocations(callee)) == count


def test_a_match_range_without_share_is_refused() -> None:
    with pytest.raises(tl.PlanError, match=r"match-range-strategy(.|\n)*strategy `auto`"):
        tl.kernel(match_range=16)


@pytest.mark.parametrize(
    "choice",
    [
        *({"strategy": 3}, {"target": "host"}, {"budget": "9"}, {"time_limit": "9"}, {"passes": 1}, {"observers": [1]}),
        *({"exact_dtype": 1}, {"match_range": "16"}, {"match_range": -1}, {"match_range": True}, {"capacity": -1}),
        *({"cache": {}}, {"engine": 3}, {"schedule": "compct"}),
    ],
    ids=lambda choice: next(iter(choice)),
)
def test_an_option_of_the_wrong_type_is_named(choice: dict[str, object]) -> None:
    (name,) = choice
    with pytest.raises(tl.CallTypeError, match=f"option-type.*`{name}` takes (?!a list of schedule)"):
        tl.compile(chain, **choice)


def test_an_option_that_is_misspelt_is_answered_with_the_nearest() -> None:
    with pytest.raises(tl.CallTypeError, match=r"unknown-option(.|\n)*did you mean `in_place`\?"):
        tl.kernel(inplace=True)


def test_a_capacity_that_is_too_small_names_who_lives_at_the_peak() -> None:
    assert tl.compile(mixed, strategy="share", in_place=False, capacity=512).plan.total == 512
    small = tl.compile(mixed, strategy="share", in_place=False, capacity=511)
    with pytest.raises(
        tl.CapacityError, match=r"`global` holds 511 bytes(.|\n)*need 512 bytes(.|\n)*`a`, `b`"
    ) as caught:
        small(np.zeros(64, np.float32))
    assert "a = tl.alloc(tl.f32[64])" in str(caught.value)


def test_buffers_give_up_cache_lines_where_a_capacity_asks_for_it() -> None:
    b = tl.ir.Builder("two")
    y = b.param("y", tl.u8[8])
    small, large = b.alloc("small", tl.u8[100]), b.alloc("large", tl.u8[200])
    for buffer in (small, large):
        b.store(buffer, 0, 1)
    b.store(y, 0, small[0] + large[0])
    lined, tight = (tl.compile(b.build(), capacity=capacity).plan for capacity in (328, 300))
    assert [region.align for region in tight.pools.values()] == [4], "the largest that divides both"
    assert max(region.align for region in lined.pools.values()) == 64
    with pytest.raises(tl.CapacityError, match="over-capacity"):
        _ = tl.compile(b.build(), capacity=299).plan


def test_a_capacity_holds_for_all_values_of_the_dims_or_for_each_shape() -> None:
    with pytest.raises(tl.CapacityError, match=r"holds 4096 bytes, and the plan needs 4\*n"):
        _ = tl.compile(chain, capacity=4096).plan
    x = np.arange(1024, dtype=np.float32)
    by_shape = tl.compile(chain, strategy="per_shape", capacity=4096)
    assert np.array_equal(by_shape(x), (x + 1) * 2 - 3)
    for call in (lambda: by_shape(np.append(x, x)), lambda: by_shape.plan_at(n=2048)):
        with pytest.raises(tl.CapacityError, match="holds 4096 bytes, and the plan needs 8192"):
            call()


def test_a_class_of_a_pass_is_told_with_its_call() -> None:
    with pytest.raises(tl.CallTypeError, match=r"takes a list of passes, made by a call: RemoveNoOps\(\)"):
        tl.compile(chain, passes=[tl.passes.RemoveNoOps])


class Evasive:
    """What raises an error where its class is asked for."""

    @property
    def __class__(self) -> type:
        raise ValueError("no class")


@pytest.mark.parametrize("take", [tl.compile, tl.kernel, tl.inline, tl.parse])
def test_what_does_not_tell_its_class_is_told_of(take) -> None:
    with pytest.raises(tl.TirliteError, match="Evasive"):
        take(Evasive())
