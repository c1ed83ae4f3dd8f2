"""Bounds the integers of a function by what is known on entry: ends of index arrays, ordinary numbers.

Some functions first assert something of all elements of an array: a promise. Loads of local variables, and of such
elements, are known, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy

from tirlite.analysis.access import AccessKind, Allocation
from tirlite.analysis.facts import Facts
from tirlite.analysis.integers.array_bounds import ADDRESSABLE
from tirlite.analysis.integers.cells import Known, cells_of, follow
from tirlite.analysis.integers.definitions import Definition, Definitions
from tirlite.analysis.integers.extents import Extents
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir.checked import bare
from tirlite.ir.dtype import DType, i64
from tirlite.ir.expr import GE, GT, LE, LT, Buffer, Cast, Expr, IntImm, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Assert, AttrKey, AttrStmt, For, Stmt, View, While
from tirlite.ir.walk import conjuncts, is_constant, statements_of, walk
from tirlite.record import cached_method, record, replace
from tirlite.sizes import Dim, Scalar, Size, maximum, minimum
from tirlite.sizes.poly import Atom, varies
from tirlite.sizes.unknown import Ends


class KnownSpace(IndexSpace):
    """The values of integer expressions, with more known than by plain arithmetic.

    `elements` are the ends of what is loaded from some buffers, also through views that have elements like theirs.
    Locals are followed through the function.
    """

    def __init__(
        self, func: PrimFunc, extents: Extents, definitions: Definitions, elements: Mapping[Buffer, Ends]
    ) -> None:
        super().__init__(func, extents, definitions)
        self._elements = elements
        self._seen = _seen_through(func)
        self._known = Known({}, {}, {})
        cells = cells_of(func)
        if cells:
            follow(func, cells, self, self._known)

    def opaque(self, expr: Expr, owner: Definition | None) -> Size:
        source = loaded(expr, owner)
        if source is None:
            return super().opaque(expr, owner)
        if source in self._known.loaded:
            return self._known.loaded[source]
        low, high = self.elements(source)
        if low is None and high is None:
            return super().opaque(expr, owner)
        loop = None if owner is None else owner.owner
        return self.unknown("a value", low, high, loop, steady=owner is not None and owner.is_statement) + 0

    def elements(self, load: Load) -> Ends:
        """Ends of what is loaded from an array."""
        return self._elements.get(self.source_of(load.buffer), (None, None))

    def source_of(self, buffer: Buffer) -> Buffer:
        """The buffer of whose elements a view has some; any other buffer itself."""
        return self._seen.get(buffer, buffer)

    def narrowed(self, stmt: Stmt, *, holds: bool) -> Mapping[Atom, Size]:
        return self._known.narrowed.get((stmt, holds), {})

    def moved(self, loop: For | While) -> list[Size]:
        return self._known.moved.get(loop, [])

    def mark(self) -> tuple[int, int]:
        """How much is known of variables and loops."""
        return len(self._values), len(self._counters)

    def forget(self, mark: tuple[int, int]) -> None:
        """Forgets what was found since: loads may be something else than was guessed."""
        while len(self._values) > mark[0]:
            self._values.popitem()
        while len(self._counters) > mark[1]:
            self._counters.popitem()


def _seen_through(func: PrimFunc) -> dict[Buffer, Buffer]:
    """For the views that have elements of their sources, where these come from."""
    found: dict[Buffer, Buffer] = {}
    for view in statements_of(func.body, View):
        buffer, source, offset = view.buffer, view.source, bare(view.byte_offset)
        is_whole = isinstance(offset, IntImm) and offset.value % buffer.dtype.bytes == 0
        if is_whole and not view.fresh and buffer.dtype == source.dtype:
            found[buffer] = found.get(source, source)
    return found


def loaded(expr: Expr, owner: Definition | None) -> Load | None:
    """The load that an expression, or a variable whose definition is `owner`, gives as it is."""
    source = owner.value if isinstance(expr, Var) and owner is not None else expr
    while isinstance(source, Cast) and _keeps_all(source.value.dtype, source.dtype):
        source = source.value
    return source if isinstance(source, Load) else None


def _keeps_all(narrow: DType, wide: DType) -> bool:
    """Whether each integer of a type is the same in a wider one: one below 0 is none in an unsigned type."""
    return narrow.is_integer and narrow.bits < wide.bits and wide.is_signed >= narrow.is_signed


# What decides at entry takes scalars below this, and above its negative: then no arithmetic on them wraps around.
ORDINARY = 1 << 46
# Axes are taken to be no longer where products of two of them are part of an index.
SHORT = 1 << 30
# An axis of so few elements is looked at as a whole, however few of them are read.
_FEW = 64


@record(eq=False)
class Scan:
    """A look at all elements of a parameter, before anything else is done: the least and the greatest, as i64."""

    buffer: Buffer
    least: Var
    greatest: Var


class OrdinaryExtents(Extents):
    """The extents of a function whose integer parameters are ordinary numbers.

    `images` are the expressions for what is known on entry, `limited` the parameters that may be no such numbers.
    """

    def __init__(self, func: PrimFunc) -> None:
        self.images: dict[Dim, Expr] = {}
        self.limited: list[Var] = []
        super().__init__(func)

    def _enter(self, var: Var, dim: Dim) -> None:
        is_scalar = isinstance(dim, Scalar) and var not in self._func.dims
        if is_scalar and (dim.low < -ORDINARY or dim.high is None or dim.high > ORDINARY):
            self.limited.append(var)
            dim = Scalar(var.name, max(dim.low, -ORDINARY), ORDINARY, origin=self.origin)
        super()._enter(var, dim)
        self.images[dim] = var

    def _enter_all(self) -> None:
        super()._enter_all()
        for param in self._func.params:
            if isinstance(param, Var) and param.dtype.is_integer and param.dtype.bits < 64:
                scalar = Scalar(param.name, param.dtype.min, param.dtype.max, origin=self.origin)
                super()._enter(param, scalar)
                self.images[scalar] = Cast(i64, param)

    def short(self, factors: Iterable[Var] = ()) -> OrdinaryExtents:
        """The same where no axis is longer than `SHORT`, nor any of these parameters below 0 or larger."""
        extents, times = copy(self), {**self.arrays.times}
        if narrowed := {var: self._short_one(var) for var in factors}:
            extents.given = {**self.given, **narrowed}
            extents.sizes = {var: dim + 0 for var, dim in extents.given.items()}
            extents.variables = {dim: var for var, dim in extents.given.items()}
            extents._combined, extents._met = {}, {}
            extents._enter_lets()
        for dim in self.given.values():
            if not isinstance(dim, Scalar):
                times[(dim,)] = max(times.get((dim,), 1), ADDRESSABLE // SHORT)
        extents.arrays = replace(self.arrays, times=times)
        return extents

    def _short_one(self, var: Var) -> Dim:
        dim = self.given[var]
        high = SHORT if dim.high is None else min(dim.high, SHORT)
        short = Scalar(var.name, max(dim.low, 0), high, origin=self.origin)
        self.images[short] = self.images[dim]
        return short


class EntrySpace(KnownSpace):
    """The values of integer expressions, with loads from some parameters known to be between ends.

    With `is_ordinary` these are ordinary numbers, which arrays of 64-bit integers need not have; `looks` are the scans
    of all such spaces of a function.
    """

    extents: OrdinaryExtents

    def __init__(
        self,
        facts: Facts,
        extents: OrdinaryExtents,
        elements: Mapping[Buffer, Ends],
        looks: dict[Buffer, Scan],
        *,
        arrays: set[Buffer],
        is_ordinary: bool = True,
    ) -> None:
        self.scans: dict[Dim, Scan] = {}
        self._scanned = arrays
        self._looks = looks
        self._is_ordinary = is_ordinary
        super().__init__(facts.func, extents, facts.definitions, elements)

    def elements(self, load: Load) -> Ends:
        source = self.source_of(load.buffer)
        if source in self._scanned and self._sweeps(load):
            least, greatest = self._ends_of(source)
            return least + 0, greatest + 0
        return super().elements(load)

    def end(self, buffer: Buffer, *, is_greatest: bool) -> Size | None:
        """The least or the greatest element of a parameter; None of what is not looked at."""
        return self._ends_of(buffer)[is_greatest] + 0 if buffer in self._scanned else None

    @cached_method
    def _ends_of(self, buffer: Buffer) -> tuple[Dim, Dim]:
        low, high = buffer.dtype.min, buffer.dtype.max
        if self._is_ordinary:
            low, high = max(low, -ORDINARY), min(high, ORDINARY)
        if buffer not in self._looks:
            self._looks[buffer] = Scan(buffer, Var(f"least_{buffer.name}", i64), Var(f"greatest_{buffer.name}", i64))
        scan = self._looks[buffer]
        found = [Scalar(var.name, low, high, origin=self.extents.origin) for var in (scan.least, scan.greatest)]
        for dim, var in zip(found, (scan.least, scan.greatest), strict=True):
            self.extents.images[dim] = var
            self.scans[dim] = scan
        return found[0], found[1]

    def _sweeps(self, load: Load) -> bool:
        """Whether loops go along the axes, so that all elements may be met anyway."""
        given = {*self.extents.given}
        return all(
            (isinstance(extent, IntImm) and extent.value <= _FEW)
            or any(isinstance(node, Var) and node not in given for node in walk(index))
            for index, extent in zip(load.indices, load.buffer.shape, strict=True)
        )


def is_index_array(param: Buffer, touched: Allocation) -> bool:
    """Whether a parameter is an array of integers that is only read, and whose elements are indices by themselves."""
    is_narrow = param.dtype.is_integer and param.dtype.lanes == 1 and (param.dtype.bits < 64 or param.dtype.is_signed)
    return is_narrow and is_only_read(touched)


def is_only_read(touched: Allocation) -> bool:
    """Whether a parameter is only read."""
    is_read = all(each.kind is AccessKind.READ for each in touched.touches)
    return is_read and not touched.buffer.volatile


@record(eq=False)
class Promise:
    """A loop nest at the top of a function, and the ends between which it finds the elements of a parameter."""

    loop: For
    buffer: Buffer
    low: Size | None
    high: Size | None


def promises_of(func: PrimFunc, extents: Extents) -> list[Promise]:
    """The loops at the top of a function in normal form that assert something of each element of a parameter."""
    found: list[Promise] = []
    stmts = func.body.stmts
    while len(stmts) == 1 and isinstance(whole := stmts[0], AttrStmt) and whole.key is AttrKey.ALLOW:
        stmts = whole.body.stmts
    for stmt in stmts:
        promise = _promise(stmt, extents)
        if promise is None or promise.buffer not in func.params:
            return found
        found.append(promise)
    return found


def _promise(stmt: Stmt, extents: Extents) -> Promise | None:
    loops: list[For] = []
    while isinstance(stmt, For) and len(stmt.body.stmts) == 1 and stmt.step == 1:
        loops.append(stmt)
        (stmt,) = stmt.body.stmts
    if not loops or not isinstance(stmt, Assert):
        return None
    low: Size | None = None
    high: Size | None = None
    buffers: set[Buffer] = set()
    for each in conjuncts(stmt.condition):
        told = _told(each, loops, extents)
        if told is None:
            return None
        buffer, is_low, end = told
        buffers.add(buffer)
        if is_low:
            low = end if low is None else maximum(low, end)
        else:
            high = end if high is None else minimum(high, end)
    return Promise(loops[0], buffers.pop(), low, high) if len(buffers) == 1 else None


def _told(node: Expr, loops: list[For], extents: Extents) -> tuple[Buffer, bool, Size] | None:
    """A buffer whose elements are all bounded by a comparison, whether from below, and by what."""
    if not isinstance(node, LE | LT | GE | GT):
        return None
    less, more = (node.a, node.b) if isinstance(node, LE | LT) else (node.b, node.a)
    strict = int(isinstance(node, LT | GT))
    for element, other, is_low in ((more, less, True), (less, more, False)):
        load = _bare(element)
        size = extents.size(other)
        if isinstance(load, Load) and size is not None and not varies(size) and _goes_over_all(load, loops):
            return load.buffer, is_low, size + strict if is_low else size - strict
    return None


def _bare(expr: Expr) -> Expr:
    """An element that was made wider for a comparison."""
    while isinstance(expr, Cast) and expr.value.dtype.is_integer and expr.dtype.bits > expr.value.dtype.bits:
        expr = expr.value
    return expr


def _goes_over_all(load: Load, loops: list[For]) -> bool:
    if len(loops) != len(load.indices) or {*load.indices} != {loop.var for loop in loops}:
        return False
    extents: dict[Var, Expr] = {}
    for index, extent in zip(load.indices, load.buffer.shape, strict=True):
        assert isinstance(index, Var)
        extents[index] = extent
    return all(is_constant(loop.start, 0) and _is_same(loop.stop, extents[loop.var]) for loop in loops)


def _is_same(a: Expr, b: Expr) -> bool:
    return a is b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value)
