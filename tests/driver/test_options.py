"""The options of a kernel reach the passes."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl

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
    assert [str(each) for each in tl.allocations(tagged.lowered)] == ["t: f32[64] in local.UB"]
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


@pytest.mark.parametrize(
    "choice",
    [{"strategy": 3}, {"target": "host"}, {"budget": "9"}, {"time_limit": "9"}, {"passes": 1}, {"observers": [1]}],
    ids=lambda choice: next(iter(choice)),
)
def test_an_option_of_the_wrong_type_is_named(choice: dict[str, object]) -> None:
    (name,) = choice
    with pytest.raises(tl.CallTypeError, match=f"option-type.*`{name}` takes"):
        tl.compile(chain, **choice)


def test_an_option_that_is_misspelt_is_answered_with_the_nearest() -> None:
    with pytest.raises(tl.CallTypeError, match=r"unknown-option(.|\n)*did you mean `in_place`\?"):
        tl.kernel(inplace=True)
