"""Packs narrow integers by groups of terms, with the groups of neighbouring columns next to each other."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import reduce

from tirlite.ir.dtype import DType, i64
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import LE, LT, Add, And, BitXor, Buffer, Call, Expr, Load, Min, Mul, Ramp, Select, Sub, Var, const
from tirlite.ir.op import INTERLEAVES
from tirlite.ir.rewrite import substitute
from tirlite.ir.stmt import For, IfThenElse, Let, SeqStmt, Stmt, Store, counting, nested
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lanes import Lanes, NotVector, first_lanes


@record(eq=False)
class ByGroups:
    """The loops that copy what is read for each of `terms`, of which the last goes by groups, and of `columns`.

    The copy has an axis for each of the terms, and one for the groups of `whole` columns, which begin there at that of
    the column `first`. What makes up the last group, and columns that are not there, are 0: they are left out by masks
    where vectors are `masked`, and else what there is goes element by element.
    """

    load: Load
    terms: tuple[For, ...]
    columns: For
    copy: Buffer
    whole: int
    masked: bool
    first: Expr = const(0, i64)

    def _place(self, index: Expr, lanes: int = 1) -> Expr:
        """Where this many elements of a row of the copy lie, of all columns from this index on."""
        first = folded(Add(Mul(self.first, const(self.group, i64)), index))
        return first if lanes == 1 else Ramp.unit(first, lanes)

    @property
    def group(self) -> int:
        """How many terms go together."""
        return 32 // self.copy.dtype.bits

    def copied(self) -> Iterator[Stmt]:
        """The loops, group by group."""
        name, last = self.load.buffer.name, self.terms[-1]
        own = {loop.var: Var(f"{name}.{loop.var.name}") for loop in self.terms}
        outer = [For(own[loop.var], loop.start, loop.stop, SeqStmt()) for loop in self.terms[:-1]]
        places = [folded(Sub(own[loop.var], loop.start)) for loop in self.terms[:-1]]
        number = own[last.var]
        top = Var(f"{name}.first")
        first = folded(Add(last.start, Mul(number, const(self.group, i64))))
        load = substitute(self.load, {**own, last.var: top})
        row = (*places, number)
        here = (Let(top, first), *self._group(load, top, row))
        groups = counting([number], [self.copy.shape[len(self.terms) - 1]])
        yield from nested([*outer, *groups], *here).stmts

    def _group(self, load: Load, top: Var, row: tuple[Expr, ...]) -> Iterator[Stmt]:
        """A group of terms from `top` on, of all columns: as vectors where all are there and lie side by side."""
        columns, last = self.columns, self.terms[-1]
        stop = Add(columns.start, const(self.whole, i64))
        has_terms: list[Expr] = [LE(Add(top, const(self.group, i64)), last.stop)]
        if last.values is not None and len(last.values) % self.group == 0:
            has_terms = []
        has_columns = [] if structural_equal(stop, columns.stop) else [LE(stop, columns.stop)]
        whole, partly = ([*has_terms, *has_columns], self._rows), (has_terms, self._by_columns)
        for conditions, made in (whole, partly):
            with suppress(NotVector):
                quickly = tuple(made(load, top, row))
                if not conditions:
                    yield from quickly
                    return
                is_masked = self.masked and made is whole[1]
                slowly = tuple((self._some_of_rows if is_masked else self._one_by_one)(load, top, row))
                yield IfThenElse(reduce(And, conditions), SeqStmt(quickly), SeqStmt(slowly))
                return
        yield from self._one_by_one(load, top, row)

    def _rows(self, load: Load, top: Var, row: tuple[Expr, ...]) -> Iterator[Stmt]:
        """Whole vectors of columns, turned over in registers. Raises NotVector where they are no neighbours."""
        lanes = self._lanes()
        vectors = [as_kind(lanes.of(each), self.copy.dtype) for each in self._of_terms(load, top)]
        yield from self._together(vectors, row)

    def _some_of_rows(self, load: Load, top: Var, row: tuple[Expr, ...]) -> Iterator[Stmt]:
        """The same with vectors of which the lanes of columns that are not there are off, and all of absent terms."""
        columns, kind = self.columns, self.copy.dtype.with_lanes(self.whole)
        count, vectors = folded(Sub(columns.stop, columns.start)), list[Expr]()
        for place, each in enumerate(self._of_terms(load, top)):
            is_there = LT(folded(Add(top, const(place, i64))), self.terms[-1].stop)
            found = first_lanes(Select(is_there, count, const(0, i64)), self.whole, load.dtype.bytes)
            on = Var(f"{self.load.buffer.name}.on", found.dtype)
            yield Let(on, found)
            lanes = self._lanes()
            lanes.on = lanes.some = on
            vectors.append(Select(on, as_kind(lanes.of(each), self.copy.dtype), const(0, kind)))
        yield from self._together(vectors, row)

    def _lanes(self) -> Lanes:
        columns = self.columns
        return Lanes(self.whole, {columns.var: Ramp.unit(columns.start, self.whole)}, neighbours=True)

    def _of_terms(self, load: Load, top: Var) -> Iterator[Load]:
        """What is loaded for each term of the group from `top` on."""
        for place in range(self.group):
            made = substitute(load, {top: folded(Add(top, const(place, i64)))})
            assert isinstance(made, Load)
            yield made

    def _together(self, rows: list[Expr], row: tuple[Expr, ...]) -> Iterator[Stmt]:
        """The vectors of a group's terms, stored so that those of a column lie together."""
        vectors: list[Expr] = []
        for each in rows:
            kept = Var(f"{self.load.buffer.name}.row", each.dtype)
            yield Let(kept, each)
            vectors.append(kept)
        for place, vector in enumerate((yield from self._turned(vectors))):
            yield Store(self.copy, (*row, self._place(const(place * self.whole, i64), self.whole)), vector)

    def _by_columns(self, load: Load, top: Var, row: tuple[Expr, ...]) -> Iterator[Stmt]:
        """The group of each column as a vector. Raises NotVector where its terms are no neighbours."""
        columns, width = self.columns, self.whole
        lanes = Lanes(self.group, {top: Ramp.unit(top, self.group)}, neighbours=True)
        number = Var(f"{self.load.buffer.name}.{columns.var.name}")
        value = as_kind(lanes.of(substitute(load, {columns.var: number})), self.copy.dtype)
        if value.dtype.lanes == 1:
            raise NotVector
        place = folded(Mul(Sub(number, columns.start), const(self.group, i64)))
        store = Store(self.copy, (*row, self._place(place, self.group)), value)
        yield For(number, columns.start, columns.stop, SeqStmt((store,)))
        rest = Var(f"{self.load.buffer.name}.rest")
        zero = Store(self.copy, (*row, self._place(rest)), const(0, self.copy.dtype))
        first = Mul(folded(Sub(columns.stop, columns.start)), const(self.group, i64))
        yield For(rest, first, const(self.group * width, i64), SeqStmt((zero,)))

    def _turned(self, vectors: list[Expr]) -> Generator[Stmt, None, list[Expr]]:
        """Vectors of the lanes of some, a power of two, in turn."""
        if len(vectors) == 1:
            return vectors
        even = yield from self._turned(vectors[::2])
        odd = yield from self._turned(vectors[1::2])
        made: list[Expr] = []
        for a, b in zip(even, odd, strict=True):
            for op in INTERLEAVES:
                kept = Var(f"{self.load.buffer.name}.row", a.dtype)
                yield Let(kept, Call(a.dtype, op, (a, b)))
                made.append(kept)
        return made

    def _one_by_one(self, load: Load, top: Var, row: tuple[Expr, ...]) -> Iterator[Stmt]:
        """The columns that there are, of the terms that there are."""
        columns, last = self.columns, self.terms[-1]
        number, place = Var(f"{self.load.buffer.name}.{columns.var.name}"), Var(f"{self.load.buffer.name}.place")
        index = Add(Mul(folded(Sub(number, columns.start)), const(self.group, i64)), place)
        value = substitute(load, {top: folded(Add(top, place)), columns.var: number})
        store = Store(self.copy, (*row, self._place(index)), as_kind(value, self.copy.dtype))
        most = Min(const(self.group, i64), folded(Sub(last.stop, top)))
        each = For(place, const(0, i64), most, SeqStmt((store,)))
        wide = self.group * self.whole
        yield Store(self.copy, (*row, self._place(const(0, i64), wide)), const(0, self.copy.dtype.with_lanes(wide)))
        yield For(number, columns.start, columns.stop, SeqStmt((each,)))


def as_kind(value: Expr, kind: DType) -> Expr:
    """A value as an element of a copy: of bytes with another sign, what is off by 128, as flipping one bit makes it."""
    element = value.dtype.scalar
    if kind.bits == 8 and element != kind:
        value = BitXor(value, const(-128 if element.is_signed else 128, value.dtype))
    return value.astype(kind.with_lanes(value.dtype.lanes))
