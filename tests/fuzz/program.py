"""A random program with arguments for it, what it computes, and what a set of programs covers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from fuzz.extents import Extent

from tirlite.analysis import lifetimes
from tirlite.interp import interpret
from tirlite.ir import Allocate, Buffer, For, ForKind, IfThenElse, IntImm, PrimFunc, Var, View, While, walk

Arguments = dict[Var | Buffer, object]
Run = Callable[[PrimFunc, Arguments], None]


@dataclass(frozen=True)
class Program:
    """A function, the shapes of its parameters, and values for its dims: one run for each of `bindings`."""

    seed: int
    func: PrimFunc
    shapes: Mapping[Buffer, tuple[Extent, ...]]
    bindings: tuple[Mapping[Var, int], ...]
    features: frozenset[str]

    def arguments(self, number: int) -> Arguments:
        """Fresh arguments for one binding, dims included; the same at each call."""
        sizes = dict(self.bindings[number])
        draw = np.random.default_rng([self.seed, number])
        found: Arguments = {**sizes}
        for param in self.func.params:
            item = param.dtype.numpy
            if isinstance(param, Var):
                found[param] = _values(draw, item, ())[()]
            else:
                found[param] = _values(draw, item, tuple(each.value(sizes) for each in self.shapes[param]))
        return found


def _values(draw: np.random.Generator, item: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Small values mostly, with extreme ones among them."""
    small = draw.integers(-4, 5, shape)
    if item.kind == "b":
        return np.asarray(small > 0)
    if item.kind == "f":
        special = draw.choice([np.nan, np.inf, -np.inf, -0.0, 1e30, 1e-30], shape)
        with np.errstate(over="ignore"):
            return np.where(draw.random(shape) < 0.05, special, small / 4).astype(item)
    extreme = draw.choice(np.array([np.iinfo(item).min, np.iinfo(item).max], item), shape)
    return np.where(draw.random(shape) < 0.1, extreme, small.astype(item))


def outcomes(program: Program, run: Run = interpret, func: PrimFunc | None = None) -> dict[str, np.ndarray]:
    """What each array holds after each run, by name and number of the run.

    `func` runs in the place of the program's own function: the same after passes, with the same parameters.
    """
    found: dict[str, np.ndarray] = {}
    for number in range(len(program.bindings)):
        arguments = program.arguments(number)
        run(func or program.func, arguments)
        arrays = [(param.name, arguments[param]) for param in program.func.params if isinstance(param, Buffer)]
        found |= {f"{name} of run {number}": array for name, array in arrays if isinstance(array, np.ndarray)}
    return found


def assert_same(wanted: dict[str, np.ndarray], given: dict[str, np.ndarray]) -> None:
    """Fails if two outcomes differ in a bit; any nan is like any other."""
    assert wanted.keys() == given.keys()
    for name, array in wanted.items():
        other = given[name]
        assert array.dtype == other.dtype
        np.testing.assert_array_equal(other, array, err_msg=name)
        if array.dtype.kind == "f":
            zeros = array == 0
            np.testing.assert_array_equal(np.signbit(other[zeros]), np.signbit(array[zeros]), err_msg=name)


def coverage(programs: Sequence[Program]) -> dict[str, float]:
    """The share of the programs that have each feature."""
    counts: dict[str, int] = {}
    for program in programs:
        for feature in sorted(_features(program)):
            counts[feature] = counts.get(feature, 0) + 1
    return {feature: count / len(programs) for feature, count in sorted(counts.items())}


def _features(program: Program) -> set[str]:
    nodes = list(walk(program.func))
    found = set(program.features)
    kinds = {node.kind for node in nodes if isinstance(node, For)}
    found |= {f"{kind.name.lower()} loop" for kind in kinds if kind is not ForKind.SERIAL}
    names = {IfThenElse: "if", While: "while", View: "view"}
    found |= {name for kind, name in names.items() if any(isinstance(node, kind) for node in nodes)}
    buffers = [node.buffer for node in nodes if isinstance(node, Allocate)]
    found |= {f"{buffer.dtype} temporaries" for buffer in buffers if buffer.dtype.is_float and buffer.dtype.bits == 16}
    if len({buffer.dtype.scalar for buffer in buffers}) > 1:
        found.add("mixed types")
    if any(not isinstance(extent, IntImm) for buffer in buffers for extent in buffer.shape):
        found.add("symbolic temporaries")
    sizes = {extent.value(dict(sizes)) for sizes in program.bindings for s in program.shapes.values() for extent in s}
    found |= {f"extent {size}" for size in (0, 1) if size in sizes}
    if _reuse_possible(program.func):
        found.add("reuse possible")
    return found


def _reuse_possible(func: PrimFunc) -> bool:
    """Whether two temporaries of one scope are never live at the same time."""
    lives = [each for each in lifetimes(func).values() if each.live and each.buffer.scope in ("global", "shared")]
    return any(
        a.buffer.scope == b.buffer.scope
        and a.attach is b.attach
        and not any(lo < end and start < hi for lo, hi in a.live for start, end in b.live)
        for a, b in combinations(lives, 2)
    )
