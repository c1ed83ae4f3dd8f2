"""Finds the demands on the extents of a call's arguments, each with its proof, or the check that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tirlite.analysis.integers.extents import Extents
from tirlite.ir.dtype import i64
from tirlite.ir.expr import EQ, GE, LE, Buffer, Expr, FloorMod, IntImm, Var
from tirlite.ir.kernel_call import DimSource, Function, KernelCall
from tirlite.ir.rewrite import substitute
from tirlite.ir.walk import is_steady
from tirlite.record import record
from tirlite.sizes import Dim, Proof, Size, is_at_most, prove_divides, prove_eq, prove_le

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
    for dim, value in call.callee.dims_at(dict(call.buffers())).items():
        if dim.dim is not None and dim.dim.min == 1:
            size = extents.size(value)
            if size is None or not is_at_most(1, size):
                return True
    return False


def demands(
    callee: Function, buffers: Mapping[Buffer, Buffer], scalars: Mapping[Var, Expr], proofs: Extents
) -> Iterator[Demand]:
    """What must hold where `callee` is called with these buffers and scalars for its parameters.

    A dim is bound by one axis (`Function.sources`). All other extents must fit, and what is declared of a dim must hold
    of what it is bound to; that it is at least 1 is no more than a guess, and no demand.
    """
    sources = callee.sources
    images = callee.dims_at(buffers)
    variables = {**scalars, **images}
    for param, given in buffers.items():
        for axis, (declared, extent) in enumerate(zip(param.shape, given.shape, strict=True)):
            if isinstance(declared, Var) and declared in sources and sources[declared] == DimSource(param, axis):
                continue
            wanted = declared if isinstance(declared, IntImm) else substitute(declared, variables)
            if _are_one(wanted, extent):
                continue
            a, b = proofs.size(wanted), proofs.size(extent)
            proof = prove_eq(a, b) if a is not None and b is not None else Proof.UNKNOWN
            what = str(wanted) if isinstance(declared, IntImm) else f"{wanted} by the other arguments"
            yield Demand(param, axis, EQ(GIVEN, declared), proof, what, str(extent))
    for dim, source in sources.items():
        extent = buffers[source.param].shape[source.axis]
        for proof, condition, what in _facts(dim, source, proofs.size(images[dim])):
            yield Demand(source.param, source.axis, condition, proof, what, str(extent))


def _are_one(wanted: Expr, given: Expr) -> bool:
    """Whether two extents are the same number, or one expression that reads no memory."""
    if isinstance(wanted, IntImm) and isinstance(given, IntImm):
        return wanted.value == given.value
    return wanted is given and is_steady(given)


def _facts(dim: Var, source: DimSource, size: Size | None) -> Iterable[tuple[Proof, Expr, str]]:
    """For each fact of a dim whether it holds of `size`, the condition that says so, and how a message tells it."""
    facts, unknown = dim.dim or Dim(dim.name, min=0), Proof.UNKNOWN
    what = "" if source.is_bare else f"an extent that makes `{dim.name}` "
    least = facts.min if facts.min > 1 else 0
    # An extent is never negative; what is left of it when a constant is taken off may be.
    if least or source.plus > 0:
        proof = prove_le(least, size) if size is not None else unknown
        yield proof, GE(dim, IntImm(i64, least)), f"{what}at least {least}"
    if facts.max is not None:
        proof = prove_le(size, facts.max) if size is not None else unknown
        yield proof, LE(dim, IntImm(i64, facts.max)), f"{what}at most {facts.max}"
    if facts.multiple_of > 1:
        proof = prove_divides(facts.multiple_of, size) if size is not None else unknown
        remainder = FloorMod(dim, IntImm(i64, facts.multiple_of))
        yield proof, EQ(remainder, IntImm(i64, 0)), f"{what}a multiple of {facts.multiple_of}"
