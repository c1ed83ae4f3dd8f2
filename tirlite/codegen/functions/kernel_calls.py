"""Translates a KernelCall into checks and a call instruction, and records which functions the module needs.

A function is compiled once for each set of promises that callers make about the arguments' addresses, or once for fewer
promises if it has a `general` version. Most modules need one version: all arguments are disjoint.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.analysis.param_uses import Use, uses_of
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value
from tirlite.codegen.memory import Environment, alignment_of
from tirlite.ir import Buffer, DimSource, Function, KernelCall, PrimFunc, Var, callees, calls_in, i64
from tirlite.record import record

if TYPE_CHECKING:
    from tirlite.analysis import ByteRange

# Functions with more calls are not inlined, as LLVM's time would grow with the number of calls.
_MOST_COPIES = 3
_LAST = (1 << 63) - 1


@record
class Version:
    """A function, and what callers promise for each of its parameters.
    `apart`: no other parameter shares a byte with it, if one of the two is written. `aligned`: it has the alignment
    that the parameter declares.
    """

    func: PrimFunc
    apart: tuple[bool, ...]
    aligned: tuple[bool, ...]

    def serves(self, other: Version) -> bool:
        """Whether a caller that makes the promises of `other` may call this version."""
        return not any(
            own > given for own, given in zip(self.apart + self.aligned, other.apart + other.aligned, strict=True)
        )


class Versions:
    """The functions that a module needs besides its kernel, each with a name.
    `pending`: versions not emitted yet. `called`: versions that emitted functions call. `general`: for some functions,
    the version that most callers can use.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.pending: deque[Version] = deque()
        self.called: set[Version] = set()
        self.general: dict[Function, Version] = {}
        self._kernel: Facts | None = None
        self._facts: dict[Function, Facts] = {}
        self._ranges: dict[PrimFunc, dict[Buffer, ByteRange]] = {}
        self._names: dict[Version, str] = {}
        self._calls: Counter[Function] = Counter()

    def receive(self, facts: Facts) -> None:
        """Receives the facts of the module's kernel, which calls all other functions directly or indirectly."""
        func, self._kernel = facts.func, facts
        self._calls.update(call.callee for each in (*callees(func), func) for call in calls_in(each.body))

    def facts_of(self, func: PrimFunc) -> Facts:
        """The facts of a function, cached."""
        if func not in self._facts:
            self._facts[func] = Facts(func) if self._kernel is None else self._kernel.of(func)
        return self._facts[func]

    def ranges_of(self, func: PrimFunc) -> dict[Buffer, ByteRange]:
        """The byte ranges of a function's buffers, cached."""
        if func not in self._ranges:
            from tirlite.analysis import byte_ranges

            self._ranges[func] = byte_ranges(self.facts_of(func))
        return self._ranges[func]

    def ranges_in(self, func: PrimFunc, roots: tuple[Buffer, ...]) -> dict[Buffer, ByteRange]:
        """The byte ranges that lie in the allocations `roots`."""
        return {each: found for each, found in self.ranges_of(func).items() if found.root in roots} if roots else {}

    def name(self, version: Version) -> str:
        if version not in self._names:
            self._names[version] = f"{self.prefix}_callee{len(self._names) + 1}"
            self.pending.append(version)
        return self._names[version]

    def changed(self, func: PrimFunc) -> frozenset[Buffer]:
        """The parameters that a function may write."""
        return frozenset(param for param, use in uses_of(func).items() if use & (Use.WRITE | Use.OPAQUE))

    def attributes(self, version: Version) -> str:
        return "noinline" if self._calls[version.func] > _MOST_COPIES else ""


