"""Two accesses in, out whether one of them can run before the other one has touched the same byte.

The orders in which two instances can run fall into classes: for each loop around both accesses, the instances that
first differ in that loop, and those of one iteration of all of them. A class is ruled out where no two of its instances
touch the same byte: the difference of their addresses is a linear equation over the counters, without a solution.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from tirlite.analysis.access import Region, Touch
from tirlite.analysis.addresses import Address, Addresses
from tirlite.analysis.definitions import Loop
from tirlite.analysis.equations import solve
from tirlite.analysis.instances import Instances
from tirlite.analysis.regions import path_to
from tirlite.ir import Buffer, For, ForKind, IfThenElse, IntImm, Load, Store, While
from tirlite.record import record
from tirlite.sizes import Dim, Size, dims_of
from tirlite.sizes.poly import varies

_UNORDERED = (ForKind.PARALLEL, ForKind.THREAD, ForKind.VECTORIZED)


@record
class Reversal:
    """`late` may run after `early` has touched the same byte: in another iteration of `loop`, or, with None, in one."""

    early: Touch
    late: Touch
    loop: Loop | None


def find_reversal(addresses: Addresses, first: Touch, then: Touch, home: Region) -> Reversal | None:
    """None where each instance of `first` is proved to run before every instance of `then` on the same byte.

    That is for one execution of the body `home`, which holds both. Else a class of instances that is not ruled out.
    """
    pair = _Pair(addresses, first, then, home)
    known = pair.solve(None)
    if known is None:
        return None
    for level, loop in enumerate(pair.loops):
        if known.get(level) == 0:
            continue
        signs = (1, -1) if isinstance(loop, For) and loop.kind in _UNORDERED else (1,)
        if any(pair.solve(level, sign) is not None for sign in signs):
            return Reversal(then, first, loop)
    if then.position < first.position and not pair.exclusive and pair.solve(len(pair.loops)) is not None:
        return Reversal(then, first, None)
    return None


def may_carry(addresses: Addresses, write: Touch, read: Touch, loop: Region) -> bool:
    """Whether a read may see in one iteration of `loop` what was written in an earlier one, or any other without order.

    That is for one execution of the loop, which holds both.
    """
    assert loop.parent is not None
    pair = _Pair(addresses, read, write, loop.parent)
    composite = loop.composite
    signs = (1, -1) if isinstance(composite, For) and composite.kind in _UNORDERED else (1,)
    return any(pair.solve(0, sign) is not None for sign in signs)


def plainly_ordered(first: Touch, then: Touch, home: Region, roots: tuple[Buffer, Buffer]) -> bool:
    """Whether the order that `find_reversal` looks for is plain to see; False where that takes a proof.

    Both are in one body. There are no loops around it; or the two have equal indices, which name each loop, in the
    allocations themselves (`roots`), of one shape: then what runs on one element is one iteration.
    """
    if then.region is not first.region or then.position < first.position:
        return False
    if then.region is home:
        return True
    a, b = first.node, then.node
    assert isinstance(a, Load | Store)
    assert isinstance(b, Load | Store)
    named = {index for index, other in zip(a.indices, b.indices, strict=False) if index is other}
    region = then.region
    while region is not home:
        loop = region.composite
        if isinstance(loop, While) or (isinstance(loop, For) and loop.var not in named):
            return False
        assert region.parent is not None
        region = region.parent
    return (a.buffer, b.buffer) == roots and _same_shape(*roots)


def shared_loops(one: Region, other: Region, home: Region) -> list[Loop]:
    """The loops inside `home` that are around both, the outermost first."""
    mine, its = path_to(one, home), path_to(other, home)
    both = mine[: _shared(mine, its)]
    return [region.composite for region in both if isinstance(region.composite, For | While)]


def exclude_each_other(one: Region, other: Region, home: Region) -> bool:
    """Whether the two lie in different branches of one `if`, inside `home`."""
    mine, its = path_to(one, home), path_to(other, home)
    shared = _shared(mine, its)
    return shared < min(len(mine), len(its)) and _are_branches(mine[shared], its[shared])


def _shared(mine: list[Region], other: list[Region]) -> int:
    """How many regions are around both."""
    shared = 0
    while shared < min(len(mine), len(other)) and mine[shared] is other[shared]:
        shared += 1
    return shared


class _Pair:
    """Two accesses, the loops around both, and the equations between their addresses."""

    def __init__(self, addresses: Addresses, first: Touch, then: Touch, home: Region) -> None:
        self.space = addresses.space
        mine, other = path_to(first.region, home), path_to(then.region, home)
        shared = _shared(mine, other)
        self.exclusive = shared < min(len(mine), len(other)) and _are_branches(mine[shared], other[shared])
        self.loops = [r.composite for r in mine[:shared] if isinstance(r.composite, For | While)]
        self.levels = {loop: level for level, loop in enumerate(self.loops)}
        self.inner = [r.composite for r in (*mine[shared:], *other[shared:])]
        assert isinstance(first.node, Load | Store)
        assert isinstance(then.node, Load | Store)
        a, b = addresses.of(first.node), addresses.of(then.node)
        self.positive = _positive_dims(addresses, a, b)
        self.differences = list(_differences(addresses, a, b))

    def solve(self, level: int | None, sign: int = 0) -> dict[int, Size] | None:
        """What is known of the distance of the two instances in each common loop, by its level; None: they never meet.

        They are in one iteration of the loops above `level`, and `first` is in a later iteration of the loop at
        `level` for `sign` 1, in an earlier one for -1. With None they are any two.
        """
        found = self._solve(level, sign, {})
        if found is None or not self.positive or all(found.get(k) == 0 for k in range(len(self.loops))):
            return found
        return self._solve(level, sign, self.positive)

    def _solve(self, level: int | None, sign: int, dims: dict[Dim, Size]) -> dict[int, Size] | None:
        build = Instances(self.space, self.levels, self.inner, level or 0)
        if level is not None and level < len(self.loops):
            build.direct(self.loops[level], sign)
        for a, b, slack in self.differences:
            build.equate(a, b, slack)
        build.relate()
        distances = {level: build.distance_in(loop) for loop, level in self.levels.items()}
        system = build.system
        known = solve(system.with_dims(dims) if dims else system)
        if known is None:
            return None
        found = {level: known[name] for level, name in distances.items() if name in known}
        return found | dict.fromkeys(range(level or 0), 0)


def _same_shape(one: Buffer, other: Buffer) -> bool:
    alike = one.dtype.bytes == other.dtype.bytes and len(one.shape) == len(other.shape)
    return alike and all(
        a is b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value)
        for a, b in zip(one.shape[1:], other.shape[1:], strict=True)
    )


def _are_branches(one: Region, other: Region) -> bool:
    """Whether these are the two branches of one `if`."""
    return isinstance(one.composite, IfThenElse) and (one.then is other or other.then is one)


_Difference: TypeAlias = tuple[Size, Size, tuple[int, int]]


def _differences(addresses: Addresses, a: Address, b: Address) -> Iterator[_Difference]:
    """What must be equal for two elements to share a byte: the indices in one grid, or else the bytes."""
    if a.window.same_grid(b.window):
        for mine, other in zip(a.indices, b.indices, strict=True):
            yield mine, other, (0, 0)
        return
    mine_bytes, other_bytes = addresses.bytes(a), addresses.bytes(b)
    if mine_bytes is not None and other_bytes is not None:
        yield mine_bytes, other_bytes, (1 - a.window.element, b.window.element - 1)


def _positive_dims(addresses: Addresses, *touched: Address) -> dict[Dim, Size]:
    """Dims that may be 0, and cannot be here: an axis along which something is accessed is not empty."""
    found: dict[Dim, Size] = {}
    for address in touched:
        for extent in address.window.buffer.shape:
            size = addresses.space.size(extent)
            dims = () if varies(size) else dims_of(size)
            if len(dims) == 1 and dims[0].low == 0 and size == dims[0]:
                dim = dims[0]
                found[dim] = Dim(dim.name, max(1, dim.min), dim.max, dim.multiple_of) + 0
    return found
