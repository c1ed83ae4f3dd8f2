"""One ill-formed function for each rule, and the well-formed ones that come close."""

from __future__ import annotations

from importlib import import_module

import pytest
from every import every

from tirlite import ir
from tirlite.diag import KernelError, Message, Source, Span
from tirlite.ir import (
    bf16,
    bool_,
    f16,
    f32,
    f64,
    handle,
    i32,
    i64,
    u8,
    validate_buffers,
    validate_calls,
    validate_statements,
    validate_types,
)
from tirlite.ir.validate import MOST_REPORTED
from tirlite.plan.scope import UnknownScope

n = ir.Var("n")
x = ir.Buffer("x", f32, (n,))
y = ir.Buffer("y", f32, (n, n))
a = ir.Var("a", f32)
flag = ir.Var("flag", bool_)
k = ir.Var("k")
PARAMS = (x, y, a, flag, k)

EMPTY = ir.seq()
ZERO, ONE = ir.const(0, i64), ir.const(1, i64)
HALF = ir.const(0.5, f32)
RAMP = ir.Ramp(ZERO, ONE, 4)
TEXT = ir.StringImm("threadIdx.x")


def func(*stmts: ir.Stmt, params: tuple[ir.Var | ir.Buffer, ...] = PARAMS) -> ir.PrimFunc:
    return ir.PrimFunc("f", params, ir.SeqStmt(stmts))


def codes(function: ir.PrimFunc) -> list[str]:
    try:
        ir.validate(function)
    except KernelError as error:
        return [message.code for message in error.messages]
    return []


def value(expr: ir.Expr) -> ir.PrimFunc:
    return func(ir.Evaluate(expr))


def loop(body: ir.Stmt = EMPTY, **changes: object) -> ir.PrimFunc:
    given = {"var": ir.Var("i"), "start": ZERO, "stop": n, "body": ir.seq(body)}
    return func(ir.For(**{**given, **changes}))


def buffer(*shape: ir.Expr, dtype: ir.DType = f32, **changes: object) -> ir.Buffer:
    return ir.Buffer("t", dtype, shape, **changes)


def allocated(*shape: ir.Expr, **changes: object) -> ir.PrimFunc:
    return func(ir.Allocate(buffer(*shape, **changes)))


def disjoint(*rows: tuple[int, ...]) -> ir.PrimFunc:
    """A function that says these rows of a plan with 4 entries."""
    plan = ir.Buffer("plan", i64, (ir.const(4, i64),))
    return ir.PrimFunc("f", (plan,), ir.seq(ir.AttrStmt(ir.AttrKey.DISJOINT, EMPTY, plan, rows)))


def view(source_size: int, size: int, offset: ir.Expr, scope: str = "global") -> ir.PrimFunc:
    source = ir.Buffer("s", u8, (ir.const(source_size, i64),))
    window = buffer(ir.const(size, i64), dtype=u8, scope=scope)
    return func(ir.Allocate(source), ir.View(window, source, offset))


def call(op: ir.Op, *args: ir.Expr, dtype: ir.DType = f32) -> ir.PrimFunc:
    return value(ir.Call(dtype, op, args))


def a_buffer() -> ir.BufferRef:
    return ir.BufferRef(x)


local = buffer(n)
pointers = ir.Buffer("pointers", handle, (ONE,))
v = ir.Var("v")


def kernel_call(*args: ir.Expr) -> ir.Stmt:
    """A call of a function that takes two arrays of one length, the first aligned to 32 bytes, and a number."""
    length = ir.Var("length")
    p, q = ir.Buffer("p", f32, (length,), alignment=32), ir.Buffer("q", f32, (length,))
    return ir.KernelCall(ir.PrimFunc("callee", (p, q, ir.Var("scale", f32)), EMPTY), args)


strided = ir.Buffer("strided", f32, (n,), strides=(k,))


def calling_strided() -> ir.Stmt:
    """A call of a function whose array has a stride."""
    callee = ir.PrimFunc("callee", (ir.Buffer("p", f32, (n,), strides=(ONE,)),), EMPTY)
    return ir.KernelCall(callee, (a_buffer(),))


def array(size: int, dtype: ir.DType = f32, alignment: int = 32, scope: str = "global") -> ir.Buffer:
    return ir.Buffer("given", dtype, (ir.const(size, i64),), scope, alignment)


