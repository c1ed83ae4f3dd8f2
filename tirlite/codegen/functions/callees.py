"""Emits the callees of a function before the function itself is known, so that LLVM may begin with them.

A network is made of dozens of functions, each of which is lowered by itself; the plan of its storage comes last. A
function is therefore written so that nearly all callers can do with it: its arguments are aligned and lie apart, but
for a result that may well come to lie in the place of an operand, as a sum that goes element by element. A caller that
has less to promise has it written again, and functions without callers are left out. Their order in a module follows
from the functions alone, whenever they are written.
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
from tirlite.codegen.functions.parts import Part, Unit, unit
from tirlite.codegen.functions.pieces import Weights
from tirlite.codegen.llvm.text import Definition, Extent, ModuleText
from tirlite.codegen.loops.aliases import Aliases
from tirlite.codegen.memory import Environment
from tirlite.codegen.refused import NotCompiled, Refused
from tirlite.codegen.statements import Statements
from tirlite.codegen.storage import Storage, assign_homes, share_of_leaf
from tirlite.ir import Buffer, Expr, Function, Load, PrimFunc, Store, Var, View, callees, calls_in, walk
from tirlite.ir.walk import nodes_of
from tirlite.target.processor import processor_called

_Place: TypeAlias = tuple[tuple[object, ...], tuple[object, ...]]  # the form of a buffer's shape, and that of indices
# LLVM is at this many functions for long enough.
_MANY = 4


def offered_ahead(func: PrimFunc) -> tuple[PrimFunc, ...]:
    """The functions that `func` calls, if they are many and call no others; else none."""
    called = callees(func)
    return called if len(called) >= _MANY and not any(calls_in(each.body) for each in called) else ()


class Callees:
    """The functions of a module so far, each a unit of its own if it is large enough, and the time spent on them.

    `begin` receives the parts of units as they are written. `offered` are the functions to be written, in order.
    """

    def __init__(
        self, module: ModuleText, name: str, workers: int, begin: Callable[[Part], None] | None = None
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
    def of(cls, name: str, workers: int, target: str, begin: Callable[[Part], None]) -> Callees:
        """The callees of the function of this name, so far none, for a target by its name."""
        return cls(ModuleText(processor_called(target)), legal(name), workers, begin)

    def statements(self, func: PrimFunc, name: str, storage: Storage) -> Statements:
        """The writer of the statements of a function."""
        out, facts = KernelFunction(self.module, storage.line), self.versions.facts_of(func)
        aliases = Aliases(self.versions.ranges_in(func, storage.of("workspace")), self.module)
        values = Expressions(out, Environment(), facts=facts)
        return Statements(out, values, name, storage, Weights(func.body), aliases, Calls(func, self.versions))

    def write(self, func: PrimFunc) -> None:
        """Writes a function for arguments as most callers have them. Raises KernelError as `lower` does."""
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
        """The version that serves most callers."""
        is_buffer = tuple(isinstance(param, Buffer) for param in func.params)
        in_place = may_go_in_place(func, self.versions.changed(func))
        apart = tuple(isinstance(param, Buffer) and param not in in_place for param in func.params)
        version = self.versions.general[func] = Version(func, apart, is_buffer)
        self.versions.name(version)
        return version

    def units(self) -> tuple[Unit, ...]:
        """The units that are called, once all is written; functions without callers are removed from the module."""
        called = self.versions.called
        unused = {each for version, own in self._functions.items() if version not in called for each in own}
        # What is no unit may be copied into its callers, unless these are many.
        marked = {
            own[-1]: own[-1].with_attributes(self.versions.attributes(version))
            for version, own in self._functions.items()
            if version not in self._units
        }
        self.module.functions = [marked.get(each, each) for each in self.module.functions if each not in unused]
        return tuple(unit for version, unit in self._units.items() if version in called)


def may_go_in_place(func: PrimFunc, results: Collection[Buffer]) -> frozenset[Buffer]:
    """The results that may overwrite operands of their type, read only at the element that is stored, and these."""
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
    """A key of expressions, equal for equal ones."""
    nodes = walk(*exprs)
    return tuple(each if isinstance(each, Var) else (type(each), getattr(each, "value", None)) for each in nodes)


def write_versions(
    versions: Versions, module: ModuleText, statements_of: Callable[[PrimFunc, str], Statements]
) -> None:
    """Writes the functions that are called so far, and their callees."""
    while versions.pending:
        version = versions.pending.popleft()
        module.span = version.func.span
        statements = statements_of(version.func, versions.name(version))
        statements.receive(version)
        statements.write(version.func.body)
        statements.out.define(statements.name, versions.attributes(version), result="fastcc i64")


def legal(name: str) -> str:
    """The name of a function in LLVM: `name` in the letters that LLVM allows."""
    return "tirlite_" + (name if name.isascii() and name.isidentifier() else re.sub(r"\W", "_", name, flags=re.ASCII))