class Calls:
    """Emits the calls in one function."""

    def __init__(self, func: PrimFunc, versions: Versions) -> None:
        self.facts = versions.facts_of(func)
        self.versions = versions
        self._apart: dict[tuple[ByteRange, ByteRange], bool] = {}

    def write(self, call: KernelCall, values: Expressions, out: KernelFunction) -> None:
        """Emits the checks and the call. Raises KernelError for an extent that is proved wrong."""
        places, buffers = values.environment.places, dict(call.buffers())
        known = {param: values.value(value) for param, value in call.scalars()}
        for dim, source in call.callee.sources.items():
            known[dim] = _dim(source, places[buffers[source.param]].extents[source.axis], out)
        self.check(call, buffers, known, values, out)
        version, operands = self.version(call, buffers, known, values)
        self.versions.called.add(version)
        code = out.invoke(i64, self.versions.name(version), operands, "fastcc ")
        out.check(code)

    def check(
        self,
        call: KernelCall,
        buffers: Mapping[Buffer, Buffer],
        known: Mapping[Var, Value],
        values: Expressions,
        out: KernelFunction,
    ) -> None:
        """Emits checks for the demands on extents that are not proved."""
        from tirlite.analysis import GIVEN, demands_of
        from tirlite.ir.faults import CallExtent
        from tirlite.sizes import Proof

        inside = Expressions(out, Environment())
        inside.environment.variables.update(known)
        for demand in demands_of(call, self.facts.extents):
            if demand.proof is Proof.YES:
                continue
            fault = CallExtent(demand.told(call.callee.name), span=call.span)
            if demand.proof is Proof.NO:
                raise fault.error()
            given = values.environment.places[buffers[demand.param]].extents[demand.axis]
            inside.environment.variables[GIVEN] = given
            out.require(inside.value(demand.condition), fault)

    def version(
        self, call: KernelCall, buffers: Mapping[Buffer, Buffer], known: Mapping[Var, Value], values: Expressions
    ) -> tuple[Version, list[Value]]:
        """The version of the callee that this call may use, and its arguments."""
        params = [
            values.environment.places[buffers[param]].pointer if isinstance(param, Buffer) else known[param]
            for param in call.callee.params
        ]
        version = Version(*self._promises(call.callee, buffers, values.environment))
        general = self.versions.general.get(call.callee)
        if general is not None and general.serves(version):
            version = general
        return version, [*params, *(known[dim] for dim in call.callee.dims)]

    def _promises(
        self, func: Function, buffers: Mapping[Buffer, Buffer], environment: Environment
    ) -> tuple[PrimFunc, tuple[bool, ...], tuple[bool, ...]]:
        assert isinstance(func, PrimFunc)
        changed = self.versions.changed(func)

        def clashes(one: Buffer) -> bool:
            others = buffers if one in changed else changed
            return not all(
                other is one or self._are_disjoint(buffers[one], buffers[other], environment) for other in others
            )

        apart, aligned = [], []
        for param in func.params:
            apart.append(isinstance(param, Buffer) and not clashes(param))
            aligned.append(
                isinstance(param, Buffer) and environment.places[buffers[param]].align % alignment_of(param) == 0
            )
        return func, tuple(apart), tuple(aligned)

    def _are_disjoint(self, one: Buffer, other: Buffer, environment: Environment) -> bool:
        """Whether two buffers are proved to share no byte."""
        if environment.places[one].pointer.root is not environment.places[other].pointer.root:
            return True
        from tirlite.analysis import are_disjoint

        ranges = self.versions.ranges_of(self.facts.func)
        pair = a, b = ranges[one], ranges[other]
        if pair not in self._apart:
            # In a long program the same few pairs of ranges occur again and again.
            self._apart[pair] = a.root is b.root and are_disjoint(a, b)
        return self._apart[pair]


def _dim(source: DimSource, extent: Value, out: KernelFunction) -> Value:
    """The value of a dim, computed from the extent of the axis that defines it."""
    from tirlite.analysis import GIVEN

    inside = Expressions(out, Environment())
    inside.environment.variables[GIVEN] = extent
    return inside.value(source.value(GIVEN))


def dim_parameters(func: PrimFunc, out: FunctionText) -> list[Value]:
    """Declares the dims of a function as parameters with the ranges that the caller has checked."""
    found = []
    for number, dim in enumerate(func.dims):
        least = max(dim.dim.low, 0) if dim.dim is not None else 0
        most = dim.dim.high if dim.dim is not None else None
        # LLVM's range has an exclusive end, which wraps around at the largest i64.
        end = most + 1 if most is not None and most < _LAST else -_LAST - 1
        found.append(out.parameter(i64, f"%d{number}", f" range(i64 {least}, {end})"))
    return found