def called(first: ir.Buffer, second: ir.Buffer, scale: ir.Expr = HALF) -> ir.PrimFunc:
    args = (ir.BufferRef(first), ir.BufferRef(second), scale)
    return func(ir.Allocate(first), ir.Allocate(second), kernel_call(*args))


PRINTS = ir.Evaluate(ir.Call(i32, ir.Op.PRINT, (ir.StringImm("{}\n"), k)))

ILL_FORMED: list[tuple[str, ir.PrimFunc]] = [
    ("operand-types-differ", value(ir.Add(k, a))),
    ("operand-types-differ", value(ir.Add(k, ir.const(1, i32)))),
    ("operand-types-differ", value(ir.LT(k, a))),
    ("operand-types-differ", value(ir.Mul(RAMP, k))),
    ("operand-types-differ", value(ir.Select(flag, k, a))),
    ("operand-types-differ", value(ir.Ramp(k, ir.const(1, i32), 4))),
    ("operand-type", value(ir.Add(flag, flag))),
    ("operand-type", value(ir.Mul(ir.Var("h", handle), ir.Var("h", handle)))),
    ("operand-type", value(ir.Neg(flag))),
    ("operand-type", value(ir.Not(k))),
    ("operand-type", value(ir.BitNot(a))),
    ("operand-type", value(ir.BitNot(flag))),
    ("operand-type", value(ir.And(k, k))),
    ("operand-type", value(ir.Or(ir.LT(RAMP, RAMP), ir.LT(RAMP, RAMP)))),
    ("operand-type", value(ir.BitAnd(a, a))),
    ("operand-type", value(ir.ShiftLeft(a, a))),
    ("operand-type", value(ir.ShiftRight(flag, flag))),
    ("operand-type", value(ir.Div(k, k))),
    ("operand-type", value(ir.TruncDiv(a, a))),
    ("operand-type", value(ir.TruncMod(a, a))),
    ("operand-type", value(ir.FloorDiv(flag, flag))),
    ("operand-type", value(ir.Select(k, a, a))),
    ("operand-type", value(ir.Ramp(a, a, 4))),
    ("operand-type", value(ir.Ramp(RAMP, RAMP, 4))),
    ("operand-type", value(ir.Broadcast(RAMP, 4))),
    ("select-lanes", value(ir.Select(ir.LT(RAMP, RAMP), k, k))),
    ("impossible-cast", value(ir.Cast(f32.with_lanes(8), RAMP))),
    ("impossible-cast", value(ir.Cast(i64, ir.Call(handle, ir.Op.ADDRESS_OF, (x[0],))))),
    ("constant-type", value(ir.IntImm(f32, 1))),
    ("constant-type", value(ir.IntImm(i64.with_lanes(2), 1))),
    ("constant-type", value(ir.FloatImm(i32, 1.0))),
    ("constant-range", value(ir.IntImm(u8, 256))),
    ("constant-range", value(ir.IntImm(i32, -(2**31) - 1))),
    ("constant-range", value(ir.IntImm(bool_, 2))),
    ("vector-lanes", value(ir.Ramp(ZERO, ONE, 1))),
    ("vector-lanes", value(ir.Broadcast(a, 0))),
    ("let-type", func(ir.Let(ir.Var("v", f32), k))),
    ("let-type", value(ir.LetExpr(ir.Var("v", f32), k, a))),
    ("index-count", value(ir.Load(y, (ZERO,)))),
    ("index-count", func(ir.Store(x, (), HALF))),
    ("index-type", value(ir.Load(x, (a,)))),
    ("index-type", value(ir.Load(x, (flag,)))),
    ("index-lanes", value(ir.Load(y, (RAMP, ZERO)))),
    ("index-type", func(ir.Store(x, (a,), HALF))),
    ("index-lanes", func(ir.Store(y, (RAMP, ZERO), HALF))),
    ("misplaced-argument", func(ir.Evaluate(TEXT))),
    ("misplaced-argument", value(ir.Select(flag, a_buffer(), a_buffer()))),
    ("misplaced-argument", value(x[a_buffer()])),
    ("misplaced-argument", value(ir.LetExpr(ir.Var("v", handle), a_buffer(), k))),
    ("misplaced-argument", func(ir.Store(pointers, (ZERO,), a_buffer()))),
    ("misplaced-argument", func(ir.Let(ir.Var("v", handle), a_buffer()))),
    ("call-arity", call(ir.Op.EXP, a, a)),
    ("call-arity", call(ir.Op.FMA, a, a)),
    ("call-arity", call(ir.Op.CALL_EXTERN)),
    ("call-argument", call(ir.Op.EXP, k, dtype=i64)),
    ("call-argument", call(ir.Op.ABS, flag, dtype=bool_)),
    ("call-argument", call(ir.Op.POW, a, k)),
    ("call-argument", call(ir.Op.IF_THEN_ELSE, k, a, a)),
    ("call-argument", call(ir.Op.IF_THEN_ELSE, flag, a, k)),
    ("call-argument", call(ir.Op.ADDRESS_OF, a, dtype=handle)),
    ("call-argument", call(ir.Op.ACCESS_PTR, a_buffer(), ZERO, ONE, ir.StringImm("x"), dtype=handle)),
    ("call-argument", call(ir.Op.ACCESS_PTR, a, ZERO, ONE, ir.StringImm("r"), dtype=handle)),
    ("call-argument", call(ir.Op.CALL_EXTERN, a)),
    ("call-argument", call(ir.Op.BARRIER, a)),
    ("call-arity", call(ir.Op.PRINT, dtype=i32)),
    ("call-argument", call(ir.Op.PRINT, a, dtype=i32)),
    ("call-argument", call(ir.Op.PRINT, ir.StringImm("{}"), dtype=i32)),
    ("call-argument", call(ir.Op.PRINT, ir.StringImm("{:d}"), a, dtype=i32)),
    ("call-argument", call(ir.Op.PRINT, ir.StringImm("{a}"), a, dtype=i32)),
    ("call-argument", call(ir.Op.PRINT, ir.StringImm("{}"), RAMP, dtype=i32)),
    ("call-argument", call(ir.Op.PRINT, ir.StringImm("{}"), a_buffer(), dtype=i32)),
    ("call-result", call(ir.Op.PRINT, ir.StringImm("a"))),
    ("print-place", value(ir.Add(ir.Call(i32, ir.Op.PRINT, (ir.StringImm("a"),)), ir.const(1, i32)))),
    ("print-order", func(ir.For(ir.Var("i"), ZERO, n, ir.seq(PRINTS), ir.ForKind.REDUCE))),
    ("call-result", call(ir.Op.EXP, a, dtype=f64)),
    ("call-result", call(ir.Op.ISNAN, a)),
    ("call-result", call(ir.Op.IF_THEN_ELSE, flag, k, k)),
    ("call-result", call(ir.Op.ADDRESS_OF, x[0])),
    ("call-arity", func(kernel_call(ir.BufferRef(x)))),
    ("call-buffer", called(array(4), array(4, f64))),
    ("call-buffer", called(array(4), array(4, scope="shared"))),
    ("call-buffer", called(array(4, alignment=16), array(4))),
    ("call-buffer", called(array(4), array(4), ZERO)),
    ("call-buffer", called(array(4), array(4), ir.BufferRef(x))),
    ("call-buffer", called(array(4), y)),
    ("call-shape", called(array(4), array(5))),
    ("undefined", func(kernel_call(ir.BufferRef(array(4)), ir.BufferRef(array(4)), HALF))),
    ("undefined", func(ir.KernelCall(value(v), tuple(map(ir.BufferRef, (x, y))) + (a, flag, k)))),
    ("store-type", func(ir.Store(x, (ZERO,), k))),
    ("store-type", func(ir.Store(x, (RAMP,), HALF))),
    ("condition-type", func(ir.IfThenElse(k, EMPTY))),
    ("condition-type", func(ir.While(a, EMPTY))),
    ("condition-type", func(ir.Assert(ir.LT(RAMP, RAMP), ""))),
    ("loop-type", loop(stop=ir.const(3, i32))),
    ("loop-type", loop(start=a)),
    ("loop-type", loop(var=ir.Var("i", i32))),
    ("loop-step", loop(step=0)),
    ("loop-step", loop(step=1 << 63)),
    ("loop-step", loop(step=1.5)),
    ("thread-loop", loop(kind=ir.ForKind.THREAD, thread_tag="threadIdx.x", start=ONE)),
    ("thread-loop", loop(kind=ir.ForKind.THREAD, thread_tag="threadIdx.x", step=2)),
    ("thread-loop", loop(kind=ir.ForKind.THREAD, thread_tag="threadidx.x")),
    ("thread-loop", loop(kind=ir.ForKind.THREAD)),
    ("thread-loop", loop(kind=ir.ForKind.PARALLEL, thread_tag="threadIdx.x")),
    ("view-offset", view(8, 8, ir.const(0, i32))),
    ("view-range", view(8, 4, ir.const(5, i64))),
    ("view-range", view(8, 4, ir.const(-1, i64))),
    ("view-scope", view(8, 8, ZERO, scope="local")),
    ("assert-places", func(ir.Assert(flag, "at {}", (k, k)))),
    ("attr-payload", func(ir.AttrStmt(ir.AttrKey.DOUBLE_BUFFER, EMPTY))),
    ("attr-payload", func(ir.AttrStmt(ir.AttrKey.PRAGMA, EMPTY, x, "unroll"))),
    ("attr-payload", func(ir.AttrStmt(ir.AttrKey.PRAGMA, EMPTY, None, 3))),
    ("attr-payload", func(ir.AttrStmt(ir.AttrKey.DOUBLE_BUFFER, EMPTY, x, 2))),
    ("attr-payload", func(ir.AttrStmt(ir.AttrKey.DISJOINT, EMPTY, x, ((0, 1),)))),
    ("attr-payload", disjoint((0, 4))),
    ("attr-payload", disjoint((1, 0))),
    ("attr-payload", disjoint((True, 2))),
    ("body-type", func(ir.While(flag, ir.Evaluate(a)))),
    ("body-type", func(ir.For(ir.Var("i"), ZERO, n, ir.Evaluate(a)))),
    ("body-type", func(ir.IfThenElse(flag, EMPTY, ir.Evaluate(a)))),
    ("body-type", func(ir.AttrStmt(ir.AttrKey.EXTERN_SCOPE, ir.Evaluate(a)))),
    ("body-type", ir.PrimFunc("f", PARAMS, ir.Evaluate(a))),
    ("alignment", allocated(n, alignment=48)),
    ("alignment", allocated(n, alignment=-8)),
    ("alignment", allocated(n, alignment=1 << 33)),
    ("unknown-scope", allocated(n, scope="globl")),
    ("unknown-scope", allocated(n, scope="local.")),
    ("extent-type", allocated(ir.const(4, i32))),
    ("extent-type", allocated(a)),
    ("negative-extent", allocated(ir.const(-1, i64))),
    ("duplicate-parameter", func(params=(x, k, k))),
    ("output-not-parameter", ir.PrimFunc("f", PARAMS, EMPTY, (local,))),
    ("wrong-default", ir.PrimFunc("f", PARAMS, EMPTY, (), (None,) * len(PARAMS) + (1,))),
    ("undetermined-dim", func(params=(buffer(ir.Mul(n, n)),))),
    ("shape-not-fixed", func(params=(x, buffer(ir.Cast(i64, ir.Load(x, (ZERO,))))))),
    ("undefined", value(v)),
    ("undefined", func(ir.Store(local, (ZERO,), HALF))),
    ("undefined", allocated(v)),
    ("used-before-definition", func(ir.Evaluate(v), ir.Let(v, k))),
    ("used-before-definition", func(ir.Let(v, ir.Add(v, k)))),
    ("used-before-definition", func(ir.Store(local, (ZERO,), HALF), ir.Allocate(local))),
    ("strides", func(params=(ir.Buffer("s", f32, (n, n), strides=(k,)), k))),
    ("strides", func(params=(ir.Buffer("s", f32, (n,), strides=(v,)),))),
    ("strides", func(params=(ir.Buffer("s", f32, (n,), strides=(ir.Add(k, k),)), k))),
    ("strides", func(params=(ir.Buffer("s", f32, (n,), strides=(ir.const(1, i32),)),))),
    ("strides", func(params=(ir.Buffer("s", f32.with_lanes(4), (n,), strides=(k,)), k))),
    ("strides", allocated(n, strides=(ONE,))),
    ("strided-use", func(ir.View(local, strided, ZERO), params=(strided, k))),
    ("strided-use", func(ir.Evaluate(ir.Call(handle, ir.Op.ADDRESS_OF, (strided[0],))), params=(strided, k))),
    ("strided-use", func(kernel_call(a_buffer(), ir.BufferRef(strided), HALF), params=(x, strided, k))),
    ("call-buffer", func(calling_strided(), params=(x,))),
    ("out-of-scope", func(ir.For(v, ZERO, n, EMPTY), ir.Evaluate(v))),
    ("out-of-scope", func(ir.While(flag, ir.seq(ir.Allocate(local))), ir.Store(local, (ZERO,), HALF))),
    ("out-of-scope", func(ir.IfThenElse(flag, ir.seq(ir.Let(v, k)), ir.seq(ir.Evaluate(v))))),
    ("out-of-scope", value(ir.Add(ir.LetExpr(v, k, v), v))),
    ("defined-twice", func(ir.Let(v, k), ir.Let(v, k))),
    ("defined-twice", func(ir.Allocate(local), ir.While(flag, ir.seq(ir.Allocate(local))))),
    ("defined-twice", func(ir.Let(k, ZERO))),
    ("defined-twice", loop(ir.For(n, ZERO, ONE, EMPTY))),
]


