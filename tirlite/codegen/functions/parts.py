"""Splits a large module into parts that LLVM compiles side by side, each a module of its own.

The split depends on the functions alone, not on the machine, so the same function gives the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tirlite.codegen.llvm.text import Definition, Extent, ModuleText
from tirlite.record import record, replace

# A part costs some milliseconds, so it must be long enough; small functions are duplicated in all parts that call them.
_PART, _LARGE = 400, 200  # lines
_MOST = 16


@record
class ModulePart:
    """A module that LLVM compiles by itself, and the facts that choose the optimisation effort.

    `is_unit`: the part belongs to a module with units, as one of them or as the rest.
    """

    text: str
    extent: Extent = Extent()
    joins_scalars: bool = True
    is_unit: bool = False

    @classmethod
    def of(cls, text: str, extent: Extent, *, keeps_scalars: bool, is_unit: bool = False) -> ModulePart:
        """A part. LLVM's SLP vectorizer, a tenth of its time, runs unless most of the code is vectorized already."""
        return cls(text, extent, not (keeps_scalars or extent.by_vectors), is_unit)

    @property
    def works_over_addresses(self) -> bool:
        """Whether LLVM runs loop strength reduction.
        Most loops over vectors run as fast without it. Loops over the taps of a window do not: their loaded values are
        spilled.
        """
        return bool(self.extent.by_elements or self.extent.over_windows)


@record
class Unit:
    """A called function, with the functions outlined from it, as a part of its own."""

    functions: tuple[Definition, ...]  # the called function last
    part: ModulePart


def unit(module: ModuleText, name: str, functions: Sequence[Definition]) -> Unit | None:
    """The functions emitted last as a unit, if they are large enough."""
    if sum(each.lines for each in functions) < _LARGE:
        return None
    *inner, called = functions
    seen = (*inner, replace(called, linkage="hidden "))
    text = module.with_functions(name, seen)
    return Unit(tuple(functions), ModulePart.of(text, module.extent, keeps_scalars=module.keeps_scalars, is_unit=True))


def parts(module: ModuleText, name: str, units: Sequence[Unit] = ()) -> tuple[ModulePart, ...]:
    """Splits the module: each large function is in one part, small ones wherever they are called; units last."""
    apart = {function.name for each in units for function in each.functions}

    def part(text: str, functions: Iterable[Definition]) -> ModulePart:
        kinds = [(each.by_elements, each.over_windows) for each in functions]
        by_elements, over_windows = (int(any(each)) for each in zip(*kinds, strict=True)) if kinds else (0, 0)
        extent = replace(module.extent, by_elements=by_elements, over_windows=over_windows)
        return ModulePart.of(text, extent, keeps_scalars=module.keeps_scalars, is_unit=bool(units))

    shown = [each for each in module.functions if not each.linkage]
    inside = {each.name: each for each in module.functions if each.linkage}
    large = {each.name: each for each in inside.values() if each.lines >= _LARGE and each.name not in apart}
    count = min(_MOST, len(large), sum(each.lines for each in large.values()) // _PART)
    if module.lines is not None or not (count or units):
        return (part(module.text(name), module.functions),)
    bins: list[list[Definition]] = [[] for _ in range(count)]
    lines = [0] * count
    for function in sorted(large.values(), key=lambda each: -each.lines) if count else ():
        least = lines.index(min(lines))
        bins[least].append(function)
        lines[least] += function.lines
    elsewhere = {each.functions[-1].name: each.functions[-1] for each in units} | (large if count else {})
    cut = (part(*_part(module, name, held, elsewhere, inside)) for held in (shown, *bins))
    return (*cut, *(each.part for each in units))


def _part(
    module: ModuleText,
    name: str,
    held: Sequence[Definition],
    large: Mapping[str, Definition],
    inside: Mapping[str, Definition],
) -> tuple[str, Sequence[Definition]]:
    """The text and the functions of a part: `held`, visible to others, and copies of the small functions reached."""
    copied = _reached(held, {name: each for name, each in inside.items() if name not in large})
    seen = [replace(each, linkage=each.linkage and "hidden ") for each in held]
    called = dict.fromkeys(call for each in (*held, *copied) for call in each.calls)
    names = {each.name for each in held}
    declared = [f"declare hidden {large[call].head}" for call in called if call in large and call not in names]
    return module.with_functions(name, (*seen, *copied), declared), (*held, *copied)


def _reached(held: Iterable[Definition], small: Mapping[str, Definition]) -> tuple[Definition, ...]:
    """The small functions that `held` calls, directly or indirectly."""
    found: dict[str, Definition] = {}
    pending = list(held)
    while pending:
        for call in pending.pop().calls:
            if call in small and call not in found:
                found[call] = small[call]
                pending.append(small[call])
    return tuple(found.values())
