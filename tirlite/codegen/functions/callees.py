"""Emits the callees of a function before the function itself is known, so that LLVM can start compiling them.

A network consists of dozens of functions, each lowered by itself; its storage plan comes last. Each function is
therefore emitted under assumptions that nearly all callers meet: its arguments are aligned and disjoint, except for a
result that may overwrite an operand in place, as in an elementwise sum. A caller that cannot promise this gets another
version, and functions without callers are removed. The order of functions in the module does not depend on when they
are emitted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from time import perf_counter
from typing import TypeAlias

from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.functions.kernel_calls import Calls, Version, Versions
from tirlite.codegen.functions.parts import ModulePart, Unit, unit
from tirlite.codegen.functions.pieces import StatementCosts
from tirlite.codegen.llvm.text import Definition, Extent, ModuleText
from tirlite.codegen.loops.aliases import Aliases
from tirlite.codegen.memory import Environment
from tirlite.codegen.refused import NotCompiled, Refused
from tirlite.codegen.statements import Statements
from tirlite.codegen.storage import Storage, assign_homes, share_of_leaf
from tirlite.ir import Buffer, Expr, Function, Load, PrimFunc, Store, Var, View, callees, calls_in, walk
from tirlite.ir.walk import nodes_of
from tirlite.target.processor import processor_called

_Place: TypeAlias = tuple[tuple[object, ...], tuple[object, ...]]  # keys of a buffer's shape and of an access's indices
# Fewer functions keep LLVM busy for too short a time to be worth starting early.
_MANY = 4


def offered_ahead(func: PrimFunc) -> tuple[PrimFunc, ...]:
    """The callees of `func` if they are many and call no functions themselves; else none."""
    called = callees(func)
    return called if len(called) >= _MANY and not any(calls_in(each.body) for each in called) else ()


class Callees:
    """The functions emitted so far into a module; each large one is a unit of its own.
    `begin`: called with the part of each unit as soon as it is emitted. `offered`: the functions given to `write`, in
    order. `seconds`: the time spent.
    """

    def __init__(
        self, module: ModuleText, name: str, workers: int, begin: Callable[[ModulePart], None] | None = None
    ) -> None:
        self.module = module
        self._begin = begin
        self.versions = Versions(name)
        self.storages: dict[Function, Storage] = {}
        self.seconds = 0.0
        self._workers = workers
        self.offered: list[PrimFunc] = []
        self._functions: dict[Version, tuple[Definition, ...]] = {}
        self._units: dict[Version, Unit] = {}

    @classmethod
    def of(cls, name: str, workers: int, target: str, begin: Callable[[ModulePart], None]) -> Callees:
        """An empty set of callees for the function of this name, for the processor named `target`."""
        return cls(ModuleText(processor_called(target)), legal(name), workers, begin)

    def statements(self, func: PrimFunc, name: str, storage: Storage) -> Statements:
        """The statement emitter for a function."""
        out, facts = KernelFunction(self.module, storage.line), self.versions.facts_of(func)
        aliases = Aliases(self.versions.ranges_in(func, storage.of("workspace")), self.module)
        values = Expressions(out, Environment(), facts=facts)
        return Statements(out, values, name, storage, StatementCosts(func.body), aliases, Calls(func, self.versions))

    def write(self, func: PrimFunc) -> None:
        """Emits a function in its general version. Raises KernelError as `lower` does."""
        self.offered.append(func)
        start, module = perf_counter(), self.module
        before, module.extent = module.extent, Extent()
        held, module.keeps_scalars = module.keeps_scalars, False
        count, version = len(module.functions), self._general(func)
        self.storages[func] = assign_homes(func, self._workers, share_of_leaf()).on_heap()
        try:
            write_versions(self.versions, module, lambda each, name: self.statements(each, name, self.storages[each]))
        except Refused as refused:
            raise NotCompiled(refused.what, refused.instead, span=module.span).error() from None
        self._functions[version] = written = tuple(module.functions[count:])
        if (found := unit(module, self.versions.prefix, written)) is not None:
            self._units[version] = found
            if self._begin is not None:
                self._begin(found.part)
        module.extent, module.keeps_scalars = module.extent.joined(before), held or module.keeps_scalars
        self.seconds += perf_counter() - start

    def _general(self, func: PrimFunc) -> Version:
        """The version whose promises most callers can make."""
        is_buffer = tuple(isinstance(param, Buffer) for param in func.params)
        in_place = may_go_in_place(func, self.versions.changed(func))
        apart = tuple(isinstance(param, Buffer) and param not in in_place for param in func.params)
        version = self.versions.general[func] = Version(func, apart, is_buffer)
        self.versions.name(version)
        return version

    def units(self) -> tuple[Unit, ...]:
        """The units that are called, once all is emitted; removes functions without callers from the module."""
        called = self.versions.called
        unused = {each for version, own in self._functions.items() if version not in called for each in own}
        # A function that is not a unit may be inlined, unless it has many callers.
        marked = {
            own[-1]: own[-1].with_attributes(self.versions.attributes(version))
            for version, own in self._functions.items()
            if version not in self._units
        }
        self.module.functions = [marked.get(each, each) for each in self.module.functions if each not in unused]
        return tuple(unit for version, unit in self._units.items() if version in called)


def may_go_in_place(func: PrimFunc, results: Collection[Buffer]) -> frozenset[Buffer]:
    """Results and operands of the same type that may share storage.

    Each operand is read only at elements that the function stores to the result.
    """
    operands = [param for param in func.arrays if param not in results]
    pairs = [(x, y) for x in operands for y in results if _type(x) == _type(y)]
    if not pairs:
        return frozenset()
    roots: dict[Buffer, Buffer] = {each: each for pair in pairs for each in pair}
    loaded: defaultdict[Buffer, set[_Place]] = defaultdict(set)
    stored: defaultdict[Buffer, set[_Place]] = defaultdict(set)
    for node in nodes_of((func.body,), View, Store, Load):
        if isinstance(node, View) and node.source in roots:
            roots[node.buffer] = roots[node.source]
        elif isinstance(node, Store | Load) and node.buffer in roots:
            touched = stored if isinstance(node, Store) else loaded
            touched[roots[node.buffer]].add((_form(node.buffer.shape), _form(node.indices)))
    return frozenset(each for x, y in pairs if loaded[x] and loaded[x] <= stored[y] for each in (x, y))


def _type(buffer: Buffer) -> tuple[object, ...]:
    return buffer.dtype, *_form(buffer.shape)


def _form(exprs: Iterable[Expr]) -> tuple[object, ...]:
    """A key of expressions; equal expressions have equal keys."""
    nodes = walk(*exprs)
    return tuple(each if isinstance(each, Var) else (type(each), getattr(each, "value", None)) for each in nodes)


def write_versions(
    versions: Versions, module: ModuleText, statements_of: Callable[[PrimFunc, str], Statements]
) -> None:
    """Emits all versions that are pending, and those that they call in turn."""
    while versions.pending:
        version = versions.pending.popleft()
        module.span = version.func.span
        statements = statements_of(version.func, versions.name(version))
        statements.receive(version)
        statements.write(version.func.body)
        statements.out.define(statements.name, versions.attributes(version), result="fastcc i64")


def legal(name: str) -> str:
    """A legal LLVM symbol made from `name`."""
    return "tirlite_" + (name if name.isascii() and name.isidentifier() else re.sub(r"\W", "_", name, flags=re.ASCII))
