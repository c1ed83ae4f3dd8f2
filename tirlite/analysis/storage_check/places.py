"""Finds the bytes of each resident of a root: inside its root, aligned, in the right memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from tirlite.analysis.integers.extents import Extents
from tirlite.analysis.most_bytes import ExtentBounds
from tirlite.analysis.shape_plan import ShapePlan
from tirlite.analysis.storage_check.resident import Bytes, Resident, Root, Wrong
from tirlite.ir import Buffer, Expr, IntImm, PrimFunc, View
from tirlite.ir.shapes import constant_bytes, least_alignment
from tirlite.sizes import Proof, Size, maximum, prove_divides


class Places:
    """Works out sizes and offsets of the rewritten function, and proves what it can, each once."""

    def __init__(self, func: PrimFunc) -> None:
        self._func = func
        self._extents: Extents | None = None
        self._bounds: ExtentBounds | None = None
        self._proved: dict[tuple[Size, Size], bool] = {}
        self._products: dict[tuple[int, tuple[Size, ...]], Size] = {}

    def settle(self, root: Root) -> list[Bytes] | None:
        """The bytes of each resident, in order; None where the root has one resident, which is the root itself.

        Raises Wrong for a resident that does not lie well.
        """
        residents = root.residents
        if len(residents) == 1 and residents[0].buffer is root.stmt.buffer:
            self._demand_same_memory(residents[0], root)
            return None
        buffer = root.stmt.buffer
        size, given = self._bytes(buffer), max(buffer.alignment, _natural_alignment(buffer))
        return [self._settled(resident, root, size, given) for resident in residents]

    def entries(self, root: Root, plan: ShapePlan, homes: dict[int, Root]) -> list[int]:
        """The entry of each resident of an arena whose layout comes with the call. `homes` are the arenas of entries.

        What each call is checked for (`shape_plan.plan_demands`) makes sure that it lies inside, and aligned.
        """
        found = []
        for resident in root.residents:
            self._demand_same_memory(resident, root)
            declaration, source = resident.window.declaration, resident.window.source
            is_view = isinstance(declaration, View) and source is not None and source.declaration is root.stmt
            entry = plan.entry(declaration.byte_offset) if isinstance(declaration, View) and is_view else None
            if entry is None or self._most_bytes(resident.buffer) is None:
                raise _wrong(resident, root, "lies in an arena of a plan, and not at one of its entries")
            if homes.setdefault(entry, root) is not root or root.stmt.buffer.alignment % least_alignment(
                resident.buffer
            ):
                raise _wrong(resident, root, f"lies at entry {entry} in two arenas, or in one that is aligned worse")
            found.append(entry)
        return found

    def at_most(self, low: Size, high: Size) -> bool:
        """Whether `low <= high` for all values of the dims."""
        if isinstance(low, int) and isinstance(high, int):
            return low <= high
        pair = (low, high)
        proved = self._proved.get(pair)
        if proved is None:
            proved = low == high
            if not proved:
                from tirlite.sizes import prove_le_by_cases

                proved = prove_le_by_cases(low, high) is Proof.YES
            self._proved[pair] = proved
        return proved

    def _settled(self, resident: Resident, root: Root, room: Size | None, given: int) -> Bytes:
        buffer = resident.buffer
        self._demand_same_memory(resident, root)
        low, size = self._offset(resident, root), self._most_bytes(buffer)
        if low is None or size is None or room is None:
            raise _wrong(resident, root, "is not known on entry to the function: its size, its offset, or the storage")
        high = size if low == 0 else low + size
        if not self.at_most(0, low) or not self.at_most(high, room):
            from tirlite.sizes import fails_at_a_sample

            is_doubt = not fails_at_a_sample(0, low) and not fails_at_a_sample(high, room)
            raise _wrong(resident, root, f"takes the bytes [{low}, {high}) of {room}").marked(is_doubt=is_doubt)
        need = max(buffer.alignment, _natural_alignment(buffer))
        if given % need or not _divides(need, low):
            raise _wrong(resident, root, f"is to be aligned to {need} bytes, and lies at {low} of what {given} divide")
        return Bytes(low, high)

    def _demand_same_memory(self, resident: Resident, root: Root) -> None:
        if resident.buffer.scope != root.stmt.buffer.scope:
            raise _wrong(resident, root, f"is to live in {resident.buffer.scope}, not in {root.stmt.buffer.scope}")
        is_moved = resident.block is not root.block or (resident.thread is not root.thread and not resident.is_shared)
        if is_moved or resident.region.attach is not root.region.attach:
            raise _wrong(
                resident, root, "has storage of its own in each iteration of a parallel loop, or is to have it"
            )

    def _offset(self, resident: Resident, root: Root) -> Size | None:
        """Where a resident begins in its root, in bytes."""
        window = resident.window
        if window.source is None:
            return 0
        assert isinstance(window.declaration, View)
        if window.source.source is not None:
            raise _wrong(resident, root, "is a view of a view, which may be smaller than the storage")
        return self._size(window.declaration.byte_offset)

    def _bytes(self, buffer: Buffer) -> Size | None:
        return self._product(buffer, [self._size(expr) for expr in buffer.shape])

    def _most_bytes(self, buffer: Buffer) -> Size | None:
        """The bytes that a buffer never exceeds: extents may depend on loop variables."""
        constant = constant_bytes(buffer)
        if constant is not None:
            return constant
        extents = [self._size(expr) for expr in buffer.shape]
        if None in extents:
            if self._bounds is None:
                assert self._extents is not None
                self._bounds = ExtentBounds(self._func, self._extents)
            extents = [
                self._bounds.most(e) if size is None else size for e, size in zip(buffer.shape, extents, strict=True)
            ]
        return self._product(buffer, extents)

    def _product(self, buffer: Buffer, extents: Sequence[Size | None]) -> Size | None:
        known = tuple([each for each in extents if each is not None])
        if len(known) < len(extents):
            return None
        key = buffer.dtype.bytes, known
        if key not in self._products:
            positive = (e if self.at_most(0, e) else maximum(0, e) for e in known)
            self._products[key] = prod(positive, start=buffer.dtype.bytes)
        return self._products[key]

    def _size(self, expr: Expr) -> Size | None:
        if isinstance(expr, IntImm):
            return expr.value
        if self._extents is None:
            self._extents = Extents(self._func)
        return self._extents.size(expr)


def _natural_alignment(buffer: Buffer) -> int:
    """The largest power of two, 64 at most, that divides the bytes of an element."""
    return gcd(buffer.dtype.bytes, 64)


def _divides(need: int, size: Size) -> bool:
    return size % need == 0 if isinstance(size, int) else prove_divides(need, size) is Proof.YES


def _wrong(resident: Resident, root: Root, what: str) -> Wrong:
    return Wrong(f"`{resident.buffer.name}` {what}", [resident.buffer, root.stmt.buffer], resident.stmt, root.stmt)
