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
    """Generates the loops that pack the values of `load` by groups of terms, for each of `terms` and of `columns`.

    The copy has an axis for each term loop, the last one counting groups, and one for the groups of `whole` columns,
    starting at column `first`. Terms that fill up the last group, and columns that do not exist, are 0: by masked
    vectors if `masked`, otherwise the elements that exist are copied one by one.
    """

    load: Load
    terms: tuple[For, ...]
    columns: For
    copy: Buffer
    whole: int
    masked: bool
    first: Expr = const(0, i64)

    def _place(self, index: Expr, lanes: int = 1) -> Expr:
        """The index of `lanes` elements from `index` on in a row of the copy."""
        first = folded(Add(Mul(self.first, const(self.group, i64)), index))
        return first if lanes == 1 else Ramp.unit(first, lanes)

    @property
    def group(self) -> int:
        """The number of terms in a group."""
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
        """Copies the group of terms from `top` on, for all columns: by vectors if complete and contiguous."""
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
        """Copies whole vectors of columns, interleaved in registers. Raises NotVector if columns are not contiguous."""
        lanes = self._lanes()
        vectors = [as_kind(lanes.of(each), self.copy.dtype) for each in self._of_terms(load, top)]
        yield from self._together(vectors, row)

    def _some_of_rows(self, load: Load, top: Var, row: tuple[Expr, ...]) -> Iterator[Stmt]:
        """Like `_rows`, with masks for the columns that exist; all lanes of absent terms are off."""
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
        """The load for each term of the group from `top` on."""
        for place in range(self.group):
            made = substitute(load, {top: folded(Add(top, const(place, i64)))})
            assert isinstance(made, Load)
            yield made

    def _together(self, rows: list[Expr], row: tuple[Expr, ...]) -> Iterator[Stmt]:
        """Stores the vectors of a group's terms, interleaved so that the terms of a column are contiguous."""
        vectors: list[Expr] = []
        for each in rows:
            kept = Var(f"{self.load.buffer.name}.row", each.dtype)
            yield Let(kept, each)
            vectors.append(kept)
        for place, vector in enumerate((yield from self._interleaved(vectors))):
            yield Store(self.copy, (*row, self._place(const(place * self.whole, i64), self.whole)), vector)

    def _by_columns(self, load: Load, top: Var, row: tuple[Expr, ...]) -> Iterator[Stmt]:
        """Copies the group of each column as a vector. Raises NotVector if its terms are not contiguous."""
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

    def _interleaved(self, vectors: list[Expr]) -> Generator[Stmt, None, list[Expr]]:
        """Interleaves a power of two of vectors, lane by lane."""
        if len(vectors) == 1:
            return vectors
        even = yield from self._interleaved(vectors[::2])
        odd = yield from self._interleaved(vectors[1::2])
        made: list[Expr] = []
        for a, b in zip(even, odd, strict=True):
            for op in INTERLEAVES:
                kept = Var(f"{self.load.buffer.name}.row", a.dtype)
                yield Let(kept, Call(a.dtype, op, (a, b)))
                made.append(kept)
        return made

    def _one_by_one(self, load: Load, top: Var, row: tuple[Expr, ...]) -> Iterator[Stmt]:
        """Copies the columns and terms that exist element by element, after storing zeros."""
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
    """A value converted to an element of a copy; a byte of the other sign is offset by 128, by flipping its top bit."""
    element = value.dtype.scalar
    if kind.bits == 8 and element != kind:
        value = BitXor(value, const(-128 if element.is_signed else 128, value.dtype))
    return value.astype(kind.with_lanes(value.dtype.lanes))
