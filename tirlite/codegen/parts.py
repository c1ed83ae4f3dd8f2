"""Cuts a large module into parts that LLVM compiles side by side, each a module of its own.

What the parts are follows from the functions alone, never from the machine: the same function gives the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tirlite.codegen.llvm.text import Definition, ModuleText
from tirlite.record import record

# A part costs the reading of what functions share; a callee that is small may be copied into its callers.
_PART, _LARGE = 3000, 200  # lines
_MOST = 16


@record
class Group:
    """The functions that a callee was written as, the last of which others call, and the names of those it calls."""

    name: str
    functions: tuple[Definition, ...]
    calls: tuple[str, ...]
    lines: int


def group_of(name: str, functions: Iterable[Definition], calls: Iterable[str]) -> Group:
    """The group of a callee."""
    written = tuple(functions)
    return Group(name, written, tuple(calls), sum(each.lines for each in written))


def parts(module: ModuleText, name: str, groups: Sequence[Group]) -> tuple[str, ...]:
    """The texts of modules that together are the whole one: each large callee is in one, small ones where needed."""
    large = {group.name: group for group in groups if group.lines >= _LARGE}
    count = min(_MOST, sum(group.lines for group in large.values()) // _PART)
    if count < 2 or module.lines is not None:
        return (module.text(name),)
    small = {group.name: group for group in groups if group.name not in large}
    bins: list[list[Group]] = [[] for _ in range(count)]
    for group in sorted(large.values(), key=lambda each: -each.lines):
        min(bins, key=lambda held: sum(each.lines for each in held)).append(group)
    apart = {id(function) for group in large.values() for function in group.functions}
    kernel = [function for function in module.functions if id(function) not in apart]
    return (
        module.with_functions(name, kernel, map(_declaration, large.values())),
        *(_part(module, name, held, large, small) for held in bins),
    )


def _part(
    module: ModuleText, name: str, held: Sequence[Group], large: Mapping[str, Group], small: Mapping[str, Group]
) -> str:
    copied = _reached(held, small)
    functions = [function for group in held for function in (*group.functions[:-1], _shown(group.functions[-1]))]
    functions += [function for group in copied for function in group.functions]
    called = dict.fromkeys(call for group in (*held, *copied) for call in group.calls)
    names = {group.name for group in held}
    declared = [_declaration(large[call]) for call in called if call in large and call not in names]
    return module.with_functions(name, functions, declared)


def _reached(held: Sequence[Group], small: Mapping[str, Group]) -> tuple[Group, ...]:
    """The small callees of these groups, and of one another."""
    found: dict[str, Group] = {}
    pending = list(held)
    while pending:
        for call in pending.pop().calls:
            if call in small and call not in found:
                found[call] = small[call]
                pending.append(small[call])
    return tuple(found.values())


def _shown(entry: Definition) -> Definition:
    """A function that other parts see."""
    return entry._replace(linkage="hidden ")


def _declaration(group: Group) -> str:
    return f"declare hidden {group.functions[-1].head}"
