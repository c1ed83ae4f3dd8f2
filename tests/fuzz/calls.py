"""Calls of kernels for random programs: functions that map one buffer to another, each called once or more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fuzz.expressions import TYPES
from fuzz.extents import Extent
from fuzz.scope import Scope, Slot
from fuzz.writer import MOST_ITERATIONS, Writer, estimate

from tirlite.ir import BufferRef, DType, KernelCall, PrimFunc

# About how many times more than its arrays have elements a callee does something.
_COST = 4


@dataclass(frozen=True)
class Callee:
    """A function of a source, a target and a scalar, all elements of the target being written first.

    One that is not for threads may have threads of its own, or memory that is shared.
    """

    func: PrimFunc
    for_threads: bool
    iterations: Callable[[int], int]  # about how many it has at a size

    @property
    def types(self) -> tuple[DType, DType, DType]:
        source, target, scalar = self.func.params
        return source.dtype, target.dtype, scalar.dtype


# Writes a function for types of source, target and scalar, for threads or not.
Maker = Callable[[DType, DType, DType, bool], Callee]


def call(writer: Writer, scope: Scope, callees: list[Callee], make: Maker) -> None:
    """A call that fills a new temporary, or one that is there, from a buffer of one axis."""
    sources = [slot for slot in scope.readable() if len(slot.extents) == 1 and slot not in scope.owned]
    sources = [slot for slot in sources if slot.buffer.scope == "global" and not slot.buffer.volatile]
    if not sources:
        return
    source = writer.random.choice(sources[-4:])
    (extent,) = source.extents
    if scope.cost * estimate(extent) * _COST > MOST_ITERATIONS:
        return
    callee = _chosen(writer, scope, source, callees, make)
    target = _target(writer, scope, source, callee.types[1])
    scalar = writer.draw.value(scope, callee.types[2], 1)
    writer.features.add("kernel call")
    writer.builder.add(KernelCall(callee.func, (BufferRef(source.buffer), BufferRef(target.buffer), scalar)))
    writer.calls.append((extent, tuple(counter.extent for counter in scope.counters), callee.iterations))
    if target.root is None:
        scope.full[target] = None


def _chosen(writer: Writer, scope: Scope, source: Slot, callees: list[Callee], make: Maker) -> Callee:
    known = [each for each in callees if each.types[0] == source.buffer.dtype]
    known = [each for each in known if each.for_threads or not scope.in_threads]
    if known and writer.random.random() < 0.7:
        writer.features.add("a kernel called again")
        return writer.random.choice(known)
    # Types of one size can go in place.
    target = source.buffer.dtype if writer.random.random() < 0.6 else writer.random.choice(TYPES)
    callee = make(source.buffer.dtype, target, writer.random.choice(TYPES), scope.in_threads)
    callees.append(callee)
    return callee


def _target(writer: Writer, scope: Scope, source: Slot, dtype: DType) -> Slot:
    (extent,) = source.extents
    slots = [slot for slot in scope.writable() if slot.extents == (extent,) and slot.buffer.dtype == dtype]
    slots = [slot for slot in slots if slot not in scope.owned and slot.storage is not source.storage]
    slots = [slot for slot in slots if slot.buffer.scope == "global" and not slot.buffer.volatile]
    if slots and writer.random.random() < 0.4:
        return writer.random.choice(slots)
    return new_target(writer, scope, (extent,), dtype)


def new_target(writer: Writer, scope: Scope, extents: tuple[Extent, ...], dtype: DType) -> Slot:
    """A new temporary of ordinary memory."""
    tensor = dtype[tuple(extent.expr for extent in extents)]
    slot = Slot(writer.builder.alloc(writer.name("t"), tensor), extents)
    scope.slots.append(slot)
    return slot
