"""Random integer expressions, simplified in random loops and conditions and run by the interpreter before and after.

From the root: `PYTHONPATH=tests:. python -m rewrite.simplify_trial 200000` prints how often each rule fired.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from tirlite.diag import TirliteError
from tirlite.interp.code import Code
from tirlite.interp.expressions import expression
from tirlite.interp.memory import on_array
from tirlite.interp.program import advance
from tirlite.ir.dtype import i32, i64
from tirlite.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BitAnd,
    Buffer,
    Call,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    Load,
    Max,
    Min,
    Mul,
    Neg,
    Not,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.op import Op
from tirlite.ir.stmt import For, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.trampoline import run
from tirlite.rewrite.simplify.program_point import ProgramPoint
from tirlite.rewrite.simplify.rules import RULES, ExprRule
from tirlite.rewrite.simplify.simplify import Simplify
from tirlite.sizes import Dim

N, M, K, W = (
    Var(dim.name, i64, dim) for dim in (Dim("n"), Dim("m", min=0), Dim("k", multiple_of=8), Dim("w", min=2, max=64))
)
S, T, V = Var("s"), Var("t"), Var("v", i32)
X = Buffer("x", i64, (const(4, i64),))
Y = Buffer("y", i64, (const(1, i64),))
SHAPES = tuple(Buffer(f"of_{dim.name}", i64, (dim,)) for dim in (N, M, K, W))
ELEMENTS = np.array([3, -1, 1 << 62, 0])
# As arrays may have them, and far beyond what is ever simplified for.
LARGEST = (1 << 47) - 1
EXTREMES = (0, 1, -1, i64.min, i64.max, 1 << 62, -(1 << 62), (1 << 31) - 1, 1 << 32, 7, 64, -64)
POINTS = 6

Point = dict[Var, int]


class Running:
    """An expression that is run at many points."""

    def __init__(self, expr: Expr) -> None:
        code = Code()
        self._result = run(expression(code, expr))
        self._program = code.program

    def at(self, point: Mapping[Var, int]) -> object:
        """Its value, or the text of the error that stops it."""
        values = list(self._program.values)
        for name, register in self._program.registers.items():
            values[register] = on_array(X, ELEMENTS) if isinstance(name, Buffer) else name.dtype.numpy.type(point[name])
        try:
            with np.errstate(all="ignore"):
                advance(self._program.entry, values, [None] * len(values))
        except TirliteError as error:
            return str(error)
        return values[self._result].item()


class Maker:
    """Expressions over some variables."""

    def __init__(self, random: Random, names: list[Var]) -> None:
        self.random = random
        self.names = names

    def number(self) -> Expr:
        pick = self.random.random()
        if pick < 0.6:
            return const(self.random.choice((1, 2, 3, 4, 5, 8, 16, 64, 7, 0)), i64)
        return const(self.random.randint(-9, 9) if pick < 0.95 else self.random.choice(EXTREMES), i64)

    def integer(self, depth: int) -> Expr:
        random = self.random
        if depth == 0 or random.random() < 0.1:
            return random.choice(self.names) if random.random() < 0.75 else self.number()
        pick = random.random()
        a = self.integer(depth - 1)
        if pick < 0.5:
            kind = random.choice((Add, Add, Sub, Mul))
            b = self.number() if kind is Mul and random.random() < 0.8 else self.integer(depth - 1)
            return kind(a, b)
        if pick < 0.66:
            positive = const(random.choice((2, 3, 4, 8, 64)), i64)
            b = positive if random.random() < 0.8 else self.integer(depth - 1)
            return random.choice((FloorDiv, FloorMod, FloorDiv, FloorMod, TruncDiv, TruncMod))(a, b)
        if pick < 0.8:
            return random.choice((Min, Max))(a, self.integer(depth - 1))
        return self._other(a, depth)

    def _other(self, a: Expr, depth: int) -> Expr:
        random = self.random
        pick = random.randrange(8)
        if pick == 0:
            return Neg(a)
        if pick == 1:
            return Cast(i64, Cast(i32, a))
        if pick == 2:
            return ShiftLeft(a, const(random.randrange(5), i64))
        if pick == 3:
            return ShiftRight(a, const(random.randrange(5), i64))
        if pick == 4:
            return BitAnd(a, const((1 << random.randrange(6)) - 1, i64))
        if pick == 5:
            return Load(X, (random.choice((FloorMod(a, const(4, i64)), a)),))
        b, condition = self.integer(depth - 1), self.condition(depth - 1)
        return Select(condition, a, b) if pick == 6 else Call(i64, Op.IF_THEN_ELSE, (condition, a, b))

    def condition(self, depth: int) -> Expr:
        pick = self.random.random()
        if depth > 0 and pick < 0.3:
            kind = And if pick < 0.18 else Or
            return kind(self.condition(depth - 1), self.condition(depth - 1))
        if depth > 0 and pick < 0.4:
            return Not(self.condition(depth - 1))
        kind = self.random.choice((EQ, NE, LT, LE, GT, GE, LT, GE))
        return kind(self.integer(depth), self.integer(depth) if pick < 0.8 else self.number())


class Nest:
    """Random loops and conditions around one store of a random expression."""

    def __init__(self, random: Random) -> None:
        self.random = random
        names: list[Var] = [N, M, K, W, *([S, T] if random.random() < 0.5 else [])]
        self.around: list[For | Expr] = []
        for level in range(random.randrange(4)):
            maker = Maker(random, names)
            if random.random() < 0.65:
                loop = self._loop(Var("ijl"[level % 3] + str(level)), names, maker)
                self.around.append(loop)
                names = [loop.var, loop.var, *names]
            else:
                self.around.append(maker.condition(1))
        maker = Maker(random, names)
        narrow = Cast(i64, V)
        value = maker.integer(random.choice((2, 3, 3, 4)))
        self.value = value if random.random() < 0.9 else Add(value, narrow)
        if random.random() < 0.25:
            self.value = Cast(i64, maker.condition(random.choice((1, 2))))
        body: Stmt = Store(Y, (const(0, i64),), self.value)
        for each in reversed(self.around):
            inner = SeqStmt((body,))
            body = each.replaced(body=inner) if isinstance(each, For) else IfThenElse(each, inner)
        self.func = PrimFunc("f", (*SHAPES, S, T, V, X, Y), SeqStmt((body,)))

    def _loop(self, var: Var, names: list[Var], maker: Maker) -> For:
        random = self.random
        some, number = random.choice(names), const(random.choice((1, 2, 4, 8, 64)), i64)
        bounds: list[tuple[Expr, Expr, int]] = [
            (const(0, i64), some, 1),
            (const(0, i64), number, 1),
            (const(1, i64), Sub(some, const(1, i64)), 1),
            (const(0, i64), some, 4),
            (some, Min(Add(some, number), random.choice((N, M, K))), 1),
            (Mul(some, number), Mul(Add(some, const(1, i64)), number), 1),
            (number, const(0, i64), -2),
            (maker.integer(1), maker.integer(1), random.choice((1, 1, 2, -1))),
        ]
        start, stop, step = random.choice(bounds)
        return For(var, start, stop, SeqStmt(()), step=step)

    def points(self) -> Iterator[tuple[Point, bool]]:
        """Values of all variables, and whether all conditions hold there."""
        random = self.random
        steps = [
            (each, Running(each)) if isinstance(each, Expr) else (each, (Running(each.start), Running(each.stop)))
            for each in self.around
        ]
        for _ in range(4 * POINTS):
            top = random.choice((2, 5, 70, 1 << 20, LARGEST))
            point: Point = {N: random.randint(1, top), M: random.randint(0, top), W: random.randint(2, 64)}
            point[K] = max(8, random.randint(1, top) // 8 * 8)
            point |= {var: random.choice((random.choice(EXTREMES), random.randint(-9, 99))) for var in (S, T)}
            point[V] = random.choice((0, 5, -7, i32.min, i32.max))
            holds = self._place(point, steps)
            if holds is not None:
                yield point, holds

    def _place(self, point: Point, steps: list[Any]) -> bool | None:
        holds = True
        for each, running in steps:
            if isinstance(each, Expr):
                holds = holds and running.at(point) is True
                if not holds:
                    return False
                continue
            start, stop = (each_end.at(point) for each_end in running)
            if isinstance(start, str) or isinstance(stop, str):
                return None
            count = -((start - stop) // each.step)
            if count <= 0:
                return None
            point[each.var] = start + each.step * self.random.choice((0, count - 1, self.random.randrange(count)))
        return holds


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """How often rules change something meanwhile, by the class of what they change."""
    fired: Counter[str] = Counter()

    def counting(rule: ExprRule) -> ExprRule:
        def counts(node: Expr, point: ProgramPoint) -> Expr:
            after = rule(node, point)
            fired.update([] if after is node else [type(node).__name__])
            return after

        return counts

    with patch.dict(RULES, {kind: counting(rule) for kind, rule in RULES.items()}):
        yield fired


def trial(seed: int) -> None:
    """Makes one nest, simplifies it, and compares the two at some points; AssertionError where they differ."""
    nest = Nest(Random(seed))
    after = Simplify()(nest.func)
    assert Simplify()(after) is after, f"seed {seed}: simplified again, it changes"
    path = list(_path(after.body))
    store = path[-1] if path else None
    value = store.value if isinstance(store, Store) else None
    steps = [
        (stmt, Running(stmt.value if isinstance(stmt, Let) else stmt.condition))
        for stmt in path
        if isinstance(stmt, Let | IfThenElse)
    ]
    before, then = Running(nest.value), None if value is None else Running(value)
    for count, (point, holds) in enumerate(nest.points()):
        found: object = None
        known = dict.fromkeys(_loops(nest), 0) | point
        reached = then is not None
        for stmt, running in steps:
            result = running.at(known)
            if isinstance(stmt, Let):
                known[stmt.var] = int(result)  # type: ignore[call-overload]
            elif result is not True:
                reached = False
                break
        assert reached == holds or (not holds and _stops(nest, point)), (
            f"seed {seed}: reached or not at {_shown(point)}\n{nest.func}\n{after}"
        )
        if holds:
            wanted = before.at(point)
            assert then is not None
            found = then.at(known)
            is_same = found == wanted or (isinstance(found, str) and isinstance(wanted, str))
            assert is_same, f"seed {seed}: {found}, not {wanted}, at {_shown(point)}\n{nest.func}\n{after}"
        if count == POINTS:
            return


def _stops(nest: Nest, point: Point) -> bool:
    """Whether a condition cannot be evaluated at a point."""
    return any(
        isinstance(each, Expr) and isinstance(Running(each).at({**dict.fromkeys(_loops(nest), 0), **point}), str)
        for each in nest.around
    )


def _loops(nest: Nest) -> list[Var]:
    return [each.var for each in nest.around if isinstance(each, For)]


def _path(body: SeqStmt) -> Iterator[Stmt]:
    """The statements on the way to the store."""
    while body.stmts:
        *lets, last = body.stmts
        yield from lets
        yield last
        if isinstance(last, Store | Let):
            return
        assert isinstance(last, For | IfThenElse)
        body = last.body if isinstance(last, For) else last.then_body


def _shown(point: Point) -> dict[str, int]:
    return {var.name: value for var, value in point.items()}


def main(stop: int, start: int = 0) -> None:
    with counted() as fired:
        for seed in range(start, stop):
            trial(seed)
    for rule, times in fired.most_common():
        print(f"{rule:12} {times:8}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