@every("code, function", ILL_FORMED)
def test_each_rule_is_held(code: str, function: ir.PrimFunc) -> None:
    assert code in codes(function)


OPERANDS = {dtype.name: ir.Var("o", dtype) for dtype in (i64, u8, f32, bool_, handle, f32.with_lanes(4))}
NUMBERS, INTEGERS, FLOATS = {"i64", "u8", "f32", "f32x4"}, {"i64", "u8"}, {"f32", "f32x4"}
TAKES: dict[type[ir.Binary] | type[ir.Compare], set[str]] = {
    **dict.fromkeys((ir.Add, ir.Sub, ir.Mul, ir.FloorDiv, ir.FloorMod), NUMBERS),
    **dict.fromkeys((ir.TruncDiv, ir.TruncMod, ir.ShiftLeft, ir.ShiftRight), INTEGERS),
    **dict.fromkeys((ir.BitAnd, ir.BitOr, ir.BitXor), INTEGERS | {"bool_"}),
    **dict.fromkeys((ir.Min, ir.Max, ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE), NUMBERS | {"bool_"}),
    **dict.fromkeys((ir.And, ir.Or), {"bool_"}),
    ir.Div: FLOATS,
}


@every("kind", TAKES)
def test_what_each_operator_takes(kind: type[ir.Binary] | type[ir.Compare]) -> None:
    taken = {
        name
        for name, operand in OPERANDS.items()
        if codes(func(ir.Evaluate(kind(operand, operand)), params=(operand,))) == []
    }
    assert taken == TAKES[kind]


