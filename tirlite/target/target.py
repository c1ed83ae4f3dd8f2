"""Target: a machine's processor and workers, and its memories besides the ordinary one, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from tirlite.diag import PlanMessage, Span, nearest, public
from tirlite.plan import StorageScope
from tirlite.record import record, replace
from tirlite.show import shown
from tirlite.target.processor import HOST, Processor, demand_known, processor_called, processors


class BadMemory(PlanMessage):
    """A memory was described by numbers that no memory has.

    Example: `tl.MemoryInfo(unit_bits=7, ...)`.
    Fix: Give powers of two of at least 8 bits, and a positive capacity.
    """

    title = "memory `{scope}` cannot have {what} = {value}"
    help = "units and alignments are powers of two of at least 8 bits; a capacity is a positive number of bits{hint}"

    hint: str = ""


class OrdinaryMemory(PlanMessage):
    """A scope without a tag of its own was given properties.

    Example: `target.with_memory("local", info)`.
    """

    title = "`{scope}` is ordinary memory, which has no limits of its own"
    help = "give the memory a tag, as in `local.UB`"


class UnknownMemory(PlanMessage):
    """A buffer wants tagged memory that the target does not describe.

    Example: `tl.alloc(tl.f32[64], scope="local.UB")`, compiled without a target that knows `local.UB`.
    Fix: Describe it: `target.with_memory("local.UB", tl.MemoryInfo(...))`.
    """

    title = "buffer `{buffer}` wants memory `{scope}`, which the target does not describe"
    label = "allocated here"
    help = "describe it with target.with_memory({scope!r}, tl.MemoryInfo(...)){hint}"


class BadWorkers(PlanMessage):
    """A target was asked for with fewer than one worker, or with more than the pool can have.

    Example: `tl.Target.host(workers=0)`.
    Fix: Give 1 to run parallel loops in the calling thread, or leave it out for all processors.
    """

    title = "a target cannot have {workers} workers"
    help = "give a number from 1, for the calling thread alone, to {most}; or none, for all processors"


MOST_WORKERS = 1024


@record
class MemoryInfo:
    """The properties of a tagged memory, in bits.
    `unit_bits`: the smallest addressable unit. `max_simd_bits`: the alignment of all buffers. `max_num_bits`: the
    capacity. `head_address`: the address of its first byte, if fixed; offsets of plans count from it, so it must be
    aligned. Code for the host puts this memory elsewhere.
    """

    unit_bits: int
    max_simd_bits: int
    max_num_bits: int
    head_address: int | None = None

    @property
    def align(self) -> int:
        """The alignment of buffers in bytes."""
        return max(self.unit_bits, self.max_simd_bits) // 8

    @property
    def capacity(self) -> int:
        """The capacity in whole bytes."""
        return self.max_num_bits // 8


@record
class Target:
    """A machine by name, with its tagged memories by scope.

    The names are "host", "x86-64", "x86-64-v2", "-v3", "-v4" and "aarch64". Code for a named one uses the features that
    every such processor has, and can be inspected and exported on any machine. `workers` is how many threads run a
    parallel loop, the calling one included. Raises PlanError for an unknown name, a number of workers that there cannot
    be, and memories as `with_memory` does.
    """

    name: str
    memories: Mapping[str, MemoryInfo] = field(default_factory=dict)
    workers: int = 1

    def __post_init__(self) -> None:
        demand_known(self.name)
        workers = self.workers
        if not isinstance(workers, int) or isinstance(workers, bool) or not 1 <= workers <= MOST_WORKERS:
            raise BadWorkers(shown(workers), MOST_WORKERS).error()
        for scope, info in self.memories.items():
            _demand_memory(scope, info)
        object.__setattr__(self, "memories", MappingProxyType(dict(self.memories)))

    @classmethod
    @public
    def host(cls, workers: int | None = None) -> Target:
        """This machine's processor, with ordinary memory only.

        `workers` is how many threads run a parallel loop; left out, as many as there are processors for this process.
        Raises PlanError for less than one.
        """
        if workers is None:
            return cls(HOST, workers=min(processors(), MOST_WORKERS))
        return cls(HOST).with_workers(workers)

    def with_workers(self, workers: int) -> Target:
        """This target with `workers` threads for a parallel loop. Raises PlanError for less than one."""
        return replace(self, workers=workers)

    @property
    def processor(self) -> Processor:
        """The facts of one core of the machine."""
        return processor_called(self.name)

    @public
    def with_memory(self, scope: str, info: MemoryInfo) -> Target:
        """This target with one more tagged memory. Raises PlanError for a scope without a tag or impossible numbers."""
        return replace(self, memories={**self.memories, scope: info})

    def memory(self, buffer: str, scope: str, span: Span | None = None) -> MemoryInfo:
        """The properties of the memory that `buffer`, allocated at `span`, is in.

        Raises PlanError if it is unknown, with the nearest names, or else all.
        """
        if scope not in self.memories:
            raise UnknownMemory(buffer, scope, self._instead_of(scope), span=span).error()
        return self.memories[scope]

    def _instead_of(self, scope: str) -> str:
        """A hint with the memories of similar names, or with the same tag; otherwise all."""
        tag = scope.partition(".")[2]
        tagged = ", ".join(f"`{each}`" for each in sorted(self.memories) if each.partition(".")[2] == tag)
        if near := nearest(scope, self.memories) or tagged:
            return f"; did you mean {near}?"
        known = ", ".join(f"`{each}`" for each in sorted(self.memories))
        return f"; it describes {known}" if known else ""


def _demand_memory(scope: str, info: object) -> None:
    """Raises PlanError for a scope without a tag or impossible numbers."""
    if not StorageScope.parse(scope).is_special:
        raise OrdinaryMemory(scope).error()
    if not isinstance(info, MemoryInfo):
        hint = "; info is a tl.MemoryInfo(unit_bits, max_simd_bits, max_num_bits, head_address)"
        raise BadMemory(scope, "info", shown(info), hint).error()
    for what, value in (("unit_bits", info.unit_bits), ("max_simd_bits", info.max_simd_bits)):
        if not isinstance(value, int) or value < 8 or value & (value - 1):
            raise BadMemory(scope, what, shown(value)).error()
    if not isinstance(info.max_num_bits, int) or info.max_num_bits < 1:
        raise BadMemory(scope, "max_num_bits", shown(info.max_num_bits)).error()
    head = info.head_address
    if head is not None and (not isinstance(head, int) or head < 0 or head % info.align):
        hint = f"; it begins at a multiple of its alignment, here {info.align} bytes"
        raise BadMemory(scope, "head_address", shown(head), hint).error()
