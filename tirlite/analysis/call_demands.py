"""Finds what the extents of a call's arguments must fulfil: each demand with its proof, or the check it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tirlite.analysis.integers.extents import Extents
from tirlite.ir import (
    EQ,
    GE,
    LE,
    Buffer,
    Expr,
    FloorMod,
    Function,
    IntImm,
    KernelCall,
    Load,
    Var,
    i64,
    substitute,
    text,
    walk,
)
from tirlite.record import record
from tirlite.sizes import Dim, Proof, Size, prove_divides, prove_eq, prove_le

# Stands for the extent that is given, in the condition of a demand.
GIVEN = Var("given")


@record
class Demand:
    """`axis` of parameter `param` takes an extent for which `condition` holds.

    The condition is one over `GIVEN` and the dims and scalar parameters of the callee. `wanted` tells it in words of
    the caller, as `given` tells the extent.
    """

    param: Buffer
    axis: int
    condition: Expr
    proof: Proof
    wanted: str
    given: str

    def told(self, callee: str) -> str:
        """What a message says where it does not hold."""
        return f"axis {self.axis} of `{self.param.name}` of {callee} takes {self.wanted}, not {self.given}"


def demands_of(call: KernelCall, proofs: Extents) -> list[Demand]:
    """What must hold at a call; `proofs` are the extents of the caller."""
    return list(demands(call.callee, dict(call.buffers()), dict(call.scalars()), proofs))


def may_be_empty(call: KernelCall, extents: Extents) -> bool:
    """Whether a dim of the callee that counts as at least 1 is not proved to be at this call."""
    buffers = dict(call.buffers())
    for dim, (param, axis) in call.callee.sources.items():
        if dim.dim is not None and dim.dim.min == 1:
            size = extents.size(buffers[param].shape[axis])
            if size is None or prove_le(1, size) is not Proof.YES:
                return True
    return False


def demands(
    callee: Function, buffers: Mapping[Buffer, Buffer], scalars: Mapping[Var, Expr], proofs: Extents
) -> Iterator[Demand]:
    """What must hold where `callee` is called with these buffers and scalars for its parameters.

    A dim is bound by the first axis that is the dim alone. All other extents must fit, and what is declared of a dim
    must hold of what it is bound to; that it is at least 1 is no more than a guess, and no demand.
    """
    sources = callee.sources
    images = {dim: buffers[param].shape[axis] for dim, (param, axis) in sources.items()}
    variables = {**scalars, **images}
    for param, given in buffers.items():
        for axis, (declared, extent) in enumerate(zip(param.shape, given.shape, strict=True)):
            if isinstance(declared, Var) and sources.get(declared) == (param, axis):
                continue
            wanted = declared if isinstance(declared, IntImm) else substitute(declared, variables)
            if _are_one(wanted, extent):
                continue
            a, b = proofs.size(wanted), proofs.size(extent)
            proof = prove_eq(a, b) if a is not None and b is not None else Proof.UNKNOWN
            what = text(wanted) if isinstance(declared, IntImm) else f"{text(wanted)} by the other arguments"
            yield Demand(param, axis, EQ(GIVEN, declared), proof, what, text(extent))
    for dim, (param, axis) in sources.items():
        if dim.dim is not None:
            extent = images[dim]
            for proof, condition, what in _facts(dim.dim, proofs.size(extent)):
                yield Demand(param, axis, condition, proof, what, text(extent))


def _are_one(wanted: Expr, given: Expr) -> bool:
    """Whether two extents are the same number, or one expression that reads no memory."""
    if isinstance(wanted, IntImm) and isinstance(given, IntImm):
        return wanted.value == given.value
    return wanted is given and not any(isinstance(each, Load) for each in walk(given))


def _facts(facts: Dim, size: Size | None) -> Iterable[tuple[Proof, Expr, str]]:
    """For each fact of a dim whether it holds of `size`, the condition that says so, and how a message tells it."""
    unknown = Proof.UNKNOWN
    if facts.min > 1:
        proof = prove_le(facts.min, size) if size is not None else unknown
        yield proof, GE(GIVEN, IntImm(i64, facts.min)), f"at least {facts.min}"
    if facts.max is not None:
        proof = prove_le(size, facts.max) if size is not None else unknown
        yield proof, LE(GIVEN, IntImm(i64, facts.max)), f"at most {facts.max}"
    if facts.multiple_of > 1:
        proof = prove_divides(facts.multiple_of, size) if size is not None else unknown
        remainder = FloorMod(GIVEN, IntImm(i64, facts.multiple_of))
        yield proof, EQ(remainder, IntImm(i64, 0)), f"a multiple of {facts.multiple_of}"