@every("kind", TAKES)
def test_no_operator_mixes_types(kind: type[ir.Binary] | type[ir.Compare]) -> None:
    for left in sorted(TAKES[kind]):
        other = next(operand for name, operand in OPERANDS.items() if name not in (left, "handle"))
        mixed = ir.Evaluate(kind(OPERANDS[left], other))
        assert codes(func(mixed, params=(OPERANDS[left], other))) == ["operand-types-differ"]


def test_every_operator_is_in_the_table() -> None:
    assert set(TAKES) == {*ir.Binary.__subclasses__(), *ir.Compare.__subclasses__()}


def test_each_rule_has_an_example() -> None:
    here = import_module("tirlite.ir.validate")
    homes = (here, validate_buffers, validate_calls, validate_statements, validate_types)
    told = [each for home in homes for each in vars(home).values() if getattr(each, "__module__", "") == home.__name__]
    rules = {each.code for each in told if isinstance(each, type) and issubclass(each, Message)}
    assert sorted({code for code, _ in ILL_FORMED}) == sorted({*rules, UnknownScope.code})


SHARED = ir.seq(ir.Allocate(local), ir.Let(v, k), ir.Store(local, (v,), HALF))

WELL_FORMED = {
    "a call": called(array(4), array(4)),
    "halves": value(ir.Add(ir.const(0.5, f16), ir.Cast(f16, ir.const(0.5, bf16)))),
    "an empty function": func(params=()),
    "a scalar parameter as an extent": func(params=(buffer(k), k)),
    "a dim bound by a later parameter": func(params=(buffer(ir.Add(n, ONE)), x)),
    "a vector access": func(ir.Store(x, (RAMP,), ir.Broadcast(HALF, 4))),
    "a scalar condition for vectors": value(ir.Select(flag, RAMP, RAMP)),
    "bits of bools": value(ir.BitAnd(ir.LT(RAMP, RAMP), ir.LT(RAMP, RAMP))),
    "strides": func(ir.Store(strided, (ZERO,), HALF), ir.Evaluate(strided[RAMP]), params=(strided, k)),
    "no axis": func(ir.Allocate(buffer()), params=()),
    "a view to the last byte": view(8, 4, ir.const(4, i64)),
    "a view of unknown extent": func(ir.View(local, x, ZERO)),
    "a thread loop": loop(kind=ir.ForKind.THREAD, thread_tag="threadIdx.x"),
    "a loop backwards": loop(start=n, stop=ZERO, step=-1),
    "a barrier": call(ir.Op.BARRIER, ir.StringImm("shared")),
    "a line of a loop in order": func(ir.For(ir.Var("i"), ZERO, n, ir.seq(PRINTS))),
    "an access pointer": call(ir.Op.ACCESS_PTR, a_buffer(), ZERO, ONE, ir.StringImm("rw"), dtype=handle),
    "an extern call": call(ir.Op.CALL_EXTERN, ir.StringImm("f"), a_buffer(), k),
    "both branches define": func(ir.IfThenElse(flag, ir.seq(ir.Let(v, k)), ir.seq(ir.Let(v, ONE)))),
    "one body in two loops": func(*(ir.For(ir.Var("i"), ZERO, n, SHARED) for _ in range(2))),
    "one body unrolled in a row": func(*SHARED.stmts, *SHARED.stmts),
    "one body peeled off its loop": func(*SHARED.stmts, ir.For(ir.Var("i"), ONE, n, SHARED)),
}


