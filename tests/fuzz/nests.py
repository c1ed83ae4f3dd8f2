"""A seed in, the text of a random kernel with nests of loops out: sums, products of matrices, convolutions, rows.

Each loop variable stays below a dim, or below 3; each axis is a dim's extent, or longer by 3: so indices are in bounds.
Floats are whole numbers that are added exactly, however they are grouped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from random import Random

FLOATS = ("f32", "f32", "f32", "f64")
INTEGERS = ("i32", "i64", "i8", "u8", "i16", "u32")
OPERATIONS = ("+", "+", "+", "+", "-", "*", "min", "max")
_BITS = ("&", "|", "^")
# What an index may be ahead of its variable, where an axis is longer than the dim.
SPARE = 3


@dataclass(frozen=True)
class Array:
    """A parameter: its axes are the dims of these names, a letter each, longer by `SPARE` where it is `padded`."""

    name: str
    dtype: str
    axes: str
    padded: bool

    @property
    def annotation(self) -> str:
        extents = ", ".join(f"{axis} + {SPARE}" if self.padded else axis for axis in self.axes)
        return f"{self.name}: tl.{self.dtype}[{extents}]"


@dataclass
class Loops:
    """The variables around a statement: by name the dim that each stays below, "" for those below 3."""

    indent: int = 1
    bounds: dict[str, str] = field(default_factory=dict)

    def inside(self, name: str, dim: str) -> Loops:
        return Loops(self.indent + 1, {**self.bounds, name: dim})


class Nests:
    """Writes one kernel."""

    granted: tuple[str, ...] = ("", "", '"contract"', '"contract", "approximate"')

    def __init__(self, seed: int) -> None:
        self.random = Random(f"nests {seed}")
        self.dims = {name: self.random.choice(("", "", "min=0", "max=200")) for name in "nmk"}
        self.is_float = self.random.random() < 0.6
        self.dtype = self.random.choice(FLOATS if self.is_float else INTEGERS)
        self.has_functions = self.is_float and self.random.random() < 0.2
        # With some luck two inputs and an output are the factors of a product and what comes out.
        x0, x1, y0 = self.random.choice((("nk", "km", "nm"), ("mk", "kn", "mn"), ("", "", "")))
        self.inputs = [self._array(f"x{number}", axes=axes) for number, axes in enumerate((x0, x1, ""))]
        self.outputs = [self._array(f"y{number}", self.dtype, axes) for number, axes in enumerate((y0, ""))]
        self.lines: list[str] = []
        self.names = 0
        self.has_neighbours = False  # whether indices are those of neighbours in memory alone
        self.nested: list[tuple[str, ...]] = []  # for each statement inside of loops the dims of these

    def _array(self, name: str, dtype: str | None = None, axes: str = "") -> Array:
        axes = axes or "".join(self.random.choices("nmk", k=self.random.choice((1, 2, 2, 2, 3))))
        kind = dtype or self.random.choice((self.dtype, self.dtype, "u8", "i32" if self.is_float else "i16"))
        return Array(name, kind, axes, self.random.random() < 0.6)

    def text(self) -> str:
        """The kernel, and with some luck one that calls it."""
        for _ in range(self.random.randint(1, 3)):
            loops = Loops()
            granted = self.random.choice(self.granted)
            if granted:
                self.add(loops, f"with tl.allow({granted}):")
                loops = Loops(2)
            self.random.choice(self.kinds())(loops)
        dims = [f'{name} = tl.dim("{name}"{facts and ", "}{facts})' for name, facts in self.dims.items()]
        sizes = [f"d{name}: tl.u8[{name}]" for name in self.dims]
        params = ", ".join([*sizes, *(each.annotation for each in (*self.inputs, *self.outputs)), "s: tl.i64"])
        text = [*dims, "", "@tl.kernel", f"def nests({params}):", *self.lines]
        if self.random.random() < 0.15:
            arrays = (each.name for each in (*self.inputs, *self.outputs))
            names = ", ".join([*(f"d{name}" for name in self.dims), *arrays, "s"])
            text += ["", "@tl.kernel", f"def calls({params}):", f"    tl.call(nests, {names})"]
        return "\n".join(text) + "\n"

    def kinds(self) -> tuple[Callable[[Loops], None], ...]:
        """What writes the statements of a kernel."""
        kinds = (self.nest, self.nest, self.product, self.whole, self.vectors, self.chain, self.chosen)
        return (*kinds, *[self.exponents] * 4) if self.has_functions else kinds

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def iterations(self, sizes: Mapping[str, int]) -> int:
        """About how many iterations all loops have together."""
        return sum(prod(sizes.get(dim, SPARE) for dim in dims) for dims in self.nested)

    def add(self, loops: Loops, line: str) -> None:
        self.nested.append((*loops.bounds.values(),))
        self.lines.append("    " * loops.indent + line)

    def nest(self, loops: Loops) -> None:
        """Loops over the axes of an output, in some order, around what is computed of an element."""
        target = self.random.choice(self.outputs)
        index: list[str] = []
        for axis, dim in enumerate(target.axes):
            kind = "tl.parallel" if not axis and self.random.random() < 0.2 else "range"
            loops, var = self.loop(loops, dim, kind)
            index.append(var)
        self.element(loops, f"{target.name}[{', '.join(index)}]")

    def chain(self, loops: Loops) -> None:
        """Nests over the axes of an output that fill temporaries, each of what the one before has filled."""
        target = self.random.choice(self.outputs)
        shape = ", ".join(target.axes)
        made: list[str] = []
        for _ in range(self.random.choice((1, 1, 2, 3))):
            name = self.name("t")
            self.add(loops, f"{name} = tl.alloc(tl.{self.dtype}[{shape}])")
            self.stage(loops, target.axes, name, made)
            made.append(name)
        self.stage(loops, target.axes, target.name, made)

    def stage(self, loops: Loops, axes: str, name: str, made: list[str]) -> None:
        """A nest that sets each element of an array, of the last of some temporaries, or of any."""
        index: list[str] = []
        for dim in axes:
            var = self.name("i")
            self.add(loops, f"for {var} in {self.random.choice(('range', 'range', 'range', 'tl.parallel'))}({dim}):")
            loops = loops.inside(var, dim)
            index.append(var)
        read: list[str] = []
        for source in made[-1:] + self.random.choices(made, k=self.random.choice((0, 1, 1, 2))) if made else []:
            near = [
                self.random.choice((v, v, v, f"max({v} - 1, 0)", f"min({v} + 2, {d} - 1)"))
                for v, d in zip(index, axes, strict=True)
            ]
            read.append(f"{source}[{', '.join(near)}]")
        value = f" {self.random.choice('+-')} ".join([self.value(loops, 1), *read])
        self.add(loops, f"{name}[{', '.join(index)}] = {value}")

    def chosen(self, loops: Loops) -> None:
        """Loops over the axes of an output, around branches that differ between neighbours in memory."""
        target = self.random.choice(self.outputs)
        index: list[str] = []
        for dim in target.axes:
            self.add(loops, f"for {(var := self.name('i'))} in range({self.random.choice((dim, dim, f'1, {dim}'))}):")
            loops = loops.inside(var, dim)
            index.append(var)
        element = f"{target.name}[{', '.join(index)}]"
        self.has_neighbours = self.random.random() < 0.8
        draw = self.random.random()
        if draw < 0.25:
            self.until(loops, element)
        elif draw < 0.6:
            total = self.name("t")
            self.add(loops, f"{total} = {self.value(loops, 1)}")
            self.branches(loops, total, self.random.choice((1, 1, 2)))
            element, total = total, element
            self.add(loops, f"{total} = {element}")
        else:
            self.branches(loops, element, self.random.choice((1, 1, 2)))
        self.has_neighbours = False

    def until(self, loops: Loops, element: str) -> None:
        """A loop that runs a few times, not as often for each element."""
        total, count = self.name("t"), self.name("c")
        self.add(loops, f"{total} = {self.value(loops, 1)}")
        self.add(loops, f"{count} = tl.i64(0)")
        ends = self.random.choice(("", f" and {self.condition(loops)}", f" and {total} < {self.leaf(loops)}"))
        self.add(loops, f"while {count} < tl.i64({self.leaf(loops)}) % 5{ends}:")
        inner = Loops(loops.indent + 1, loops.bounds)
        self.add(inner, f"{count} += 1")
        self.add(inner, f"{total} += {self.value(loops, 1)}")
        if self.random.random() < 0.4:
            self.branches(inner, total, 1)
        self.add(loops, f"{element} = {total}")

    def loop(self, loops: Loops, dim: str, kind: str) -> tuple[Loops, str]:
        """A loop below a dim, and its variable."""
        var = self.name("i")
        earlier = [name for name, bound in loops.bounds.items() if bound == dim]
        ranges = [dim] * 6 + [
            f"{dim} - 1",
            f"1, {dim}",
            f"2, {dim} - 1",
            f"{dim} // 2",
            f"0, {dim}, 2",
            f"min({dim}, 40)",
        ]
        if self.dims[dim] != "min=0":
            ranges.append(f"{dim} - 1, -1, -1")
        ranges += [f"min({name}, {dim})" for name in [*loops.bounds][-1:]]
        if earlier:
            ranges += [earlier[-1], f"{earlier[-1]}, {dim}", f"{earlier[-1]} + 1"]
        self.add(loops, f"for {var} in {kind}({self.random.choice(ranges)}):")
        return loops.inside(var, dim), var

    def element(self, loops: Loops, element: str) -> None:
        """What becomes of one element: a value, or what loops inside combine into it, or into a scalar first."""
        draw = self.random.random()
        if draw < 0.1:
            self.add(loops, f"{element} = {self.value(loops, 3)}")
            return
        if draw < 0.25:
            self.branches(loops, element, self.random.choice((1, 1, 2)))
            return
        if self.random.random() < 0.15:
            self.parts(loops, element)
            return
        total = element
        if draw < 0.6:
            total = self.name("t")
            self.add(loops, f"{total} = tl.{self.dtype}({self.random.choice((0, 1, 3))})")
        elif draw < 0.9:
            self.add(loops, f"{element} = {self.random.choice(('0', '1', self.value(loops, 1)))}")
        for _ in range(self.random.choice((1, 1, 2))):
            self.reduction(loops, total, self.operation())
        if total != element:
            self.add(loops, f"{element} {self.random.choice(('=', '=', '+='))} {total}")

    def branches(self, loops: Loops, element: str, depth: int) -> None:
        """Some of the iterations set or update an element, and some of these read what others may not."""
        guard, value = self.guarded(loops)
        self.add(loops, f"if {guard}:")
        inner = Loops(loops.indent + 1, loops.bounds)
        if self.random.random() < 0.4:
            var = self.name("v")
            self.add(inner, f"{var} = {value}")
            value = var
        self.add(inner, f"{element} {self.random.choice(('=', '=', '+='))} {value}")
        if depth > 1:
            self.branches(inner, element, depth - 1)
        if self.random.random() < 0.3:
            self.reduction(inner, element, self.operation())
        if self.random.random() < 0.5:
            self.add(loops, "else:")
            self.add(inner, f"{element} = {self.value(loops, 2)}")

    def guarded(self, loops: Loops) -> tuple[str, str]:
        """A condition, and a value that there is only where it holds."""
        named = [array for array in self.inputs if all(self.indices(loops, axis, array) for axis in array.axes)]
        draw = self.random.random()
        if named and draw < 0.5:
            array = self.random.choice(named)
            index = [self.random.choice(self.indices(loops, axis, array)) for axis in array.axes]
            index[-1] = f"{index[-1]} - {(back := self.random.choice((1, 2)))}"
            read = f"tl.{self.dtype}({array.name}[{', '.join(index)}])"
            test = f"{index[-1].rpartition(' - ')[0]} >= {back}"
            return (test, read) if self.random.random() < 0.6 else (f"{test} and {read} > 0", read)
        if not self.is_float and draw < 0.8:
            divisor = self.leaf(loops)
            return f"{divisor} > 0", f"{self.leaf(loops)} {self.random.choice(('//', '%'))} {divisor}"
        return self.condition(loops), self.value(loops, 2)

    def parts(self, loops: Loops, element: str) -> None:
        """Sums side by side in a temporary of the iteration."""
        name = self.name("t")
        self.add(loops, f"{name} = tl.alloc(tl.{self.dtype}[{SPARE}])")
        for place in range(SPARE):
            self.add(loops, f"{name}[{place}] = {self.value(loops, 1)}")
        inner, var = self.loop(loops, self.random.choice("nmk"), self.random.choice(("tl.reduce", "range")))
        if self.random.random() < 0.5:
            self.update(inner, f"{name}[{self.random.randrange(SPARE)}]", "+")
            self.update(inner, f"{name}[{self.random.randrange(SPARE)}]", "+")
        else:
            self.update(inner, f"{name}[{var} % {SPARE}]", "+")
        self.add(loops, f"{element} = {name}[0] + {name}[1] - {name}[2]")

    def product(self, loops: Loops) -> None:
        """Of two inputs over an output that have axes for it, else nothing."""
        target = self.outputs[0]
        index: list[str] = []
        for dim in target.axes:
            stop = self.random.choice((dim, dim, f"min(9 * {index[0]}, {dim})" if index else dim))
            self.add(loops, f"for {(var := self.name('i'))} in range({stop}):")
            loops = loops.inside(var, dim)
            index.append(var)
        element = f"{target.name}[{', '.join(index)}]"
        if self.random.random() < 0.7:
            self.add(loops, f"{element} = {self.random.choice((0, 2))}")
        for dim in self.random.choice(("k", "k", "kn", "m")):
            self.add(loops, f"for {(var := self.name('p'))} in {self.random.choice(('tl.reduce', 'range'))}({dim}):")
            loops = loops.inside(var, dim)
        sign = self.random.choice("+++-")
        self.add(loops, f"{element} {sign}= {self.leaf(loops)} * {self.leaf(loops)}")

    def whole(self, loops: Loops) -> None:
        """What loops over whole arrays combine: one element, elements of an array that an input tells, or a place."""
        target = self.random.choice(self.outputs)
        last = ", ".join(f"{axis} - 1" for axis in target.axes)
        self.add(loops, f"if {' and '.join(f'{axis} > 0' for axis in target.axes)}:")
        loops = Loops(loops.indent + 1)
        draw = self.random.random()
        if draw < 0.3:
            self.reduction(loops, f"{target.name}[{last}]", self.operation())
            return
        if draw < 0.5:
            self.place(loops, f"{target.name}[{last}]")
            return
        name = self.name("c")
        shape = self.random.choice(((SPARE,), (2, SPARE)))
        self.add(loops, f"{name} = tl.alloc(tl.{self.dtype}[{', '.join(map(str, shape))}])")
        each = [self.name("e") for _ in shape]
        inner = loops
        for var, extent in zip(each, shape, strict=True):
            self.add(inner, f"for {var} in range({extent}):")
            inner = inner.inside(var, "")
        self.add(inner, f"{name}[{', '.join(each)}] = {self.random.choice((0, 1))}")
        inner, var = self.loop(loops, self.random.choice("nmk"), "tl.reduce")
        told = f"tl.i64({self.leaf(inner)}) % {SPARE}"
        self.update(inner, f"{name}[{told if len(shape) == 1 else f'{var} % 2, {told}'}]", self.operation())
        self.add(loops, f"{target.name}[{last}] = {name}[{', '.join(str(extent - 1) for extent in shape)}]")

    def vectors(self, loops: Loops) -> None:
        """Loops over the axes of an output but the last, around a vector of the first elements along that."""
        target = next((each for each in self.outputs if each.padded), None)
        if target is None:
            self.nest(loops)
            return
        index: list[str] = []
        for dim in target.axes[:-1]:
            loops, var = self.loop(loops, dim, "range")
            index.append(var)
        lane = self.name("u")
        self.add(loops, f"for {lane} in tl.vectorized({SPARE}):")
        loops = loops.inside(lane, "")
        value = self.value(loops, 2)
        if self.random.random() < 0.3:
            self.add(loops, f"{(var := self.name('v'))} = {value}")
            value = var
        self.add(loops, f"{target.name}[{', '.join([*index, lane])}] {self.random.choice(('=', '+='))} {value}")

    def exponents(self, loops: Loops) -> None:
        """Loops over the axes of an output but the last, around sums of multiples of exp(value - maximum)."""
        target = self.random.choice(self.outputs)
        self.add(loops, 'with tl.allow("rescale"):')
        loops = Loops(loops.indent + 1)
        for dim in target.axes[:-1]:
            loops, _ = self.loop(loops, dim, "range")
        row = [*loops.bounds]
        top, dim, name = self.name("t"), self.random.choice("nmk"), self.name("i")
        inside = loops.inside(name, dim)
        value = self.random.choice((self.leaf(inside), f"{self.leaf(inside)} * {self.leaf(inside)}"))
        begin = self.random.choice(("'-inf'", "0.5", "-1e30"))
        self.add(loops, f"{top} = tl.{self.dtype}({begin})")
        self.add(loops, f"for {name} in tl.reduce({dim}):")
        self.add(inside, f"{top} = max({self.random.choice((f'{top}, {value}', f'{value}, {top}'))})")
        totals = [self.name("t") for _ in range(self.random.choice((1, 1, 2, 3)))]
        for total in totals:
            term = self.random.choice(("{}", "-{}", "{} * tl.{}(2)", "{} * {}"))
            term = term.format(f"tl.exp({value} - {top})", self.leaf(inside) if term == "{} * {}" else self.dtype)
            # Half of all loops have the name of the first one.
            other = self.random.choice((name, self.name("i")))
            self.add(loops, f"{total} = tl.{self.dtype}(0)")
            self.add(loops, f"for {other} in tl.reduce({dim}):")
            self.add(loops.inside(other, dim), f"{total} += {re.sub(rf'{name}(?![0-9])', other, term)}")
        self.add(loops, f"if {target.axes[-1]} > 0:")
        self.add(Loops(loops.indent + 1), f"{target.name}[{', '.join([*row, '0'])}] = {' + '.join(totals)}")

    def place(self, loops: Loops, element: str) -> None:
        """Where the first or the last of some values stands."""
        top, at = self.name("t"), self.name("a")
        self.add(loops, f"{top} = tl.{self.dtype}(0)")
        self.add(loops, f"{at} = tl.i64(-1)")
        inner, var = self.loop(loops, self.random.choice("nmk"), "tl.reduce")
        function = self.random.choice(("tl.argmax", "tl.argmin"))
        place = self.random.choice((var, var, f"{var} + 1"))
        self.add(inner, f"{top}, {at} = {function}(({top}, {at}), ({self.value(inner, 2)}, {place}))")
        self.add(loops, f"{element} = tl.{self.dtype}({at} % 100)")

    def operation(self) -> str:
        return self.random.choice(OPERATIONS if self.is_float else OPERATIONS + _BITS)

    def reduction(self, loops: Loops, total: str, operation: str) -> None:
        """One to three loops around updates by one operation."""
        for _ in range(self.random.choice((1, 1, 2, 3))):
            kind = self.random.choice(("tl.reduce", "tl.reduce", "tl.reduce", "range"))
            if self.random.random() < 0.3:
                var = self.name("u")
                self.add(loops, f"for {var} in {kind}({SPARE}):")
                loops = loops.inside(var, "")
            else:
                loops, _ = self.loop(loops, self.random.choice("nmk"), kind)
        if self.random.random() < 0.2:
            self.add(loops, f"if {self.condition(loops)}:")
            loops = Loops(loops.indent + 1, loops.bounds)
        for _ in range(self.random.choice((1, 1, 1, 2))):
            self.update(loops, total, operation)

    def update(self, loops: Loops, total: str, operation: str) -> None:
        value = self.value(loops, 2)
        if self.random.random() < 0.2:
            var = self.name("v")
            self.add(loops, f"{var} = {value}")
            value = var
        if operation == "*" and self.is_float:
            value = f"tl.select({value} > 0, tl.{self.dtype}(1), tl.{self.dtype}(-1))"
        if operation in ("min", "max"):
            pair = self.random.choice((f"{total}, {value}", f"{value}, {total}"))
            self.add(loops, f"{total} = {operation}({pair})")
        else:
            self.add(loops, f"{total} {operation}= {value}")

    def value(self, loops: Loops, depth: int) -> str:
        """An expression of the kernel's type."""
        draw = self.random.random()
        if depth == 0 or draw < 0.4:
            return self.leaf(loops)
        if draw < 0.6:
            return f"{self.leaf(loops)} * {self.leaf(loops)}"
        if self.has_functions and draw < 0.75:
            function = self.random.choice(("exp", "tanh", "sin", "sqrt"))
            return f"tl.{function}(abs({self.leaf(loops)}) * tl.{self.dtype}(0.125))"
        first, second = self.value(loops, depth - 1), self.value(loops, depth - 1)
        if draw < 0.85:
            return f"({first} {self.random.choice('+-')} {second})"
        if draw < 0.92:
            return f"{self.random.choice(('min', 'max'))}({first}, {second})"
        choice = self.random.choice(("tl.select", "tl.if_then_else"))
        return f"{choice}({self.condition(loops)}, {first}, {second})"

    def condition(self, loops: Loops) -> str:
        return f"{self.leaf(loops)} {self.random.choice(('<', '>', '==', '>='))} {self.leaf(loops)}"

    def leaf(self, loops: Loops) -> str:
        arrays = [array for array in self.inputs if all(self.indices(loops, axis, array) for axis in array.axes)]
        if arrays and self.random.random() < 0.85:
            array = self.random.choice(arrays)
            index = ", ".join(self.random.choice(self.indices(loops, axis, array)) for axis in array.axes)
            return f"tl.{self.dtype}({array.name}[{index}])"
        names = [*loops.bounds, "s"] if not self.has_functions else ["s"]
        return f"tl.{self.dtype}({self.random.choice(names)} % 3)"

    def indices(self, loops: Loops, axis: str, array: Array) -> list[str]:
        """What may stand along an axis."""
        own = [name for name, dim in loops.bounds.items() if dim == axis]
        if self.has_neighbours:
            return own[-1:] + ([f"{own[-1]} + 1"] if own and array.padded else [])
        found = own * 4 + [f"{axis} - 1 - {name}" for name in own]
        if array.padded:
            few = [name for name, dim in loops.bounds.items() if dim == ""]
            found += [f"{name} + {each}" for name in own for each in (*few, *few, 1, 2)] + ["2", *few]
        return found
