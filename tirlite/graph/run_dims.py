"""Run-time extents: dims whose value is that of a tensor computed before, and their upper bounds.

A tensor with such an extent gets storage for the most elements it can have, which is planned like that of any other
tensor, and is seen with the extent that the run found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, NamedTuple

from tirlite.diag import GraphMessage, KernelRunError, Message, Span
from tirlite.graph.extents import product
from tirlite.graph.types import TensorType
from tirlite.record import record
from tirlite.sizes import Dim, Size, SizeLike, as_size, evaluate, is_at_most, maximum, minimum, upper_bound
from tirlite.sizes.dim import Scalar
from tirlite.sizes.extrema import Maximum, Minimum
from tirlite.sizes.poly import Atom, Poly, Quotient, Remainder, inside_out, terms_of
from tirlite.sizes.terms import Origin, serial_of


class UnboundedExtent(GraphMessage):
    """A tensor has a run-time extent of which no greatest value is known.

    Example: `g.broadcast_to(x, (8 - k,))`, where `k` is how many elements of another tensor are not zero.
    Fix: Give an extent that grows with what the run finds, or the maximum of 0 and such an extent.
    """

    title = "the extent {size} is known only at run time and has no bound, so that no storage can be planned"
    help = "`tl.graph.compile` takes such functions: it plans what uses the extent once its value is known"


class ExtentOutside(Message):
    """A run found an extent below or above its limits; one that is negative is below.

    Example: A `TopK` of 9 elements along an axis of 4.
    Fix: Give operands for which it lies between the two.
    """

    raises = KernelRunError
    title = "the extent {dim} was found to be {value}, and must be {limits}"


class Wanted(NamedTuple):
    """The condition on a run-time extent: in words with placeholders, and the inclusive limits."""

    text: str
    low: Size | None
    high: Size | None


@record(eq=False, repr=False)
class RunDim(Scalar):
    """The value of `source`, an integer without axes that a graph computes: from `least` to `most`, if there is one.

    These may depend on extents that the run has found before. It stands for itself alone, whatever its name.
    """

    source: Any = field(default=None, kw_only=True)  # an expression of the graph
    least: Size = field(default=0, kw_only=True)
    most: Size | None = field(default=0, kw_only=True)
    serial: int | None = field(default=None, kw_only=True)  # its number where it was written, if it is read back

    def _ident(self) -> int:
        return self.origin.ident() if self.serial is None else self.origin.again(self.serial)

    @property
    def limits(self) -> tuple[Size, ...]:
        """Its lower and upper bound, as far as there are any."""
        return (self.least,) if self.most is None else (self.least, self.most)

    def __reduce__(self) -> Any:
        return _restored, (self.name, self.source, self.least, self.most, self.origin, serial_of(self.ident))


def run_dim(
    name: str, source: object, most: Size | None, origin: Origin, least: Size = 0, *, serial: int | None = None
) -> RunDim:
    """A new extent, which has the value of `source`."""
    bound = None if most is None else upper_bound(most)
    # Kernels count extents from 1 on: one that is 0 in each run has no other fact.
    high = None if bound is None else max(bound, 1)
    return RunDim(name, 0, high, 1, origin, source=source, least=least, most=most, serial=serial)


def mapped_run_dim(dim: RunDim, source: object, function: Callable[[Size], Size]) -> RunDim:
    """The extent with another source, and with its limits mapped by a function."""
    most = None if dim.most is None else function(dim.most)
    return run_dim(dim.name, source, most, dim.origin, function(dim.least))


def wanted(least: Size, most: Size | None) -> tuple[Wanted, ...]:
    """The condition on an extent between two limits."""
    if least == most:
        return (Wanted("{}", least, least),)
    if least == 0 and most is not None:
        return (Wanted("from {} to {}", least, most),)
    low = Wanted("at least {}", least, None)
    return (low,) if most is None else (low, Wanted("at most {}", None, most))


def _restored(name: str, source: object, least: Size, most: Size | None, origin: Origin, serial: int) -> RunDim:
    return run_dim(name, source, most, origin, least, serial=serial)


def run_dims(sizes: Iterable[SizeLike]) -> tuple[RunDim, ...]:
    """The run-time extents among these sizes and inside of them, each once."""
    found = (atom for size in sizes if isinstance(size, Poly) for atom in inside_out(size))
    return tuple(dict.fromkeys(atom for atom in found if isinstance(atom, RunDim)))


def with_limits(sizes: Iterable[Size]) -> list[Size]:
    """The sizes, after the limits of the run-time extents among them."""
    layers = [[*sizes]]
    while layers[-1]:
        layers.append([limit for dim in run_dims(layers[-1]) for limit in dim.limits if not isinstance(limit, int)])
    return [size for layer in reversed(layers) for size in layer]


def most_of(of: TensorType) -> TensorType:
    """The type with the most that each extent can be, over dims that a call knows. Raises GraphError without one."""
    if not run_dims(of.shape):
        return of
    return TensorType(tuple(most(extent) for extent in of.shape), of.dtype)


def most(size: Size) -> Size:
    """The most that a size can be, over dims that a call knows. Raises GraphError where no such size is found."""
    found = greatest(size)
    if found is None:
        raise UnboundedExtent(str(size)).error()
    return found


def greatest(size: SizeLike) -> Size | None:
    """The most that a size can be, over dims that a call knows; None where no such size is found."""
    return _limit(size, is_upper=True)


def _limit(size: SizeLike, *, is_upper: bool) -> Size | None:
    """A size over known dims that is never less, or never more, than this one; None where none is found."""
    total: Size = 0
    for factors, coefficient in terms_of(size).items():
        if not run_dims([product(as_size(each) for each in factors)]):
            total = total + coefficient * product(as_size(each) for each in factors)
            continue
        # A product grows with each of its factors where none is negative.
        if any(not is_at_most(0, each) for each in factors):
            return None
        limits = [_limit_of_atom(each, is_upper=is_upper == (coefficient > 0)) for each in factors]
        known = [each for each in limits if each is not None]
        if len(known) < len(limits):
            return None
        total = total + coefficient * product(known)
    return total


def _limit_of_atom(atom: Atom, *, is_upper: bool) -> Size | None:
    if isinstance(atom, RunDim):
        limit = atom.most if is_upper else atom.least
        return None if limit is None else _limit(limit, is_upper=is_upper)
    if not run_dims([as_size(atom)]):
        return as_size(atom)
    if isinstance(atom, Quotient) and not run_dims([atom.operands[1]]) and is_at_most(1, atom.operands[1]):
        inner = _limit(atom.operands[0], is_upper=is_upper)
        return None if inner is None else inner // atom.operands[1]
    if isinstance(atom, Remainder) and isinstance(atom.operands[1], int) and atom.operands[1] > 0:
        return atom.operands[1] - 1 if is_upper else 0
    if isinstance(atom, Maximum | Minimum):
        parts = [_limit(each, is_upper=is_upper) for each in atom.operands]
        known = [each for each in parts if each is not None]
        if len(known) == len(parts):
            return (maximum if isinstance(atom, Maximum) else minimum)(*known)
        # Each of several sizes is at least the least of them, and at most the greatest.
        if known and is_upper == isinstance(atom, Minimum):
            return minimum(*known) if is_upper else maximum(*known)
    return None


def check_extent(dim: RunDim, value: int, binding: Mapping[Dim, int], span: Span | None = None) -> None:
    """Raises KernelRunError if a run found an extent beyond its limits at these values of the dims."""
    most = value if dim.most is None else evaluate(dim.most, binding)
    if evaluate(dim.least, binding) <= value <= most:
        return
    for text, low, high in wanted(dim.least, dim.most):
        limits = {size: evaluate(size, binding) for size in (low, high) if size is not None}
        if (low is not None and value < limits[low]) or (high is not None and value > limits[high]):
            raise ExtentOutside(dim.name, value, text.format(*limits.values()), span=span).error()
