"""A function in, its storage problem out: one request for each allocation that a plan may move.

The finder of the loop-nest level. What stays where it is, and why, is told beside the problem.
"""

from __future__ import annotations

from dataclasses import dataclass

from tirlite.analysis import Extents, Lifetime, Region, lifetimes_of, linear_sequence
from tirlite.ir import Buffer, For, PrimFunc, TypeCode, Var
from tirlite.plan import Pool, Problem, Rank, Request, StorageScope
from tirlite.sizes import Size

# A constant-size buffer this small is left to the registers.
REGISTER_BYTES = 4


@dataclass(frozen=True, slots=True)
class StorageProblem:
    """The problem, the lifetime behind each request by its id, and the allocations outside it with the reason why.

    `dead` are those that nothing touches. `extents` are the function's.
    """

    problem: Problem
    lifetimes: dict[str, Lifetime]
    kept: dict[Buffer, str]
    dead: frozenset[Buffer]
    extents: Extents


def storage_problem(func: PrimFunc) -> StorageProblem:
    """The storage problem of a function in normal form (see `Normalize`).

    Memories are pairs of a scope and the loop that its allocations are attached to: buffers of different memories never
    share.
    """
    extents = Extents(func)
    requests: list[Request] = []
    memories = _Memories()
    lifetimes: dict[str, Lifetime] = {}
    kept: dict[Buffer, str] = {}
    dead: list[Buffer] = []
    for lifetime in lifetimes_of(linear_sequence(func)):
        buffer = lifetime.buffer
        size = extents.bytes(buffer)
        if not lifetime.live:
            dead.append(buffer)
        elif size is None:
            kept[buffer] = "its size is not known on entry to the function"
        elif reason := _left_alone(buffer, size):
            kept[buffer] = reason
        else:
            name = _unused(buffer.name, lifetimes)
            lifetimes[name] = lifetime
            requests.append(_request(name, lifetime, size, memories.of(lifetime)))
    return StorageProblem(Problem(tuple(requests), memories.pools()), lifetimes, kept, frozenset(dead), extents)


def _request(name: str, lifetime: Lifetime, size: Size, memory: str) -> Request:
    buffer = lifetime.buffer
    return Request(
        name,
        size,
        lifetime.live,
        scope=buffer.scope,
        align=max(buffer.alignment, _natural_alignment(buffer)),
        pools=(memory,),
        kind=buffer.dtype.scalar.name,
    )


def _left_alone(buffer: Buffer, size: Size) -> str | None:
    """Why the allocation is none of the planner's business, or None."""
    scope = StorageScope.parse(buffer.scope)
    if scope.is_special:
        return "tagged memory is not planned"
    if scope.rank in (Rank.LOCAL, Rank.WARP):
        return "local memory is left to the registers"
    if buffer.dtype.code is TypeCode.HANDLE:
        return "it holds handles"
    if isinstance(size, int) and size <= REGISTER_BYTES:
        return "it fits into a register"
    return None


def _natural_alignment(buffer: Buffer) -> int:
    """The alignment of one element: the power of two that its bytes divide into evenly, 64 at most."""
    return min(64, buffer.dtype.bytes & -buffer.dtype.bytes)


def _unused(name: str, taken: dict[str, Lifetime]) -> str:
    number = 0
    fresh = name
    while fresh in taken:
        number += 1
        fresh = f"{name}_{number}"
    return fresh


class _Memories:
    """The memories met: a scope at the top of the function, or inside one parallel or thread-bound loop."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, Var | None], str] = {}

    def of(self, lifetime: Lifetime) -> str:
        scope, loop = lifetime.buffer.scope, attach_loop(lifetime.attach)
        name = scope if loop is None else f"{scope} in {loop.name}"
        if (scope, loop) not in self.names:
            same = sum(n == name or n.startswith(f"{name} (") for n in self.names.values())
            self.names[scope, loop] = f"{name} ({same + 1})" if same else name
        return self.names[scope, loop]

    def pools(self) -> tuple[Pool, ...]:
        return tuple(Pool(name, scope) for (scope, _), name in self.names.items())


def attach_loop(region: Region | None) -> Var | None:
    """The variable of the loop whose body storage is attached to; None for the function's."""
    if region is None:
        return None
    assert isinstance(region.composite, For)
    return region.composite.var
