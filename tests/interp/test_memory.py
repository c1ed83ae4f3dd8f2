"""Storage: bounds, views, vector accesses, and fresh memory that has no value."""

import numpy as np
import pytest

import tirlite as tl
from tirlite.diag import KernelIndexError, KernelRunError
from tirlite.interp import interpret
from tirlite.ir.builder import Builder
from tirlite.ir.dtype import bool_, f32, f64, i8, i16, i32, i64, u8, u16, u32
from tirlite.ir.expr import And, Broadcast, Buffer, Call, Expr, Load, Or, Ramp, Select, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.op import Op

n = Var("n")


def outcome(func: PrimFunc, *, size: int = 3) -> np.ndarray:
    """What the only parameter, zeros before, holds in the end."""
    (param,) = func.params
    assert isinstance(param, Buffer)
    array = np.zeros([each.value if hasattr(each, "value") else size for each in param.shape], param.dtype.numpy)
    interpret(func, {param: array} | dict.fromkeys(func.dims, size))
    return array


def ramp(base: int, lanes: int, stride: int = 1) -> Ramp:
    return Ramp(const(base, i64), const(stride, i64), lanes)


@pytest.mark.parametrize(
    ("index", "axis", "extent"), [((0, 3), 1, 3), ((2, 0), 0, 2), ((0, -1), 1, 3), ((-1, 0), 0, 2)]
)
def test_each_index_is_checked_against_its_axis(index: tuple[int, int], axis: int, extent: int) -> None:
    for is_load in (True, False):
        b = Builder("f")
        x, at = b.param("x", f32[2, n]), b.param("at", i64[2])
        if is_load:
            b.evaluate(x[at[0], at[1]])
        else:
            b.store(x, (at[0], at[1]), 1.0)
        report = f"index {index[axis]} is out of bounds for axis {axis} of `x` with extent {extent}"
        with pytest.raises(KernelIndexError, match=report) as caught:
            interpret(b.build(), {n: 3, x: np.zeros((2, 3), np.float32), at: np.array(index)})
        assert isinstance(caught.value, IndexError)
        assert "test_memory.py" in str(caught.value)


def test_each_lane_of_a_vector_index_is_checked() -> None:
    b = Builder("f")
    x = b.param("x", f32[2, 4])
    b.evaluate(x[0, ramp(1, 4)])
    with pytest.raises(KernelIndexError, match="index 4 is out of bounds for axis 1"):
        outcome(b.build())


def test_vector_loads_and_stores() -> None:
    b = Builder("f")
    x = b.param("x", i32[8])
    b.store(x, ramp(0, 8), Ramp(const(10, i32), const(1, i32), 8))
    b.store(x, ramp(7, 4, -1), Load(x, (ramp(0, 4),)))
    assert outcome(b.build()).tolist() == [10, 11, 12, 13, 13, 12, 11, 10]


def test_a_buffer_of_vectors() -> None:
    b = Builder("f")
    x = b.param("x", f32[8])
    pairs = b.view("pairs", x, f32.with_lanes(2)[4])
    b.store(pairs, 1, Broadcast(const(1.0, f32), 2))
    b.store(pairs, ramp(2, 2), Broadcast(const(2.0, f32), 4))
    b.store(pairs, 0, pairs[1] + pairs[3])
    assert outcome(b.build()).tolist() == [3, 3, 1, 1, 2, 2, 2, 2]


def test_a_view_shares_bytes_with_its_source() -> None:
    b = Builder("f")
    x = b.param("x", u32[2])
    halves = b.view("halves", x, u16[2], 4)
    low = b.view("low", halves, u8[1], 2)
    b.store(x, 1, 0x01020304)
    b.store(halves, 0, 0xAAAA)
    b.store(low, 0, 0xFF)
    b.store(x, 0, halves[1].astype(u32))
    assert [hex(each) for each in outcome(b.build())] == ["0x1ff", "0x1ffaaaa"]


