"""A seed in, a small program out in which `b` is born in the loop nests where `a` dies, at random affine indices."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random

from tirlite.ir import Buffer, Builder, DType, Expr, PrimFunc, const, f64, i16, i32, i64

_LENGTH = 24


@dataclass
class _Writer:
    """Builds the nest. Every index is in bounds whatever the counters are: it is reduced where it may leave them."""

    random: Random
    builder: Builder
    loops: list[tuple[Expr, int]] = field(default_factory=list)

    def index(self, extent: int) -> Expr:
        """An affine index below `extent`: a sum of some counters, each with a small stride."""
        form = self.random.random()
        if form < 0.5 and (fitting := [v for v, last in self.loops if last < extent]):
            return self.random.choice(fitting)
        if form < 0.8 and (digits := self.digits(extent)) is not None:
            return digits
        total: Expr
        total, most, least = const(self.random.choice((0, 0, 0, 1, 2)), i64), 2, 0
        for var, last in self.random.sample(self.loops, len(self.loops)):
            stride = self.random.choice((0, 1, 1, 2, 3, 4, -1))
            if stride:
                total = total + var * stride
                most, least = most + max(0, stride * last), least + min(0, stride * last)
        total = total - least
        return total if most - least < extent else total % extent

    def digits(self, extent: int) -> Expr | None:
        """The counters as digits of one number, each place as wide as its loop is long."""
        total: Expr | None = None
        place = 1
        for var, last in self.random.sample(self.loops, len(self.loops)):
            total = var * place if total is None else var * place + total
            place *= last + 1
        return total if place <= extent else None

    def indices(self, shape: tuple[int, ...]) -> tuple[Expr, ...]:
        return tuple(self.index(extent) for extent in shape)


def affine_program(seed: int, nests: int = 1) -> PrimFunc:
    """The program of a seed, with so many nests. It copies what it has written of `b` to `y`, and marks it in `w`."""
    random = Random(seed)
    b = Builder(f"affine_{seed}")
    shape: tuple[int, ...] = random.choice(((_LENGTH,), (4, 6), (6, 4)))
    types: tuple[DType, DType] = random.choice(((i32, i32),) * 4 + ((i32, i64), (i64, i32), (i32, i16), (f64, f64)))
    x, y, w = b.param("x", i32[_LENGTH]), b.param("y", i64[_LENGTH]), b.param("w", i32[_LENGTH])
    out = b.param("z", i64[_LENGTH])
    source = b.alloc("a", types[0][shape])
    destination = b.alloc("b", types[1][shape])
    flat = _flat(b, source, "flat_a"), _flat(b, destination, "flat_b")
    with b.for_("e", 0, _LENGTH) as e:
        b.store(flat[0], e, x[e].astype(types[0]))
    for number in range(nests):
        writer = _Writer(random, b)
        with ExitStack() as nest:
            for depth in range(random.choice((1, 1, 2, 2, 3) if nests == 1 else (0, 1, 1, 2))):
                extent = random.choice((2, 3, 4, 6) if depth or nests > 1 else (3, 4, 6, 12))
                kind = b.parallel if random.random() < 0.15 else b.for_
                var = nest.enter_context(kind(f"i{number * 4 + depth}", 0, extent))
                writer.loops.append((var, extent - 1))
            _body(writer, shape, (source, destination), flat, out, w, far=nests > 1)
    with b.for_("e", 0, _LENGTH) as e, b.if_(w[e] > 0):
        b.store(y, e, flat[1][e].astype(i64))
    return b.build()


def _flat(b: Builder, buffer: Buffer, name: str) -> Buffer:
    return b.view(name, buffer, buffer.dtype[_LENGTH]) if len(buffer.shape) > 1 else buffer


def _body(
    writer: _Writer,
    shape: tuple[int, ...],
    buffers: tuple[Buffer, Buffer],
    flat: tuple[Buffer, Buffer],
    out: Buffer,
    w: Buffer,
    *,
    far: bool,
) -> None:
    b, random = writer.builder, writer.random
    shared = [writer.indices(shape) for _ in range(2)]
    if far:
        # What the nests write lies in other places, now and then.
        shared += [_moved(at, shape, random) for at in shared] * 2
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        with ExitStack() as guard:
            if writer.loops and random.random() < 0.2:
                var, last = random.choice(writer.loops)
                guard.enter_context(b.if_(var < random.randint(1, last + 1)))
            at = random.choice(shared) if random.random() < 0.8 else writer.indices(shape)
            value = _value(writer, shape, at, shared, buffers[0], flat[0])
            if random.random() < 0.15:
                b.store(out, writer.index(_LENGTH), value.astype(i64))
                continue
            b.store(buffers[1], at, value.astype(buffers[1].dtype))
            place = at[0] if len(at) == 1 else at[0] * shape[1] + at[1]
            b.store(w, place, const(1, i32))


def _moved(at: tuple[Expr, ...], shape: tuple[int, ...], random: Random) -> tuple[Expr, ...]:
    """An index some rows further on, while there are any."""
    return ((at[0] + random.randrange(shape[0])) % shape[0], *at[1:])


def _value(
    writer: _Writer,
    shape: tuple[int, ...],
    at: tuple[Expr, ...],
    shared: list[tuple[Expr, ...]],
    a: Buffer,
    flat: Buffer,
) -> Expr:
    random = writer.random
    total = writer.loops[0][0] + 1 if writer.loops else const(1, i64)
    for _ in range(random.choice((0, 1, 1, 2))):
        form = random.random()
        where = at if form < 0.6 else random.choice(shared) if form < 0.8 else writer.indices(shape)
        load = a[where] if form < 0.95 else flat[writer.index(_LENGTH)]
        total = total * 3 + load.astype(i64)
    return total
