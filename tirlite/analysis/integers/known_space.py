"""Sizes of integer expressions, where loads of some buffers are known: locals, and elements that were looked at."""

from __future__ import annotations

from collections.abc import Mapping

from tirlite.analysis.integers.cells import Known, cells_of, follow
from tirlite.analysis.integers.definitions import Definition, Definitions
from tirlite.analysis.integers.extents import Extents
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir import Buffer, Cast, Expr, For, IntImm, Load, PrimFunc, Stmt, Var, View, While, statements_of
from tirlite.ir.checked import bare
from tirlite.sizes import Size
from tirlite.sizes.poly import Atom
from tirlite.sizes.unknown import Ends


class KnownSpace(IndexSpace):
    """What integer expressions can be, with more looked into than plain arithmetic.

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
    while isinstance(source, Cast) and source.value.dtype.is_integer and source.value.dtype.bits < source.dtype.bits:
        source = source.value
    return source if isinstance(source, Load) else None