def test_a_view_must_lie_in_its_source() -> None:
    for offset in (5, 9, -1):
        b = Builder("f")
        at = b.param("at", i64[1])
        x = b.alloc("x", i8[8])
        b.view("v", x, i8[4], at[0])
        with pytest.raises(KernelIndexError, match=f"`v` takes bytes {offset} to {offset + 4} of `x`, which has 8"):
            interpret(b.build(), {at: np.array([offset])})


def test_any_nonzero_byte_is_true() -> None:
    b = Builder("f")
    x = b.param("x", u8[2])
    flags = b.view("flags", x, bool_[2])
    b.store(x, 0, 6)
    b.store(flags, 1, flags[0])
    assert outcome(b.build()).tolist() == [6, 1]


def test_sizes_of_zero() -> None:
    b = Builder("f")
    x = b.param("x", f32[n, 4])
    t = b.alloc("t", f32[n * 0])
    b.view("v", t, f32[n])
    assert outcome(b.build(), size=0).shape == (0, 4)


def test_a_negative_extent_is_an_error() -> None:
    b = Builder("f")
    b.param("x", f32[n])
    b.alloc("t", f32[2, n - 2])
    with pytest.raises(KernelRunError, match="axis 1 of `t` has the negative extent -1"):
        outcome(b.build(), size=1)


def test_an_impossible_size_is_an_error() -> None:
    b = Builder("f")
    b.param("x", f32[n])
    b.alloc("t", f32[2**31, 2**31])
    with pytest.raises(KernelRunError, match="no memory for the 18446744073709551616 bytes of `t`"):
        outcome(b.build(), size=1)


def test_an_array_that_shows_one_element_at_too_many_places_to_be_copied() -> None:
    func = tl.parse("""
        n = tl.dim("n")
        @tl.kernel
        def last(x: tl.f32[n, n], y: tl.f32[1]):
            y[0] = x[n - 1, n - 1]
    """)
    seen, y = np.lib.stride_tricks.as_strided(np.float32([2]), (1 << 29, 1 << 29), (0, 0)), np.zeros(1, np.float32)
    kernel = tl.compile(func)
    kernel(seen, y)
    assert y.tolist() == [2]
    with pytest.raises(KernelRunError, match="no memory for the 1152921504606846976 bytes of `x`"):
        kernel.interpret(seen, y)


def uses(use: str) -> pytest.RaisesExc:
    return pytest.raises(KernelRunError, match=f"uninitialised-read.*{use}.* depends on `t\\[1\\]`")


def builder() -> tuple[Builder, Buffer, Buffer]:
    """A kernel so far: `out` of the caller, and `t` of which only element 0 was written."""
    b = Builder("f")
    out, t = b.param("out", f32[4]), b.alloc("t", f32[4])
    b.store(t, 0, 1.0)
    return b, out, t


def test_what_was_written_may_be_used() -> None:
    b, out, t = builder()
    b.store(out, 0, t[0])
    assert outcome(b.build()).tolist() == [1, 0, 0, 0]


def test_poison_may_not_become_visible_to_the_caller() -> None:
    b, out, t = builder()
    b.store(out, 0, t[1])
    with uses("the value stored into `out`"):
        outcome(b.build())


def test_poison_may_not_decide_a_branch() -> None:
    b, _, t = builder()
    with b.if_(t[1] < 1.0):
        pass
    with uses("the condition of an `if`"):
        outcome(b.build())
    b, _, t = builder()
    with b.while_(t[1] < 1.0):
        pass
    with uses("the condition of a `while`"):
        outcome(b.build())


