"""What each statement does, and which expressions are evaluated when."""

import numpy as np
import pytest
from every import every

from tirlite import ir
from tirlite.diag import CallValueError, KernelAssertionError, KernelRunError
from tirlite.interp import interpret
from tirlite.interp.expressions import LEAVES, RULES as EXPRESSION_RULES
from tirlite.interp.statements import RULES as STATEMENT_RULES
from tirlite.ir.builder import Builder
from tirlite.ir.dtype import bool_, f32, i8, i32, i64
from tirlite.ir.expr import And, Binary, Call, Compare, Expr, Or, Select, StringImm, Unary, Var, const
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import AttrKey, Stmt

n = Var("n")


def test_loops_run_in_order_with_i64_variables() -> None:
    b = Builder("count")
    out = b.param("out", i64[4])
    for kind in (b.for_, b.parallel, b.vectorized, b.unroll):
        with kind("i", 0, 4) as i:
            b.store(out, i, out[i] * 10 + i)
    with b.thread("t", "threadIdx.x", 4) as t:
        b.store(out, t, out[t] * 10 + t)
    array = np.zeros(4, np.int64)
    interpret(b.build(), {out: array})
    assert array.tolist() == [0, 11111, 22222, 33333]


RANGES = [(0, 7, 3), (7, 0, -2), (3, 3, 1), (5, 2, 1), (2, 5, -1), (3, -4, -3), (-200, 200, 1), (260, 250, -3)]
FAR = [(250, 300, 7), ((1 << 63) - 8, (1 << 63) - 1, 3), (-(1 << 63), 1 << 61, 1 << 61)]


@every("start, stop, step", RANGES + FAR)
def test_a_loop_counts_as_pythons_range(start: int, stop: int, step: int) -> None:
    b = Builder("count")
    out = b.param("out", i64[1])
    with b.for_("i", start, stop, step) as i:
        b.store(out, 0, out[0] * 11 + i)
    array, wanted = np.zeros(1, np.int64), 0
    interpret(b.build(), {out: array})
    for number in range(start, stop, step):
        wanted = wanted * 11 + number
    assert (int(array[0]) - wanted) % (1 << 64) == 0


def test_bounds_are_evaluated_once() -> None:
    b = Builder("grow")
    size, out = b.param("size", i64[1]), b.param("out", i64[1])
    with b.for_("i", 0, size[0]):
        b.store(size, 0, size[0] + 1)
        b.store(out, 0, out[0] + 1)
    array = np.zeros(1, np.int64)
    interpret(b.build(), {size: np.array([3]), out: array})
    assert array[0] == 3


