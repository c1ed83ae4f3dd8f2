"""A random program with arguments for it, and what it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from fuzz.extents import Extent

from tirlite.interp import interpreter
from tirlite.ir import Buffer, PrimFunc, Var

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


def outcomes(program: Program, run: Run | None = None, func: PrimFunc | None = None) -> dict[str, np.ndarray]:
    """What each array holds after each run, by name and number of the run.

    `run` calls a function; without it, the interpreter does. `func` runs in the place of the program's own function:
    the same after passes, or as another one with the same parameters.
    """
    found: dict[str, np.ndarray] = {}
    runs = func or program.func
    call = interpreter(runs) if run is None else partial(run, runs)
    for number in range(len(program.bindings)):
        arguments = program.arguments(number)
        sizes = {var.name: value for var, value in arguments.items()}
        given = {dim: sizes[dim.name] for dim in runs.dims}
        given |= zip(runs.params, (arguments[param] for param in program.func.params), strict=True)
        call(given)
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