@every("name", WELL_FORMED)
def test_accepts(name: str) -> None:
    assert codes(WELL_FORMED[name]) == []


def test_a_name_that_an_inner_block_redefined_has_gone_after_it() -> None:
    peeled = func(*SHARED.stmts, ir.For(ir.Var("i"), ONE, n, SHARED), ir.Evaluate(v))
    assert codes(peeled) == ["out-of-scope"]


def test_a_message_shows_the_line_and_the_values() -> None:
    source = Source.of("scale.py", "first\n    y[i] = k\n")
    stmt = ir.Store(x, (ZERO,), k, span=Span(source, 2, 4, 2, 12))
    with pytest.raises(KernelError) as caught:
        ir.validate(func(stmt))
    assert str(caught.value) == "\n".join(
        [
            "error[store-type]: a value of type i64 is stored to f32 of `x`",
            " --> scale.py:2:5",
            "  |",
            "2 |     y[i] = k",
            "  |     ^^^^^^^^",
            "  |",
            "  = help: cast the value",
        ]
    )


def test_a_second_definition_points_at_the_first() -> None:
    source = Source.of("two.py", "v = 1\nv = 2\n")
    first, second = (Span(source, line, 0, line, 5) for line in (1, 2))
    with pytest.raises(KernelError) as caught:
        ir.validate(func(ir.Let(v, k, span=first), ir.Let(v, k, span=second)))
    (message,) = caught.value.messages
    assert isinstance(message, Message)
    assert (message.span, message.related) == (second, first)