def test_poison_may_not_decide_what_is_evaluated() -> None:
    for node, use in ((And, "the left side of `and`"), (Or, "the left side of `or`")):
        b, _, t = builder()
        b.evaluate(node(t[1] < 1.0, const(True, bool_)))
        with uses(use):
            outcome(b.build())
    b, _, t = builder()
    b.evaluate(Call(f32, Op.IF_THEN_ELSE, (t[1] < 1.0, t[0], t[0])))
    with uses("the condition of a conditional expression"):
        outcome(b.build())


def test_poison_may_not_be_a_bound_an_index_an_extent_or_an_offset() -> None:
    b, _, t = builder()
    with b.for_("i", 0, t[1].astype(i64)):
        pass
    with uses("a bound of the loop over `i`"):
        outcome(b.build())
    b, out, t = builder()
    b.evaluate(out[t[1].astype(i64)])
    with uses("index 0 of `out`"):
        outcome(b.build())
    b, _, t = builder()
    b.alloc("s", f32[t[1].astype(i64)])
    with uses("extent 0 of `s`"):
        outcome(b.build())
    b, _, t = builder()
    b.view("v", t, f32[1], t[1].astype(i64))
    with uses("the byte offset of `v`"):
        outcome(b.build())


def test_poison_may_not_be_asserted() -> None:
    b, _, t = builder()
    b.assert_(t[1] < 1.0)  # noqa: PT009
    with uses("the condition of an assert"):
        outcome(b.build())


def test_poison_may_be_computed_with_and_stored_and_overwritten() -> None:
    b, out, t = builder()
    s = b.alloc("s", f32[2])
    b.store(s, 0, t[1] * 0.0 + t[0])
    b.store(s, 1, t[0])
    b.store(out, 0, s[1])
    b.store(t, 1, 2.0)
    b.store(out, 1, t[1])
    assert outcome(b.build()).tolist() == [1, 2, 0, 0]


def test_poison_flows_through_arithmetic_lets_and_stores() -> None:
    b, out, t = builder()
    s = b.alloc("s", f64[1])
    value = b.let("value", (t[1] * 0.0).astype(f64))
    b.store(s, 0, value + 1.0)
    b.store(out, 0, s[0])
    with pytest.raises(KernelRunError, match=r"depends on `s\[0\]`, which was never written"):
        outcome(b.build())


def test_select_takes_the_poison_of_the_chosen_side() -> None:
    b, out, t = builder()
    b.store(out, 0, Select(out[0] < 1.0, t[0], t[1]))
    assert outcome(b.build())[0] == 1
    b, out, t = builder()
    b.store(out, 0, Select(out[0] > 1.0, t[0], t[1]))
    with uses("out"):
        outcome(b.build())


def test_select_takes_the_poison_of_its_condition() -> None:
    b, out, t = builder()
    b.store(out, 0, Select(t[1] < 1.0, t[0], t[0]))
    with uses("out"):
        outcome(b.build())


def lanes_below(count: int) -> Expr:
    return Ramp(const(0, i32), const(1, i32), 4) < Broadcast(const(count, i32), 4)


def test_each_lane_has_its_own_poison() -> None:
    b, out, t = builder()
    whole = Load(t, (ramp(0, 4),))
    zeros = Broadcast(const(0.0, f32), 4)
    b.store(out, ramp(0, 4), Select(lanes_below(1), whole, zeros))
    assert outcome(b.build()).tolist() == [1, 0, 0, 0]
    b, out, t = builder()
    s = b.alloc("s", f32[4])
    b.store(s, ramp(0, 4), Load(t, (ramp(0, 4),)) + Broadcast(t[0], 4))
    b.store(out, 0, s[0])
    assert outcome(b.build())[0] == 2
    b, out, t = builder()
    b.store(out, ramp(0, 4), Select(lanes_below(2), Load(t, (ramp(0, 4),)), zeros))
    with pytest.raises(KernelRunError, match="uninitialised-read"):
        outcome(b.build())


