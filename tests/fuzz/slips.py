"""Writes random kernels with wrong indices, loops, views and shapes, as text.

All memory is written before it is read, and values are small integers, so that sums are exact in any order: what goes
wrong is an access.
"""

from __future__ import annotations

from random import Random

HEADER = """
n, m = tl.dims("n m")

@tl.kernel
def f(
    x: tl.f32[n, m], v: tl.f32[n], at: {at}, far: tl.i64[n], k: tl.i64, h: tl.i32, y: tl.f32[n, m], z: tl.f32[n]
):
"""
CALLED = """
@tl.kernel
def g(a: tl.f32[n], s: tl.i64, b: tl.f32[m]):
    for q in range({end}):
        b[{to}] = a[{of}]
"""
# What is promised of the elements of `at`, if anything.
_AT = ("tl.i32[m]", "tl.i32[m]", "tl.buffer(tl.i32[m], below=n)", "tl.buffer(tl.i32[m], below=m + 1, least=-1)")
_STEPS = (-2, -1, -1, 0, 0, 0, 0, 0, 1, 1, 2)


class _Kernel:
    """One kernel being written; `loops` are the variables in scope, `buffers` the extents by name."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = []
        self.level = 1
        self.loops: list[str] = []
        self.names = 0
        self.buffers: dict[str, tuple[str, ...]] = {"x": ("n", "m"), "v": ("n",), "y": ("n", "m"), "z": ("n",)}
        self.parallel = ""

    def write(self, line: str) -> None:
        self.lines.append("    " * self.level + line)

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def text(self) -> str:
        for _ in range(self.random.randint(0, 2)):
            self.declare()
        for _ in range(self.random.randint(1, 3)):
            self.statement(0)
        dims, kernel = HEADER.format(at=self.random.choice(_AT)).split("\n\n", 1)
        to, of = (self.shifted(self.random.choice(("q", "q", "s"))) for _ in range(2))
        end = self.shifted(self.random.choice(("n", "m", "min(n, m)", "min(s, m)")))
        calls = any("tl.call(" in line for line in self.lines)
        called = CALLED.format(end=f"min({end}, 9)", to=to, of=of) if calls else ""
        header = f"{dims}\n{called}\n{kernel}"
        return header + "\n".join(self.lines) + "\n"

    def shifted(self, text: str) -> str:
        step = self.random.choice(_STEPS)
        return text if step == 0 else f"{text} {'+' if step > 0 else '-'} {abs(step)}"

    def extent(self) -> str:
        return self.shifted(self.random.choice(("n", "m", "n", "m", "4", "max(n, m)", "min(n, m)")))

    def declare(self) -> None:
        """A temporary that is filled, or a view of an array."""
        if self.random.random() < 0.25:
            name, source = self.name("w"), self.random.choice(("x", "v", "y", "z"))
            extent = f"max({self.extent()}, 0)"
            offset = self.random.choice(("0", "0", "4", "4 * n", "4 * k", "4 * (n - 1)", "4 * m"))
            self.write(f"{name} = tl.view({source}, tl.f32[{extent}], byte_offset={offset})")
            self.buffers[name] = (extent,)
            return
        name, rank = self.name("t"), self.random.randint(1, 2)
        extents = tuple(f"max({self.extent()}, 0)" for _ in range(rank))
        self.write(f"{name} = tl.alloc(tl.f32[{', '.join(extents)}])")
        indices = [f"{name}_{axis}" for axis in range(rank)]
        for depth, (index, extent) in enumerate(zip(indices, extents, strict=True)):
            self.write("    " * depth + f"for {index} in range({extent}):")
        self.write("    " * rank + f"{name}[{', '.join(indices)}] = {self.random.randint(0, 9)}")
        self.buffers[name] = extents

    def index(self, depth: int = 0) -> str:
        """Any integer that may be in bounds."""
        kind = self.random.random()
        if self.loops and kind < 0.55:
            return self.shifted(self.random.choice(self.loops))
        if kind < 0.65:
            return self.random.choice(("0", "1", "3"))
        if kind < 0.75:
            return self.shifted(self.random.choice(("n", "m", "k", "tl.i64(h)")))
        if depth == 0 and kind < 0.85:
            return self.random.choice(("at[{}]", "tl.i64(at[{}])", "far[{}]")).format(self.index(1))
        if kind < 0.92:
            low, high = self.random.choice((("0", "n - 1"), ("0", "m - 1"), ("k", "m"))), self.index(depth + 1)
            return f"min(max({high}, {low[0]}), {low[1]})"
        if kind < 0.95 and depth < 2:
            return self.picked(self.index(depth + 1))
        return (
            self.random.choice(("{0} + {1}", "{0} - {1}", "{0} * 2 + {1}", "({0} + {1}) % n", "{0} // 2")).format(
                self.index(depth + 1), self.index(depth + 1)
            )
            if depth < 2
            else "0"
        )

    def picked(self, at: str) -> str:
        """One of two indices: counted from the end, around, or back from an end."""
        step, extent = self.random.choice((1, 1, 2, 5)), self.random.choice("nm")
        forms = (
            "({0} + {2} if {0} < 0 else {0})",
            "({0} + {1} if {0} + {1} < {2} else 0)",
            "({0} - {1} if {0} > 0 else {2} - 1)",
            "(-{0} if {0} < 0 else {0})",
            "(2 * ({2} - 1) - {0} if {0} >= {2} else {0})",
            "min({0} % max({2}, 1), {2} - {0} % max({2}, 1))",
        )
        return self.random.choice(forms).format(at, step, extent)

    def element(self, name: str) -> str:
        return f"{name}[{', '.join(self.index() for _ in self.buffers[name])}]"

    def condition(self) -> str:
        """A test, which may be about an index of an access behind it."""
        index, bound = self.index(1), self.random.choice(("n", "m", "0", "2", "k"))
        test = f"{index} {self.random.choice(('<', '<=', '>', '>=', '==', '!='))} {bound}"
        if self.random.random() < 0.3:
            test += f" {self.random.choice(('and', 'or'))} {self.element('v')} {self.random.choice(('>', '<'))} 2"
        return test if self.random.random() < 0.8 else f"0 <= {index} and {index} < {bound}"

    def value(self) -> str:
        kind = self.random.random()
        if kind < 0.7:
            return self.element(self.random.choice(tuple(self.buffers)))
        if kind < 0.85:
            return f"({self.element('x')} if {self.condition()} else {self.element('v')})"
        return f"{self.element('x')} + {self.element('v')}"

    def statement(self, depth: int) -> None:
        kind = self.random.random()
        if depth < 3 and kind < (0.8, 0.5, 0.3)[depth]:
            self.random.choice((self.loop, self.loop, self.loop, self.counted, self.search, self.gathered))(depth)
        elif kind < 0.6 and depth < 4:
            self.write(f"if {self.condition()}:")
            self.block(depth)
            if self.random.random() < 0.3:
                self.write("else:")
                self.block(depth)
        elif kind < 0.64:
            self.write(f'assert {self.condition()}, "as asked"')
        elif kind < 0.7:
            name = self.name("i")
            self.write(f"{name} = tl.let_value({self.index()})".replace("tl.let_value(", "0 + ("))
            self.loops.append(name)
        elif kind < 0.75:
            source, target = self.random.sample([name for name in self.buffers if len(self.buffers[name]) == 1], 2)
            if target == "v" or "w" in source + target:
                self.store()
            else:
                self.write(f"tl.call(g, {source}, {self.index(1)}, {target})")
        else:
            self.store()

    def store(self) -> None:
        target = self.random.choice([name for name in self.buffers if name not in ("x", "v")])
        operator = self.random.choice(("=", "=", "+="))
        self.write(f"{self.element(target)} {operator} {self.value()}")

    def loop(self, depth: int) -> None:
        name = self.name("i")
        start = self.random.choice(
            ("", "", "", "1, ", "max(k, -2), ", *(f"max({each}, -2), " for each in self.loops[-1:]))
        )
        stop = self.shifted(self.random.choice(("n", "n", "m", "m", "k", "4", "at[0]", "far[0]", "min(n, m)")))
        step = ", 2" if start and self.random.random() < 0.2 else ""
        self.write(f"for {name} in range({start}min({stop}, 9){step}):")
        self.loops.append(name)
        self.block(depth)
        self.loops.remove(name)

    def counted(self, depth: int) -> None:
        """A while whose counter goes up or down, with steps at its end, at its start, or that differ."""
        name, is_up = self.name("c"), self.random.random() < 0.7
        stop = self.shifted(self.random.choice(("n", "m", "4", "min(n, m)")))
        first = self.random.choice(("0", "0", "1", "max(k, -2)")) if is_up else f"min({stop}, 9) - 1"
        end = f"{name} < min({stop}, 9)" if is_up else f"{name} {self.random.choice(('>=', '>'))} 0"
        self.write(f"{name} = tl.i64(0) + ({first})")
        self.write(f"while {end}{self.also()}:")
        step = f"{name} {'+' if is_up else '-'}= {{}}".format
        if self.random.random() < 0.2:
            self.write("    " + step(1))
            self.body(depth, name)
            return
        self.body(depth, name)
        if self.random.random() < 0.3:
            self.write(f"    if {self.condition()}:")
            self.write("        " + step(1))
            self.write("    else:")
            self.write("        " + step(2))
        else:
            self.write("    " + step(self.random.choice((1, 1, 2))))

    def also(self) -> str:
        return f" and ({self.condition()})" if self.random.random() < 0.3 else ""

    def search(self, depth: int) -> None:
        """Halves a range again and again."""
        low, high, middle = self.name("c"), self.name("c"), self.name("i")
        self.write(f"{low} = tl.i64(0)")
        self.write(f"{high} = tl.i64(0) + ({self.shifted(self.random.choice(('n', 'm', 'n')))})")
        self.write(f"while {low} < {high}:")
        self.write(f"    {middle} = ({low} + {high}) // 2")
        self.body(depth, middle)
        self.write(f"    if {self.condition()}:")
        self.write(f"        {low} = {middle} + 1")
        self.write("    else:")
        self.write(f"        {high} = {middle}")

    def gathered(self, depth: int) -> None:
        """A loop that counts what it meets, or notes where it was."""
        place, name = self.name("c"), self.name("i")
        self.write(f"{place} = tl.i64(0) + ({self.random.choice(('0', '0', '1', 'n - 1'))})")
        self.write(f"for {name} in range(min({self.shifted(self.random.choice(('n', 'm')))}, 9)):")
        self.loops.append(name)
        self.body(depth, place)
        if self.random.random() < 0.4:
            self.write(f"    if {self.condition()}:")
            self.write(f"        {self.random.choice(('break', 'continue'))}")
        self.write(f"    if {self.condition()}:")
        moves = ("+= 1", "+= 1", "-= 1", "+= 2", f"= {name}", f"= ({place} + 1) % n")
        self.write(f"        {place} {self.random.choice(moves)}")
        self.loops.remove(name)

    def body(self, depth: int, name: str) -> None:
        """The body of a loop, which may use what it moves."""
        self.loops.append(name)
        self.block(depth)
        self.loops.remove(name)

    def block(self, depth: int) -> None:
        kept, buffers = list(self.loops), dict(self.buffers)
        self.level += 1
        if depth < 2 and self.random.random() < 0.1:
            self.declare()
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth + 1)
        self.level -= 1
        self.loops, self.buffers = kept, buffers


def slip(seed: int) -> str:
    """The kernel of a seed."""
    return _Kernel(Random(seed)).text()