def test_what_is_known_is_not_looked_at_again() -> None:
    callee = func(ir.Evaluate(v), params=())
    caller = func(ir.KernelCall(callee, ()), params=())
    assert codes(caller) == ["undefined"]
    ir.validate(caller, known=(callee,))


def test_what_was_found_to_be_well_formed_is_not_looked_at_again(monkeypatch) -> None:
    callee = func(ir.Store(x, (ZERO,), a), params=(x, a))
    ir.validate(callee)
    looked_at: list[object] = []
    monkeypatch.setattr(
        import_module("tirlite.ir.validate"), "_own_violations", lambda each: looked_at.append(each) or ()
    )
    caller = func(ir.KernelCall(callee.named("other"), (ir.BufferRef(x), a)), params=(x, a))
    ir.validate(caller)
    ir.validate(caller)
    assert looked_at == [caller]
    ir.validate(callee.replaced(body=ir.SeqStmt(())))
    assert len(looked_at) == 2


def test_violations_come_in_program_order_and_not_without_end() -> None:
    mixed = func(ir.Evaluate(v), ir.Store(x, (ZERO,), k), ir.Evaluate(ir.Add(k, a)))
    assert codes(mixed) == ["undefined", "store-type", "operand-types-differ"]
    assert len(codes(func(*(ir.Evaluate(v) for _ in range(100))))) == MOST_REPORTED


def test_depth_is_no_matter() -> None:
    total: ir.Expr = k
    for _ in range(10_000):
        total = ir.Add(total, ONE)
    nest: ir.Stmt = ir.Evaluate(total)
    for _ in range(2_000):
        nest = ir.For(ir.Var("i"), ZERO, n, ir.seq(nest))
    assert codes(func(nest)) == []
