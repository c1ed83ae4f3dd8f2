"""Cuts a large module into parts that LLVM compiles side by side, each a module of its own.

What the parts are follows from the functions alone, never from the machine: the same function gives the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tirlite.codegen.llvm.text import Definition, ModuleText

# A part costs some milliseconds; a function that is small is copied to where it is called.
_PART, _LARGE = 400, 200  # lines
_MOST = 16


def parts(module: ModuleText, name: str) -> tuple[str, ...]:
    """The texts of modules that together are the whole one: each large function is in one, small ones where needed."""
    shown = [each for each in module.functions if not each.linkage]
    inside = {each.name: each for each in module.functions if each.linkage}
    large = {each.name: each for each in inside.values() if each.lines >= _LARGE}
    count = min(_MOST, len(large), sum(each.lines for each in large.values()) // _PART)
    if not count or module.lines is not None:
        return (module.text(name),)
    bins: list[list[Definition]] = [[] for _ in range(count)]
    lines = [0] * count
    for function in sorted(large.values(), key=lambda each: -each.lines):
        least = lines.index(min(lines))
        bins[least].append(function)
        lines[least] += function.lines
    return tuple(_part(module, name, held, large, inside) for held in (shown, *bins))


def _part(
    module: ModuleText,
    name: str,
    held: Sequence[Definition],
    large: Mapping[str, Definition],
    inside: Mapping[str, Definition],
) -> str:
    """A module of these functions, which other parts see, and of all small ones that they and those call."""
    copied = _reached(held, {name: each for name, each in inside.items() if name not in large})
    seen = [each._replace(linkage=each.linkage and "hidden ") for each in held]
    called = dict.fromkeys(call for each in (*held, *copied) for call in each.calls)
    names = {each.name for each in held}
    declared = [f"declare hidden {large[call].head}" for call in called if call in large and call not in names]
    return module.with_functions(name, (*seen, *copied), declared)


def _reached(held: Iterable[Definition], small: Mapping[str, Definition]) -> tuple[Definition, ...]:
    """The small functions that these call, and that one another call."""
    found: dict[str, Definition] = {}
    pending = list(held)
    while pending:
        for call in pending.pop().calls:
            if call in small and call not in found:
                found[call] = small[call]
                pending.append(small[call])
    return tuple(found.values())
