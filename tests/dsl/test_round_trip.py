"""What is printed reads back as the same function: for every kind of node, and for random functions of all of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import inf, nan

from every import every

import tirlite as tl
from tirlite import ir
from tirlite.ir import f32, f64, i8, i32, i64, u64

EVERY_TYPE = (ir.bool_, ir.i8, ir.i16, ir.i32, ir.i64, ir.u8, ir.u16, ir.u32, ir.u64, ir.f32, ir.f64)


def assert_reads_back(func: ir.PrimFunc) -> None:
    ir.validate(func)
    text = str(func)
    again = tl.parse(text)
    equality = tl.structural_equal(func, again)
    assert equality, f"{equality}\n{text}\n{again}"
    assert str(again) == text


class Case:
    """A function with a parameter of some types, to put one node into."""

    def __init__(self) -> None:
        self.n = tl.dim("n", max=4096)
        self.buffers = {dtype: ir.Buffer(f"b_{dtype}", dtype, (self.n,)) for dtype in EVERY_TYPE}
        self.scalars = {dtype: ir.Var(f"s_{dtype}", dtype) for dtype in EVERY_TYPE}
        self.plan = ir.Buffer("plan", i64, (ir.IntImm(i64, 5),))

    def load(self, dtype: ir.DType, index: ir.ExprLike = 0) -> ir.Expr:
        return self.buffers[dtype][index]

    def func(self, *stmts: ir.Stmt) -> ir.PrimFunc:
        params = (*self.buffers.values(), *self.scalars.values(), self.plan)
        return ir.PrimFunc("f", params, ir.SeqStmt(stmts), tuple(self.buffers.values())[:1])

    def value(self, expr: ir.Expr) -> ir.PrimFunc:
        return self.func(ir.Evaluate(expr))


def vector(case: Case, dtype: ir.DType) -> ir.Expr:
    return case.load(dtype, ir.Ramp(ir.IntImm(i64, 0), ir.IntImm(i64, 1), 4))


def call(dtype: ir.DType, op: ir.Op, *args: ir.Expr) -> ir.Expr:
    return ir.Call(dtype, op, args)


true, one, two = ir.IntImm(ir.bool_, 1), ir.IntImm(i64, 1), ir.IntImm(i64, 2)

# A value made of each kind of expression, by the name of its class or of its operation.
VALUES: dict[str, Callable[[Case], list[ir.Expr]]] = {
    "Var": lambda c: [*c.scalars.values(), c.n],
    "IntImm": lambda c: [
        *(ir.IntImm(t, v) for t in EVERY_TYPE if not t.is_float for v in {t.min, 0, 1, t.max}),
    ],
    "FloatImm": lambda c: [
        ir.FloatImm(t, v)
        for t in (f32, f64)
        for v in (0.0, -0.0, 0.1, 1 / 3, -1e-40, 5e-324, 1e30, 16777217.0, inf, -inf, nan)
    ],
    "Cast": lambda c: (
        [ir.Cast(to, c.load(t)) for t in EVERY_TYPE for to in EVERY_TYPE]
        + [ir.Cast(f64, one), ir.Cast(i64, one), ir.Cast(f32.with_lanes(4), vector(c, i8))]
    ),
    "Neg": lambda c: [ir.Neg(c.load(f32)), ir.Neg(ir.Neg(c.load(f32))), ir.Neg(one), ir.Neg(ir.IntImm(i64, -1))],
    "BitNot": lambda c: [ir.BitNot(c.load(u64)), ir.BitNot(one), ir.BitNot(ir.Neg(c.load(i8)))],
    "Not": lambda c: [ir.Not(c.load(ir.bool_)), ir.Not(true), ir.Not(ir.Not(ir.LT(one, two)))],
    "And": lambda c: [ir.And(ir.And(true, c.load(ir.bool_)), true), ir.And(true, ir.And(true, true))],
    "Or": lambda c: [ir.Or(ir.And(true, true), true), ir.And(ir.Or(true, true), ir.Or(true, true))],
    "Select": lambda c: [
        ir.Select(c.load(ir.bool_), one, two),
        ir.Select(true, c.load(f32), ir.FloatImm(f32, 1.0)),
        ir.Select(vector(c, ir.bool_), vector(c, f32), vector(c, f32)),
    ],
    "Load": lambda c: [c.load(f32, c.scalars[i8]), c.load(f32, ir.IntImm(i32, 3)), vector(c, f32)],
    "BufferRef": lambda c: [call(f32, ir.Op.CALL_EXTERN, ir.StringImm("f"), ir.BufferRef(c.buffers[f32]))],
    "StringImm": lambda c: [
        call(ir.handle, ir.Op.CALL_EXTERN, ir.StringImm(s)) for s in ("f", 'a"b', "a'b\"\n\\", "é\x7f\u2028\x00😀")
    ],
    "Ramp": lambda c: [ir.Ramp(one, two, 4), ir.Ramp(c.load(i32), ir.IntImm(i32, -1), 2)],
    "Broadcast": lambda c: [ir.Broadcast(one, 4), ir.Broadcast(ir.FloatImm(f32, 0.5), 2), ir.Broadcast(true, 8)],
    "Call": lambda c: [],
    "LetExpr": lambda c: [let(c), ir.Add(let(c), let(c))],
    **{
        kind.__name__: lambda c, kind=kind: binaries(c, kind)
        for kind in (
            *(ir.Add, ir.Sub, ir.Mul, ir.Div, ir.FloorDiv, ir.FloorMod, ir.TruncDiv, ir.TruncMod, ir.Min, ir.Max),
            *(ir.BitAnd, ir.BitOr, ir.BitXor, ir.ShiftLeft, ir.ShiftRight),
            *(ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE),
        )
    },
    **{op.label: lambda c, op=op: calls(c, op) for op in ir.Op},
}


def let(case: Case) -> ir.Expr:
    var = ir.Var("t", f32)
    return ir.LetExpr(var, case.load(f32), ir.Mul(var, var))


def binaries(case: Case, kind: type[ir.Binary] | type[ir.Compare]) -> list[ir.Expr]:
    """The operation on each type that it takes: beside constants, among constants, and nested to either side."""
    found = []
    for dtype in EVERY_TYPE:
        number, constant = case.load(dtype), ir.const(1, dtype)
        if not dtype.is_float and kind is ir.Div:
            continue
        if not dtype.is_integer and kind in (ir.TruncDiv, ir.TruncMod, ir.ShiftLeft, ir.ShiftRight):
            continue
        if (
            dtype.is_bool
            and issubclass(kind, ir.Binary)
            and kind not in (ir.BitAnd, ir.BitOr, ir.BitXor, ir.Min, ir.Max)
        ):
            continue
        if dtype.is_float and kind in (ir.BitAnd, ir.BitOr, ir.BitXor):
            continue
        found += [kind(number, number), kind(number, constant), kind(constant, number), kind(constant, constant)]
        if issubclass(kind, ir.Binary):
            found += [kind(kind(number, constant), number), kind(number, kind(number, constant))]
        else:
            found += [kind(true, kind(number, number)), kind(kind(number, number), true)]
    return found


def calls(case: Case, op: ir.Op) -> list[ir.Expr]:
    x, b = case.load(f32), case.buffers[f32]
    if op is ir.Op.IF_THEN_ELSE:
        choice = call(f32, op, case.load(ir.bool_), x, ir.FloatImm(f32, 1.0))
        return [choice, call(f32, op, true, choice, choice), call(i64, op, true, one, two), ir.Add(choice, choice)]
    if op is ir.Op.CHECKED:
        indices = (ir.IntImm(i64, 0), case.scalars[i8], ir.Ramp(ir.IntImm(i64, 0), ir.IntImm(i64, 1), 4))
        return [case.load(f32, call(index.dtype, op, index)) for index in indices]
    if op is ir.Op.MASKED:
        lanes = ir.Ramp(ir.IntImm(i64, 0), ir.IntImm(i64, 1), 4)
        return [case.load(f32, call(lanes.dtype, op, lanes, ir.LT(lanes, lanes)))]
    if op is ir.Op.ANY:
        return [call(ir.bool_, op, vector(case, ir.bool_))]
    if op in (ir.Op.INTERLEAVE_LOW, ir.Op.INTERLEAVE_HIGH):
        return [call(f32.with_lanes(4), op, vector(case, f32), vector(case, f32))]
    if op is ir.Op.DOT:
        lanes = ir.Ramp(ir.IntImm(i64, 0), ir.IntImm(i64, 1), 4)
        bytes_of = case.load(i8, lanes)
        return [call(i32, op, case.load(i32), bytes_of, bytes_of)]
    if op is ir.Op.ADDRESS_OF:
        return [call(ir.handle, op, x)]
    if op is ir.Op.ACCESS_PTR:
        return [call(ir.handle, op, ir.BufferRef(b), one, case.n, ir.StringImm("rw"))]
    if op is ir.Op.CALL_EXTERN:
        return [call(f32, op, ir.StringImm("f"), ir.BufferRef(b), one, x, call(ir.handle, ir.Op.ADDRESS_OF, x))]
    if op is ir.Op.BARRIER:
        return [call(i32, op, ir.StringImm("shared"))]
    if op is ir.Op.PRINT:
        texts = (("a {} {:.3f} {{}}\n", one, x), ("{}", ir.FloatImm(f32, 2.0)), ('{{"\n\n',), ("\n",), ("",))
        return [call(i32, op, ir.StringImm(text), *values) for text, *values in texts]
    arguments = [[case.load(t)] * (op.arity or 0) for t in (f32, f64)]
    arguments += [[ir.FloatImm(t, 2.0)] * (op.arity or 0) for t in (f32, f64)]
    arguments += [[case.load(i8)], [ir.IntImm(i8, -1)], [one]] if op is ir.Op.ABS else []
    arguments += [[vector(case, f32)] * (op.arity or 0)]
    return [
        call(ir.bool_.with_lanes(args[0].dtype.lanes) if op is ir.Op.ISNAN else args[0].dtype, op, *args)
        for args in arguments
    ]


@every("name", VALUES)
def test_every_expression_reads_back(name: str) -> None:
    case = Case()
    values = VALUES[name](case)
    assert_reads_back(case.func(*(ir.Evaluate(value) for value in values)))


def concrete(base: type[ir.Node]) -> set[str]:
    """The names of all node classes of the IR below `base` that are not themselves a family."""
    kinds = [kind for kind in vars(ir).values() if isinstance(kind, type) and issubclass(kind, base)]
    families = {parent for kind in kinds for parent in kind.__mro__[1:]}
    return {kind.__name__ for kind in kinds if kind not in families}


def test_every_expression_has_a_case() -> None:
    assert concrete(ir.Expr) - set(VALUES) == set()


def loop(kind: ir.ForKind, *stmts: ir.Stmt, step: int = 1, tag: str = "", start: int = 0) -> ir.For:
    stop = ir.IntImm(i64, 8)
    return ir.For(ir.Var("i"), ir.IntImm(i64, start), stop, ir.SeqStmt(stmts), kind, step, tag)


def attr(key: ir.AttrKey, case: Case, *stmts: ir.Stmt) -> ir.AttrStmt:
    takes_buffer, payload = ir.PAYLOADS[key]
    if key is ir.AttrKey.ALLOW:
        return ir.AttrStmt(key, ir.SeqStmt(stmts), None, tuple(ir.Permission))
    if payload is tuple:
        return ir.AttrStmt(key, ir.SeqStmt(stmts), case.plan, ((0, 1, 4), (2,), ()))
    value = "local" if payload is str else None
    return ir.AttrStmt(key, ir.SeqStmt(stmts), case.buffers[f32] if takes_buffer else None, value)


def allocations(case: Case) -> list[ir.Stmt]:
    a = ir.Buffer("a", f32, (case.n, ir.Add(case.n, two)), "local.UB", 64, True)
    scalar = ir.Buffer("s", f64, ())
    wide = ir.Buffer("v", f32.with_lanes(4), (two,), "shared")
    stmts: list[ir.Stmt] = [ir.Allocate(a), ir.Allocate(scalar), ir.Allocate(wide)]
    stmts += [ir.Store(scalar, (), scalar[()]), ir.Store(wide, (one,), wide[0])]
    bytes_ = ir.Buffer("raw", ir.u8, (two,), "local.UB", 0, True)
    quiet = ir.Buffer("quiet", ir.u8, (two,), "local.UB", 16)
    return [
        *stmts,
        ir.View(bytes_, a, ir.IntImm(i64, 0)),
        ir.View(quiet, a, ir.Mul(case.n, two), fresh=True),
        ir.Evaluate(quiet[0]),
    ]


def kernel_calls(case: Case) -> list[ir.Stmt]:
    n, gain = tl.dim("n", multiple_of=2), ir.Var("gain", f64)
    x, y = ir.Buffer("x", f32, (n,)), ir.Buffer("f", f32, (ir.Mul(n, gain.astype(i64)),))
    inner = ir.PrimFunc("range", (x, gain), ir.seq(ir.Store(x, (one,), ir.const(0.5, f32))))
    outer = ir.PrimFunc("range", (gain, x, y), ir.seq(ir.KernelCall(inner, (ir.BufferRef(x), gain))))
    t = ir.Buffer("range", f32, (ir.IntImm(i64, 8),))
    b = ir.BufferRef(case.buffers[f32])
    return [
        ir.KernelCall(inner, (b, case.scalars[f64])),
        ir.Allocate(t),
        ir.KernelCall(outer, (ir.FloatImm(f64, 0.5), b, ir.BufferRef(t))),
        ir.KernelCall(inner, (ir.BufferRef(t), ir.Mul(case.scalars[f64], case.scalars[f64]))),
    ]


nop = ir.Evaluate(ir.IntImm(i32, 0))
less = ir.LT(one, two)

STATEMENTS: dict[str, Callable[[Case], list[ir.Stmt]]] = {
    "SeqStmt": lambda c: [ir.seq(), ir.seq(nop, ir.seq(nop))],
    "Store": lambda c: [ir.Store(b, (one,), ir.const(1, t)) for t, b in c.buffers.items()],
    "Evaluate": lambda c: [nop],
    "Allocate": allocations,
    "View": allocations,
    "KernelCall": kernel_calls,
    "Let": lambda c: [
        ir.Let(x := ir.Var("x", f32), ir.FloatImm(f32, 0.5)),
        ir.Let(y := ir.Var("x", f32), x),
        ir.Let(ir.Var("x"), one),
        ir.Let(ir.Var("in", f32), ir.Mul(x, y)),
        ir.Let(ir.Var("p", ir.handle), call(ir.handle, ir.Op.ADDRESS_OF, c.load(f32))),
        loop(ir.ForKind.SERIAL, ir.Let(z := ir.Var("x"), c.n), ir.Evaluate(z)),
        loop(ir.ForKind.SERIAL, ir.Let(z := ir.Var("x"), c.n), ir.Evaluate(z)),
    ],
    "Assert": lambda c: [ir.Assert(less, ""), ir.Assert(c.load(ir.bool_), 'a "b" \\ \n é')],
    "For": lambda c: [
        *(loop(kind, loop(kind, nop), step=-3, start=2) for kind in ir.ForKind if kind is not ir.ForKind.THREAD),
        *(loop(kind, nop) for kind in ir.ForKind if kind is not ir.ForKind.THREAD),
        loop(ir.ForKind.THREAD, nop, tag="threadIdx.x"),
        loop(ir.ForKind.SERIAL, step=4),
    ],
    "While": lambda c: [ir.While(less, ir.seq(nop)), ir.While(c.load(ir.bool_), ir.seq())],
    "IfThenElse": lambda c: [
        ir.IfThenElse(less, ir.seq()),
        ir.IfThenElse(less, ir.seq(), ir.seq(nop)),
        ir.IfThenElse(less, ir.seq(nop), ir.seq(ir.IfThenElse(less, ir.seq(nop), ir.seq(nop)))),
        ir.IfThenElse(less, ir.seq(nop), ir.seq(ir.IfThenElse(less, ir.seq(nop)), nop)),
    ],
    "AttrStmt": lambda c: [attr(key, c, attr(key, c), nop) for key in ir.AttrKey],
}


@every("name", STATEMENTS)
def test_every_statement_reads_back(name: str) -> None:
    case = Case()
    assert_reads_back(case.func(*STATEMENTS[name](case)))


def test_every_statement_has_a_case() -> None:
    assert concrete(ir.Stmt) - set(STATEMENTS) == set()


def test_what_a_parameter_promises_reads_back() -> None:
    n = tl.dim("n", min=0, max=64, multiple_of=8)
    x = ir.Buffer("x", f32, (n, ir.Add(n, one)), "shared.dyn", 64, True)
    y = ir.Buffer("y", f32, (), "local")
    assert_reads_back(ir.PrimFunc("f", (x, y, ir.Var("k", i32)), ir.seq(), (x, y)))


def test_a_scalar_parameter_may_be_an_extent() -> None:
    k = ir.Var("k")
    assert_reads_back(ir.PrimFunc("f", (k, ir.Buffer("x", f32, (k, ir.Mul(k, two)))), ir.seq()))


# Random functions: every kind of expression inside every other, wherever the types agree.


class Mixer:
    """Random well-typed expressions and statements over the buffers of a case."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.case = Case()
        self.vars: list[ir.Var] = list(self.case.scalars.values())

    def expr(self, dtype: ir.DType, depth: int) -> ir.Expr:
        if depth == 0 or self.random.random() < 0.1:
            return self.leaf(dtype)
        makers = [self.choice, self.cast, self.extremum, self.bound]
        makers += [self.logic, self.comparison] if dtype.is_bool else [self.arithmetic, self.negation]
        makers += [self.bits] if not dtype.is_float else [self.math]
        return self.random.choice(makers)(dtype, depth - 1)

    def leaf(self, dtype: ir.DType) -> ir.Expr:
        known = [var for var in self.vars if var.dtype == dtype]
        constant = ir.const(self.random.choice([0, 1]), dtype)
        return self.random.choice([*known[-2:], self.case.load(dtype), constant, constant])

    def choice(self, dtype: ir.DType, depth: int) -> ir.Expr:
        test, *values = self.expr(ir.bool_, depth), self.expr(dtype, depth), self.expr(dtype, depth)
        if self.random.random() < 0.5:
            return ir.Select(test, *values)
        return call(dtype, ir.Op.IF_THEN_ELSE, test, *values)

    def cast(self, dtype: ir.DType, depth: int) -> ir.Expr:
        return ir.Cast(dtype, self.expr(self.random.choice(EVERY_TYPE), depth))

    def extremum(self, dtype: ir.DType, depth: int) -> ir.Expr:
        return self.random.choice([ir.Min, ir.Max])(self.expr(dtype, depth), self.expr(dtype, depth))

    def bound(self, dtype: ir.DType, depth: int) -> ir.Expr:
        var = ir.Var(self.random.choice(["t", "tl", "if"]), self.random.choice(EVERY_TYPE))
        value = self.expr(var.dtype, depth)
        self.vars.append(var)
        body = self.expr(dtype, depth)
        self.vars.remove(var)
        return ir.LetExpr(var, value, body)

    def logic(self, dtype: ir.DType, depth: int) -> ir.Expr:
        a, b = self.expr(dtype, depth), self.expr(dtype, depth)
        return self.random.choice([ir.And(a, b), ir.Or(a, b), ir.Not(a)])

    def comparison(self, dtype: ir.DType, depth: int) -> ir.Expr:
        of = self.random.choice(EVERY_TYPE)
        kind = self.random.choice([ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE])
        return kind(self.expr(of, depth), self.expr(of, depth))

    def arithmetic(self, dtype: ir.DType, depth: int) -> ir.Expr:
        kinds = [ir.Add, ir.Sub, ir.Mul, ir.FloorDiv, ir.FloorMod]
        kinds += [ir.Div] if dtype.is_float else [ir.TruncDiv, ir.TruncMod]
        return self.random.choice(kinds)(self.expr(dtype, depth), self.expr(dtype, depth))

    def negation(self, dtype: ir.DType, depth: int) -> ir.Expr:
        return ir.Neg(self.expr(dtype, depth))

    def bits(self, dtype: ir.DType, depth: int) -> ir.Expr:
        kinds = [ir.BitAnd, ir.BitOr, ir.BitXor]
        kinds += [] if dtype.is_bool else [ir.ShiftLeft, ir.ShiftRight]
        made = self.random.choice(kinds)(self.expr(dtype, depth), self.expr(dtype, depth))
        return made if dtype.is_bool else ir.BitNot(made)

    def math(self, dtype: ir.DType, depth: int) -> ir.Expr:
        op = self.random.choice([ir.Op.EXP, ir.Op.FAST_SIN, ir.Op.POW, ir.Op.FMA, ir.Op.ABS])
        return call(dtype, op, *(self.expr(dtype, depth) for _ in range(op.arity or 0)))

    def stmts(self, depth: int) -> ir.SeqStmt:
        known = len(self.vars)
        made = [self.stmt(depth) for _ in range(self.random.randrange(4))]
        del self.vars[known:]
        return ir.SeqStmt(tuple(made))

    def stmt(self, depth: int) -> ir.Stmt:
        pick = self.random.randrange(8 if depth else 4)
        dtype = self.random.choice(EVERY_TYPE)
        if pick < 2:
            return ir.Store(self.case.buffers[dtype], (self.expr(i64, 2),), self.expr(dtype, 4))
        if pick == 2:
            stmt = ir.Let(ir.Var(self.random.choice(["t", "i", "x"]), dtype), self.expr(dtype, 3))
            self.vars.append(stmt.var)
            return stmt
        if pick == 3:
            return ir.Assert(self.expr(ir.bool_, 3), "message")
        if pick == 4:
            return ir.While(self.expr(ir.bool_, 3), self.stmts(depth - 1))
        if pick == 5:
            return ir.IfThenElse(self.expr(ir.bool_, 3), self.stmts(depth - 1), self.stmts(depth - 1))
        if pick == 6:
            return attr(self.random.choice(list(ir.AttrKey)), self.case, *self.stmts(depth - 1).stmts)
        start, stop, var = self.expr(i64, 2), self.expr(i64, 2), ir.Var(self.random.choice(["i", "j", "t"]))
        self.vars.append(var)
        body = self.stmts(depth - 1)
        self.vars.remove(var)
        return ir.For(var, start, stop, body, self.random.choice(list(ir.ForKind)[:4]), self.random.choice([1, -2]))


@every("seed", range(60))
def test_random_functions_read_back(seed: int) -> None:
    mixer = Mixer(seed)
    assert_reads_back(mixer.case.func(*mixer.stmts(4).stmts, *mixer.stmts(4).stmts, *mixer.stmts(4).stmts))
