"""Tells which lanes that lie apart are loaded out of the same vectors: those that fill the gaps of one another.

`x[2 * j]` and `x[2 * j + 1]`, for as many j as there are lanes, are the even and the odd elements of two vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tirlite.analysis.loops.work import parted
from tirlite.ir import Add, Allocate, And, Call, Expr, IntImm, Let, Load, Op, Or, Ramp, Stmt, Store, const, i64, walk
from tirlite.ir.checked import is_checked


def phases_of(stmts: Iterable[Stmt]) -> Mapping[Load, tuple[int, Expr]]:
    """For loads of lanes that lie apart, which of a group of neighbours each lane loads, and where the first group is.

    All of a group is loaded by one of these, and as long as lanes are apart.
    """
    found: dict[Load, tuple[int, Expr]] = {}
    for loads in _alike(stmts):
        offsets = {offset for _, offset in loads}
        first, apart = min(offsets), _stride(loads[0][0])
        for load, offset in loads:
            phase = (offset - first) % apart
            if offsets.issuperset(range(offset - phase, offset - phase + apart)):
                base, begin = parted(_ramp(load).base)[0], offset - phase
                found[load] = phase, Add(base, const(begin, i64)) if begin else base
    return found


def _alike(stmts: Iterable[Stmt]) -> Iterator[list[tuple[Load, int]]]:
    """Loads that differ in how far along a row they begin, with that; of statements that all run or none does."""
    together: list[list[tuple[Load, int]]] = []
    for stmt in stmts:
        if not isinstance(stmt, Let | Store | Allocate):
            yield from together
            together = []
        elif not isinstance(stmt, Allocate) and stmt.value.dtype.lanes > 1:
            for load in _strided(stmt.value):
                offset = parted(_ramp(load).base)[1]
                group = next((each for each in together if _is_beside(load, each[0][0])), None)
                if group is None:
                    together.append([(load, offset)])
                else:
                    group.append((load, offset))
    yield from together


def _strided(value: Expr) -> list[Load]:
    """The loads of a value, all of which are done, whose lanes lie apart."""
    nodes = [*walk(value)]
    if any(isinstance(node, And | Or) or (isinstance(node, Call) and node.op is Op.IF_THEN_ELSE) for node in nodes):
        return []
    loads = (node for node in nodes if isinstance(node, Load) and node.indices)
    return [load for load in loads if isinstance(load.indices[-1], Ramp) and _stride(load) > 1]


def _stride(load: Load) -> int:
    """How far lanes lie apart that lie apart; else 0."""
    stride = _ramp(load).stride
    is_plain = load.buffer.dtype.lanes == 1 and not load.buffer.volatile
    is_known = is_plain and isinstance(stride, IntImm) and not any(map(is_checked, load.indices))
    return stride.value if is_known and isinstance(stride, IntImm) else 0


def _ramp(load: Load) -> Ramp:
    last = load.indices[-1]
    assert isinstance(last, Ramp)
    return last


def _is_beside(load: Load, other: Load) -> bool:
    if load.buffer is not other.buffer or load.dtype != other.dtype or _stride(load) != _stride(other):
        return False
    from tirlite.ir.equal import are_equal  # most kernels need none

    base, of = parted(_ramp(load).base)[0], parted(_ramp(other).base)[0]
    return are_equal((*load.indices[:-1], base), (*other.indices[:-1], of))