def test_while_evaluates_its_condition_each_time() -> None:
    b = Builder("collatz")
    x, steps = b.param("x", i64[1]), b.param("steps", i64[1])
    with b.while_(x[0] > 1):
        with b.if_(x[0] % 2 < 1):
            b.store(x, 0, x[0] // 2)
        with b.else_():
            b.store(x, 0, x[0] * 3 + 1)
        b.store(steps, 0, steps[0] + 1)
    count = np.zeros(1, np.int64)
    interpret(b.build(), {x: np.array([27]), steps: count})
    assert count[0] == 111


def evaluates(expr_of_trap: Expr, trap: Expr) -> bool:
    """Whether evaluating the expression evaluates `trap`, which reads out of bounds."""
    b = Builder("f")
    b.evaluate(expr_of_trap)
    try:
        interpret(b.build(), {})
    except KernelRunError:
        return True
    return False


def test_and_or_and_if_then_else_evaluate_what_they_need() -> None:
    yes, no = const(True, bool_), const(False, bool_)
    trap = const(1, i32) // const(0, i32) > 0
    assert not evaluates(And(no, trap), trap)
    assert evaluates(And(yes, trap), trap)
    assert not evaluates(Or(yes, trap), trap)
    assert evaluates(Or(no, trap), trap)
    assert not evaluates(Call(bool_, Op.IF_THEN_ELSE, (yes, no, trap)), trap)
    assert evaluates(Call(bool_, Op.IF_THEN_ELSE, (no, no, trap)), trap)


def test_select_evaluates_both_sides() -> None:
    trap = const(1, i32) // const(0, i32)
    assert evaluates(Select(const(True, bool_), const(1, i32), trap), trap)


def test_and_and_or_give_the_last_value() -> None:
    b = Builder("f")
    out = b.param("out", bool_[4])
    for index, (x, y) in enumerate([(False, True), (True, False), (True, True), (False, False)]):
        b.store(out, index, Or(And(const(x, bool_), const(y, bool_)), And(const(y, bool_), const(x, bool_))))
    array = np.ones(4, np.bool_)
    interpret(b.build(), {out: array})
    assert array.tolist() == [False, False, True, False]


def test_a_let_is_evaluated_once_each_time_it_is_passed() -> None:
    b = Builder("f")
    x = b.param("x", i64[2])
    with b.for_("i", 0, 3):
        old = b.let("old", x[0])
        b.store(x, 0, old + 1)
        b.store(x, 1, x[1] + old)
    array = np.zeros(2, np.int64)
    interpret(b.build(), {x: array})
    assert array.tolist() == [3, 0 + 1 + 2]


def test_an_assert_stops_with_its_message_and_place() -> None:
    b = Builder("f")
    x = b.param("x", i64[1])
    b.store(x, 0, 5)
    b.assert_(x[0] < 5, "x is small")  # noqa: PT009
    b.store(x, 0, 6)
    array = np.zeros(1, np.int64)
    with pytest.raises(KernelAssertionError, match="x is small") as caught:
        interpret(b.build(), {x: array})
    assert "b.assert_(x[0] < 5" in str(caught.value)
    assert array[0] == 5


def test_attributes_change_nothing() -> None:
    b = Builder("f")
    x = b.param("x", i64[1])
    with b.attr(AttrKey.PRAGMA, value="hot"):
        b.store(x, 0, 1)
    array = np.zeros(1, np.int64)
    interpret(b.build(), {x: array})
    assert array[0] == 1


def test_a_barrier_outside_thread_loops_is_passed() -> None:
    b = Builder("f")
    x = b.param("x", f32[1])
    b.evaluate(Call(i32, Op.BARRIER, (StringImm("shared"),)))
    b.store(x, 0, 1.0)
    array = np.zeros(1, np.float32)
    interpret(b.build(), {x: array})
    assert array[0] == 1


def test_extern_calls_and_addresses_are_refused() -> None:
    b = Builder("f")
    b.evaluate(Call(f32, Op.CALL_EXTERN, (StringImm("sinf"), const(1.0, f32))))
    with pytest.raises(KernelRunError, match=r"not-interpretable.*tl\.call_extern"):
        interpret(b.build(), {})


def test_scalars_and_dims_are_bound() -> None:
    b = Builder("fill")
    x, value = b.param("x", f32[n, 2]), b.param("value", f32)
    with b.for_("i", 0, n) as i, b.for_("j", 0, 2) as j:
        b.store(x, (i, j), value)
    array = np.zeros((3, 2), np.float32)
    interpret(b.build(), {n: 3, x: array, value: 2.5})
    assert (array == 2.5).all()


@pytest.mark.parametrize(
    ("size", "array", "report"),
    [
        (3, np.zeros(4, np.float32), r"`x` must be of shape \(3,\), and is of shape \(4,\)"),
        (3, np.zeros(3), "C-contiguous array of float32, and is an array of float64"),
        (3, np.zeros(6, np.float32)[::2], "that is not"),
        (3, [0.0, 0.0, 0.0], "C-contiguous array of float32"),
        (None, np.zeros(3, np.float32), "`n` must be a number of type i64, and is not given"),
    ],
)
def test_unfit_arguments_are_refused(size: int | None, array: object, report: str) -> None:
    b = Builder("f")
    x = b.param("x", f32[n])
    with pytest.raises(CallValueError, match=report):
        interpret(b.build(), {n: size, x: array})


def test_arrays_may_overlap_unless_one_is_written() -> None:
    b = Builder("f")
    x, y, z = b.param("x", i8[2]), b.param("y", i8[2]), b.param("z", i8[2])
    alias = b.view("alias", z, i8[1], 1)
    b.store(alias, 0, x[0] + y[1])
    func = b.build()
    memory = np.arange(5, dtype=np.int8)
    interpret(func, {x: memory[:2], y: memory[:2], z: memory[2:4]})
    assert memory.tolist() == [0, 1, 2, 1, 4]
    with pytest.raises(CallValueError, match="`z`, which the kernel writes, overlaps `y`"):
        interpret(func, {x: memory[:2], y: memory[1:3], z: memory[2:4]})
    assert memory.tolist() == [0, 1, 2, 1, 4]


def test_depth_is_no_limit() -> None:
    b = Builder("deep")
    x = b.param("x", i64[1])
    total: Expr = const(0, i64)
    for _ in range(10_000):
        total = total + x[0]
    b.store(x, 0, total)
    blocks = []
    for depth in range(2_000):
        blocks.append(b.for_(f"i{depth}", 0, 1))
        blocks[-1].__enter__()
    b.store(x, 0, x[0] + 1)
    for block in reversed(blocks):
        block.__exit__(None, None, None)
    for _ in range(10_000):
        b.store(x, 0, x[0] + 1)
    array = np.ones(1, np.int64)
    interpret(b.build(), {x: array})
    assert array[0] == 10_000 + 1 + 10_000


NODES = [each for each in vars(ir).values() if isinstance(each, type) and issubclass(each, (Expr, Stmt))]


@every("kind", {*NODES} - {Expr, Unary, Binary, Compare, Stmt})
def test_every_node_has_a_rule(kind: type[Node]) -> None:
    assert kind in EXPRESSION_RULES or kind in LEAVES or kind in STATEMENT_RULES
