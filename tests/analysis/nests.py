"""A seed in, a small loop nest out whose accesses meet in many ways; and all instances of its accesses, in order."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random

import numpy as np

from tirlite.ir.builder import Builder
from tirlite.ir.dtype import f32, i16, i64
from tirlite.ir.expr import (
    LT,
    Add,
    Buffer,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Load,
    Max,
    Min,
    Mul,
    Neg,
    Sub,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, For, IfThenElse, Let, SeqStmt, Stmt, Store, View
from tirlite.sizes import Dim

# The extent of an axis, and the value that the dim `n` has here.
EXTENT = 16
N = 3


class _Writer:
    """Builds one program."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.builder = Builder(f"nest_{seed}")
        self.n = Var("n", i64, Dim("n"))
        self.rank = self.random.choice((1, 1, 2))
        shape = (EXTENT,) * self.rank
        self.builder.param("sized", f32[self.n])
        self.buffers = [self.builder.param("a", f32[shape]), self.builder.alloc("t", f32[shape])]
        if self.random.random() < 0.3:
            halves = EXTENT**self.rank
            self.buffers.append(self.builder.view("v", self.buffers[0], i16[halves], 4 * self.random.randrange(4)))
        self.count = 0
        self.counters: list[Expr] = []

    def program(self) -> PrimFunc:
        for _ in range(self.random.choice((1, 1, 2))):
            self.loop(self.random.choice((1, 1, 2, 2, 3)))
        return self.builder.build()

    def loop(self, depth: int) -> None:
        random, b = self.random, self.builder
        self.count += 1
        name = f"i{self.count}"
        start: Expr = const(random.choice((0, 0, 0, 1, 2)), i64)
        if self.counters and random.random() < 0.2:
            start = random.choice(self.counters)
        length: Expr = random.choice((const(2, i64), const(3, i64), const(4, i64), self.n))
        stop = start + length
        if self.counters and random.random() < 0.15:
            stop = random.choice((Min(stop, random.choice(self.counters) + 2), Max(stop, const(3, i64))))
        kind = random.choice((b.for_, b.for_, b.for_, b.parallel, b.unroll))
        step = random.choice((1, 1, 1, 2, -1))
        bounds = (start, stop) if step > 0 else (stop, start)
        with kind(name, *bounds, step) as var:
            self.counters.append(var)
            if random.random() < 0.15:
                self.counters.append(b.let(f"{name}l", self.index()))
            before = len(self.counters)
            if depth > 1 and random.random() < 0.3:
                self.statement()
            if depth > 1:
                own = random.random() < 0.15
                if own:
                    self.buffers.append(b.alloc("own", f32[(EXTENT,) * self.rank]))
                self.loop(depth - 1)
                if own:
                    self.buffers.pop()
            if depth == 1 or random.random() < 0.3:
                for _ in range(random.choice((1, 1, 2))):
                    self.statement()
            del self.counters[before:]
        del self.counters[self.counters.index(var) :]

    def statement(self) -> None:
        random, b = self.random, self.builder
        with ExitStack() as guard:
            is_guarded = random.random() < 0.15
            if is_guarded:
                guard.enter_context(b.if_(self.index() < random.randrange(4)))
            self.store()
        if is_guarded and random.random() < 0.5:
            with b.else_():
                self.store()

    def store(self) -> None:
        at, value = self.random.choice(self.buffers), const(1.0, f32)
        for _ in range(self.random.choice((0, 1, 1, 2))):
            read = self.random.choice(self.buffers)
            value = value + read[self.indices(read)].astype(f32)
        self.builder.store(at, self.indices(at), value.astype(at.dtype))

    def indices(self, buffer: Buffer) -> tuple[Expr, ...]:
        return tuple(self.index() for _ in buffer.shape)

    def index(self) -> Expr:
        """An affine index, now and then a quotient, a remainder, or bounded."""
        random = self.random
        total: Expr = const(random.choice((0, 0, 1, 2, 3)), i64)
        for var in random.sample(self.counters, min(len(self.counters), random.choice((0, 1, 1, 1, 2, 3)))):
            total = total + var * random.choice((1, 1, 1, 1, 2, 3, 4, -1))
        if random.random() < 0.1:
            total = total + self.n
        form = random.random()
        if form < 0.06:
            return total // random.choice((2, 3))
        if form < 0.12:
            return total % random.choice((2, 4, EXTENT))
        return Min(total, const(4, i64)) if form < 0.16 else total


