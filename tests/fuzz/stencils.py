"""A seed in, the text of a random kernel out with loops that pass values on: iterated stencils, and running sums."""

from __future__ import annotations

from collections.abc import Callable

from fuzz.nests import Loops, Nests


class Stencils(Nests):
    """Writes one kernel, of such loops for the most part."""

    granted = ("", '"reassociate"', '"contract", "reassociate"')

    def kinds(self) -> tuple[Callable[[Loops], None], ...]:
        return (self.iterated, self.iterated, self.running, self.chain, self.rows, self.nest)

    def iterated(self, loops: Loops) -> None:
        """An output that goes through a stencil again and again, in place or by way of a temporary."""
        target = self.random.choice(self.outputs)
        other = target.name
        if self.random.random() < 0.7:
            other = self.name("t")
            self.add(loops, f"{other} = tl.alloc(tl.{self.dtype}[{', '.join(target.axes)}])")
            inner, index = self.over(loops, target.axes, ("{0}",))
            self.add(inner, f"{other}[{index}] = {target.name}[{index}]")
        self.add(loops, f"for {self.name('t')} in range({self.random.choice(('s', '3', 's + 1', 's * 3'))}):")
        loops = Loops(loops.indent + 1, {**loops.bounds, f"t{self.names}": ""})
        for source, result in ((target.name, other), (other, target.name))[: 2 if other != target.name else 1]:
            inner, index = self.over(loops, target.axes, ("1, {0} - 1", "1, {0} - 1", "{0} - 1", "{0}"))
            read = [f"{source}[{self.near(inner, index, target.axes)}]" for _ in range(self.random.choice((1, 2, 3)))]
            signs = [self.random.choice("+-") for _ in read[1:]]
            value = read[0] + "".join(f" {sign} {each}" for sign, each in zip(signs, read[1:], strict=True))
            self.add(inner, f"{result}[{index}] = {value}")

    def near(self, loops: Loops, index: str, axes: str) -> str:
        """The indices of a neighbour, which is there."""
        return ", ".join(
            self.random.choice((each, f"max({each} - 1, 0)", f"min({each} + 1, {axis} - 1)"))
            for each, axis in zip(index.split(", "), axes, strict=True)
        )

    def over(self, loops: Loops, axes: str, ranges: tuple[str, ...]) -> tuple[Loops, str]:
        """Loops over axes, and the index of an element."""
        names = []
        for axis in axes:
            names.append(self.name("i"))
            self.add(loops, f"for {names[-1]} in range({self.random.choice(ranges).format(axis)}):")
            loops = loops.inside(names[-1], axis)
        return loops, ", ".join(names)

    def running(self, loops: Loops) -> None:
        """What goes on along the last axis of an output, in its elements or in a scalar."""
        target = self.random.choice(self.outputs)
        inner, before = self.over(loops, target.axes[:-1], ("{0}",))
        before = f"{before}, " if before else ""
        var, last = self.name("j"), target.axes[-1]
        operation = self.random.choice(("+", "+", "min", "max"))
        own = f"{target.name}[{before}{var}]"
        passed, first = f"{target.name}[{before}{var} - 1]", "1, "
        if self.random.random() < 0.5:
            passed, first = self.name("c"), ""
            self.add(inner, f"{passed} = tl.{self.dtype}(0)")
        self.add(inner, f"for {var} in range({first}{last}):")
        inner = inner.inside(var, last)
        value = self.value(inner, 1)
        if self.random.random() < 0.4:
            named = self.name("v")
            self.add(inner, f"{named} = {value}")
            value = named
        combined = f"{operation}({passed}, {value})" if operation in ("min", "max") else f"{passed} + {value}"
        if first:
            self.add(inner, f"{own} = {combined}")
            return
        lines = [f"{passed} = {combined}", f"{own} = {passed}"]
        for line in lines[:: self.random.choice((1, -1))]:
            self.add(inner, line)

    def rows(self, loops: Loops) -> None:
        """A loop over two axes at once, of which it tells the indices by a quotient and a remainder."""
        target = next((each for each in self.outputs if each.padded and len(each.axes) == 1), None)
        if target is None:
            self.running(loops)
            return
        (axis,) = target.axes
        name, var = self.name("t"), self.name("i")
        self.add(loops, f"{name} = tl.alloc(tl.{self.dtype}[{axis}, 4])")
        self.add(loops, f"for {var} in range({axis} * 4):")
        inner = loops.inside(var, axis)
        self.add(inner, f"{name}[{var} // 4, {var} % 4] = tl.{self.dtype}({var} % 3)")
        inner, index = self.over(loops, target.axes, ("{0}",))
        self.add(inner, f"{target.name}[{index}] = {name}[{index}, 1] + {name}[{index}, {self.random.choice('023')}]")