def test_a_broadcast_of_poison_is_poison_in_every_lane() -> None:
    b, out, t = builder()
    s = b.alloc("s", f32[4])
    b.store(s, ramp(0, 4), Broadcast(t[1], 4))
    b.store(out, 0, s[3])
    with pytest.raises(KernelRunError, match=r"depends on `s\[3\]`"):
        outcome(b.build())


def test_poison_is_known_per_byte() -> None:
    b = Builder("f")
    out, t = b.param("out", i16[2]), b.alloc("t", i16[1])
    low, high = b.view("low", t, i8[1]), b.view("high", t, i8[1], 1)
    b.store(low, 0, 1)
    b.store(out, 0, low[0].astype(i16))
    b.store(high, 0, 2)
    b.store(out, 1, t[0])
    assert outcome(b.build()).tolist() == [1, 0x201]
    b = Builder("f")
    out, t = b.param("out", i16[2]), b.alloc("t", i16[1])
    low = b.view("low", t, i8[1])
    b.store(low, 0, 1)
    b.store(out, 0, t[0])
    with pytest.raises(KernelRunError, match=r"depends on `t\[0\]`"):
        outcome(b.build())


def test_each_allocation_is_fresh() -> None:
    b = Builder("f")
    out = b.param("out", f32[2])
    with b.for_("i", 0, 2) as i:
        t = b.alloc("t", f32[1])
        with b.if_(i < 1):
            b.store(t, 0, 1.0)
        b.store(out, i, t[0])
    array = np.zeros(2, np.float32)
    with pytest.raises(KernelRunError, match=r"depends on `t\[0\]`"):
        interpret(b.build(), {out: array})
    assert array.tolist() == [1, 0]


def test_a_poisoned_operand_is_no_division_by_zero() -> None:
    b = Builder("f")
    t = b.alloc("t", i32[1])
    b.evaluate(const(1, i32) // (t[0] - t[0]))
    interpret(b.build(), {})


def test_arrays_of_the_caller_are_never_poison() -> None:
    b = Builder("f")
    x = b.param("x", f32[n])
    b.view("v", x, f32[n])
    b.store(x, 0, x[1])
    assert outcome(b.build()).tolist() == [0, 0, 0]


def test_a_fresh_view_does_not_see_what_was_there_before() -> None:
    b = Builder("f")
    y = b.param("y", f32[2])
    arena = b.alloc("arena", f32[4])
    a = b.view("a", arena, f32[2], fresh=True)
    late = b.view("late", arena, f32[2], fresh=True)
    b.store(a, 0, 1.0)
    # What is declared, and not written yet, leaves alone what is read here.
    b.store(y, 0, a[0])
    b.store(y, 1, late[0])
    with pytest.raises(KernelRunError, match=r"depends on `late\[0\]`, which was never written"):
        outcome(b.build())


def test_what_another_buffer_has_overwritten_is_not_to_be_read() -> None:
    b = Builder("f")
    y = b.param("y", f32[2])
    arena = b.alloc("arena", f32[4])
    a = b.view("a", arena, f32[2], fresh=True)
    other = b.view("other", arena, u8[8], fresh=True)
    b.store(a, 0, 1.0)
    b.store(a, 1, 1.0)
    b.store(other, 7, 1)
    b.store(y, 0, a[0])
    b.store(y, 1, a[1])
    with pytest.raises(KernelRunError, match=r"depends on `a\[1\]`, which was never written"):
        outcome(b.build())


def test_a_fresh_view_is_poison_again_in_each_iteration() -> None:
    b = Builder("f")
    y = b.param("y", f32[2])
    arena = b.alloc("arena", f32[4])
    with b.for_("i", 0, 2) as i:
        t = b.view("t", arena, f32[2], fresh=True)
        same = b.view("same", t, f32[2])
        with b.if_(i < 1):
            b.store(same, 0, 1.0)
        b.store(y, i, t[0])
    with pytest.raises(KernelRunError, match=r"depends on `t\[0\]`, which was never written"):
        outcome(b.build())