def random_nest(seed: int) -> PrimFunc:
    """The program of a seed. What it accesses need not be in bounds."""
    return _Writer(seed).program()


@dataclass
class Instances:
    """All instances of one access: when each runs, its first byte, and the variables of the loops around it, in steps.

    `size` is the bytes of an element, `loops` the loops around the access inside of the body of its allocation.
    """

    stmt: Stmt
    node: Load | Store
    root: Buffer
    loops: tuple[For, ...]
    size: int
    times: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    values: list[tuple[float, ...]] = field(default_factory=list)


class OutOfBoundsError(Exception):
    """An access leaves its axis."""


class Run:
    """Runs a program for its addresses alone, in the order of the interpreter."""

    def __init__(self, func: PrimFunc) -> None:
        self.found: dict[Node, Instances] = {}
        self.env: dict[Var, int] = dict.fromkeys(func.dims, N)
        self.loops: list[For] = []
        self.homes: dict[Buffer, tuple[Buffer, int, int]] = {  # its allocation, the first byte, the loops around that
            param: (param, number << 40, 0) for number, param in enumerate(func.params) if isinstance(param, Buffer)
        }
        self.clock = 0
        self.body(func.body)

    def body(self, body: SeqStmt) -> None:
        for stmt in body.stmts:
            self.stmt(stmt)

    def stmt(self, stmt: Stmt) -> None:
        if isinstance(stmt, For):
            self.loops.append(stmt)
            for value in range(self.value(stmt.start), self.value(stmt.stop), stmt.step):
                self.env[stmt.var] = value
                self.body(stmt.body)
            self.loops.pop()
        elif isinstance(stmt, IfThenElse):
            self.body(stmt.then_body if self.value(stmt.condition) else stmt.else_body)
        elif isinstance(stmt, Let):
            self.env[stmt.var] = self.value(stmt.value)
        elif isinstance(stmt, Allocate):
            self.clock += 1
            self.homes[stmt.buffer] = stmt.buffer, (1 << 50) + (self.clock << 20), len(self.loops)
        elif isinstance(stmt, View):
            root, first, depth = self.homes[stmt.source]
            self.homes[stmt.buffer] = root, first + self.value(stmt.byte_offset), depth
        elif isinstance(stmt, Store):
            todo: list[Node] = [stmt.value]
            while todo:
                node = todo.pop()
                if isinstance(node, Load):
                    self.access(stmt, node)
                todo += node.children()
            self.access(stmt, stmt)
        else:
            raise AssertionError(type(stmt))

    def access(self, stmt: Stmt, node: Load | Store) -> None:
        root, first, depth = self.homes[node.buffer]
        loops = tuple(self.loops[depth:])
        size = node.buffer.dtype.bytes
        found = self.found.setdefault(node, Instances(stmt, node, root, loops, size))
        place = 0
        for index, extent in zip(node.indices, node.buffer.shape, strict=True):
            value, bound = self.value(index), self.value(extent)
            if not 0 <= value < bound:
                raise OutOfBoundsError
            place = place * bound + value
        self.clock += 1
        found.times.append(self.clock)
        found.bytes.append(first + place * size)
        found.values.append(tuple(self.env[loop.var] / loop.step for loop in loops))

    def value(self, expr: Expr) -> int:
        match expr:
            case IntImm():
                return expr.value
            case Var():
                return self.env[expr]
            case Neg():
                return -self.value(expr.a)
            case Cast():
                return self.value(expr.value)
        a, b = self.value(expr.a), self.value(expr.b)
        match expr:
            case Add():
                return a + b
            case Sub():
                return a - b
            case Mul():
                return a * b
            case FloorDiv():
                return a // b
            case FloorMod():
                return a % b
            case Min():
                return min(a, b)
            case Max():
                return max(a, b)
            case LT():
                return a < b
        raise AssertionError(type(expr))


def distances(source: Instances, sink: Instances, common: int) -> np.ndarray:
    """By how many steps `sink` comes later in each of the `common` loops, where it touches a byte after `source`.

    One row for each way in which that happens.
    """
    first, second = np.array(source.bytes), np.array(sink.bytes)
    overlap = (first[:, None] < second + sink.size) & (second < first[:, None] + source.size)
    later = np.array(source.times)[:, None] < np.array(sink.times)
    mine, others = (np.array(each.values, float).reshape(len(each.times), -1)[:, :common] for each in (source, sink))
    one, other = np.nonzero(overlap & later)
    return np.unique(others[other] - mine[one], axis=0)
