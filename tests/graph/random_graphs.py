"""Random graphs that are valid by construction: chains, fans, branches, tuples, views, symbolic extents."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

import tirlite as tl
from tirlite.graph import Builder, Expr, Function
from tirlite.sizes import Dim

UNARY = ("exp", "tanh", "relu", "sigmoid", "negative", "abs")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")


@dataclass(frozen=True, slots=True)
class Sample:
    """A function and arguments for it; of symbolic functions there is one set for each of several bindings."""

    function: Function
    arguments: tuple[tuple[np.ndarray, ...], ...]


def random_graph(
    seed: int,
    *,
    symbolic: bool = False,
    branches: bool = True,
    most: int = 25,
    prefix: str = "",
    dims: tuple[Dim, Dim] | None = None,
) -> Sample:
    """The graph of a seed: up to about `most` operators on matrices of a few shapes that go together.

    `prefix` stands before the names of its parameters; `dims` are those of a symbolic one, if not its own.
    """
    rows = [*(dims or (tl.dim("n"), tl.dim("m", min=2))), 3] if symbolic else [2, 3, 5]
    made = _Maker(Random(seed), rows, branches=branches, prefix=prefix)
    return made.sample(made.random.randint(1, most))


class _Maker:
    def __init__(self, random: Random, rows: list[object], *, branches: bool, prefix: str) -> None:
        self.random = random
        self.branches = branches
        self.prefix = prefix
        self.g = Builder(f"random_{random.randint(0, 999)}")
        self.rows = rows
        self.columns = [1, 4, 6]
        self.values: list[Expr] = []

    def sample(self, count: int) -> Sample:
        inputs = [self.input(f"x{i}", self.random.choice(self.rows), self.random.choice(self.columns))
                  for i in range(self.random.randint(1, 3))]  # fmt: skip
        # Each dim is the extent of some input.
        inputs += [self.input(f"d{i}", row, 1) for i, row in enumerate(self.rows)]
        condition = self.g.input(f"{self.prefix}c", tl.bool_)
        self.values += inputs
        for _ in range(count):
            self.values.append(self.step(condition))
        outputs = self.random.sample(self.values, min(len(self.values), self.random.randint(1, 3)))
        function = self.g.function([*outputs, self.values[-1]])
        return Sample(function, tuple(self.arguments(function, *sizes) for sizes in ((2, 3), (5, 2), (1, 7))))

    def input(self, name: str, rows: object, columns: int) -> Expr:
        return self.g.input(f"{self.prefix}{name}", tl.f32[rows, columns])

    def arguments(self, function: Function, n: int, m: int) -> tuple[np.ndarray, ...]:
        rng = np.random.default_rng(n * 8 + m)
        binding = {var.dim: value for var, value in zip(self.rows, (n, m), strict=False) if hasattr(var, "dim")}
        arrays = []
        for param in function.params:
            shape = tuple(tl.graph.extents.values(param.shape, binding))
            arrays.append(
                rng.random(shape) < 0.5 if param.dtype == tl.bool_ else rng.standard_normal(shape, np.float32)
            )
        return tuple(np.asarray(array) for array in arrays)

    def step(self, condition: Expr) -> Expr:
        kinds = [self.unary, self.unary, self.binary, self.binary, self.matmul, self.view, self.reduced, self.parts]
        kinds += [self.tied, self.let]
        if self.branches and self.random.random() < 0.2:
            return self.choice(condition)
        return self.random.choice(kinds)()

    def pick(self) -> Expr:
        # Recent values more often, so that lifetimes end.
        recent = self.values[-6:]
        return self.random.choice(recent if self.random.random() < 0.8 else self.values)

    def like(self, x: Expr) -> Expr:
        return self.random.choice([value for value in self.values if value.type == x.type])

    def unary(self) -> Expr:
        return getattr(self.g, self.random.choice(UNARY))(self.pick())

    def binary(self) -> Expr:
        x = self.pick()
        return getattr(self.g, self.random.choice(BINARY))(x, self.like(x))

    def matmul(self) -> Expr:
        x = self.pick()
        weights = np.full((x.shape[1], self.random.choice(self.columns)), 0.25, np.float32)
        return self.g.matmul(x, weights)

    def view(self) -> Expr:
        x = self.pick()
        flat = self.g.reshape(x, [-1])
        return self.g.reshape(self.g.relu(flat), x.shape)

    def reduced(self) -> Expr:
        x = self.pick()
        return self.g.add(x, self.g.reduce_mean(x, 1, keepdims=True))

    def parts(self) -> Expr:
        x = self.pick()
        both = self.g.concat([x, self.like(x)], axis=1)
        left, right = self.g.split(both, 2, axis=1)
        return self.g.subtract(left, right) if self.random.random() < 0.7 else left

    def tied(self) -> Expr:
        x = self.pick()
        pair = self.g.tuple(self.g.tanh(x), x)
        return self.g.item(pair, self.random.randint(0, 1))

    def let(self) -> Expr:
        return self.g.let("kept", self.pick())

    def choice(self, condition: Expr) -> Expr:
        outside, self.values = self.values, list(self.values)
        ends = []
        for _ in range(2):
            before = list(self.values)
            for _ in range(self.random.randint(0, 4)):
                kinds = [self.unary, self.binary, self.matmul, self.parts, self.tied]
                kinds += [lambda: self.choice(condition)] * (self.random.random() < 0.3)
                self.values.append(self.random.choice(kinds)())
            ends.append(self.values)
            self.values = before
        then, other = ends
        pairs = [(a, b) for a in then[-3:] for b in other[-3:] if a.type == b.type]
        self.values = outside
        if not pairs:
            x = self.pick()
            pairs = [(self.g.exp(x), self.g.negative(x))]
        return self.g.if_(condition, *self.random.choice(pairs))
