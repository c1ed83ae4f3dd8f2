"""Makes arguments to try a function on: sizes that obey its demands, and arrays whose indices are in range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from tirlite.diag import TirliteError
from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, Let, Tuple, TupleGetItem, Var
from tirlite.graph.extents import values
from tirlite.graph.op import Op
from tirlite.graph.program import Program, program
from tirlite.graph.run_dims import RunDim, run_dims
from tirlite.graph.types import Array, TensorType, extents_in, tensors
from tirlite.sizes import Dim, Size, dims_of, evaluate
from tirlite.sizes.poly import as_size, atom_of

# Values of a dim that are tried, besides the first ones: models halve extents some times, and lay windows on them.
_FIRST, _LARGER = 64, (80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640, 768, 1024, 2048, 4096, 16384)
# Operands that are indices, each with the axis of operand 0 that they count along; ops that only move elements, of all
# operands or of the first.
_INDEXED = ("gather", "gather_elements", "scatter_elements")
_MOVERS = ("reshape", "assume", "transpose", "broadcast_to", "slice", "tile", "concat", "cast", "identity", "split")

# The value of extents that a run reads from an input, if they may be that large, so that their axes are not empty.
_EXTENT = 4
_OF_FIRST = ("gather", "gather_elements", "gather_nd", "pad", "reduce_max", "reduce_min", "topk", "sort_rows")


def dims_in(function: FunctionNode) -> list[Dim]:
    """The dims in the types of the parameters, each once."""
    return list(dict.fromkeys(dim for extent in function.extents for dim in dims_of(extent)))


def sizes_by_name(function: FunctionNode) -> dict[str, Size]:
    """The value of each dim by name, also of dims that were replaced because two extents must be equal."""
    found = {dim.name: as_size(dim) for dim in dims_in(function)}
    now = function.extents if function.declared else []
    for before, size in zip(extents_in(function.declared), now, strict=True):
        found |= {dim.name: size for dim in atom_of(before, Dim) if dim.name not in found}
    return found


def sample_sizes(function: FunctionNode, told: Mapping[str, int]) -> dict[Dim, int]:
    """A value for each dim: as given, else the least one with which demands hold and no extent is empty, if found."""
    named = sizes_by_name(function)
    fixed = {dim: value for name, value in told.items() if name in named for dim in atom_of(named[name], Dim)}
    found = {dim: fixed.get(dim, dim.low) for dim in dims_in(function)}
    asked = [*_asked(function), *(_is_size(named[name], value) for name, value in told.items() if name in named)]
    for _ in range(2):
        for number, (dims, holds) in enumerate(asked):
            free = [dim for dim in dims if dim in found and dim not in fixed]
            if not free or holds(found):
                continue
            before = [each for _, each in asked[:number] if each(found)]
            tried = (dict.fromkeys(group, step) for group in (*([dim] for dim in free), free) for step in _steps())
            for choice in tried:
                made = {**found, **{dim: dim.nth(max(0, step - 1)) for dim, step in choice.items()}}
                if holds(made) and all(each(made) for each in before):
                    found = made
                    break
    return found


def _steps() -> Iterator[int]:
    return chain(range(1, _FIRST), _LARGER)


def _asked(function: FunctionNode) -> Iterator[tuple[tuple[Dim, ...], Any]]:
    """The conditions on sizes: the dims in each, and whether it holds at given values."""
    known = frozenset(dims_in(function))
    for demand in function.demands:
        if not demand.is_told and known.issuperset(demand.dims):
            yield demand.dims, demand.holds
    extents = (e for step in program(function).steps() for of in tensors(step.type) for e in of.shape)
    for extent in dict.fromkeys(extent for extent in extents if not isinstance(extent, int)):
        dims = dims_of(extent)
        if known.issuperset(dims):
            yield dims, _is_positive(extent)


def _is_size(size: Size, value: int) -> tuple[tuple[Dim, ...], Any]:
    return dims_of(size), lambda binding: evaluate(size, binding) == value


def _is_positive(extent: Size) -> Any:
    def holds(binding: Mapping[Dim, int]) -> bool:
        try:
            return evaluate(extent, binding) > 0
        except TirliteError:  # divides by zero there
            return False

    return holds


def sample_arguments(
    function: FunctionNode, binding: Mapping[Dim, int], rng: np.random.Generator, given: Mapping[str, Array]
) -> list[Array]:
    """An array for each parameter, which must be a tensor: that of `given` by its name, else random.

    Floats are normal; integers that are used as indices are such as the axis has, those that an extent is taken from
    are a few, others 0 or 1.
    """
    extents = _taken_extents(function, binding, given)
    few = {param: value for _, param, value in extents}
    limits = _limits(function, {**binding, **{dim: few[param] for dim, param, _ in extents}})
    made = []
    for param in function.params:
        shape = values(param.shape, binding)
        if param.name in given:
            made.append(given[param.name])
        elif param in few:
            made.append(np.full(shape, few[param], param.tensor.dtype.stored))
        else:
            made.append(_drawn(rng, param.tensor, shape, limits.get(param, 2)))
    return made


def _taken_extents(
    function: FunctionNode, binding: Mapping[Dim, int], given: Mapping[str, Array]
) -> list[tuple[RunDim, Expr, int]]:
    """The extents that a run takes from an element of a parameter, with that one, and what the extent may be.

    Of one parameter those that must be one number come last.
    """
    made = program(function)
    sizes = [size for step in made.steps() for size in step.sizes]
    found: list[tuple[RunDim, Expr, int]] = []
    for dim in run_dims(sizes):
        if (source := _origin(made, dim.source)) is None:
            continue
        array = given.get(source.name, np.array(_EXTENT))
        least, most = (_evaluated(size, binding) for size in (dim.least, dim.most))
        value = min(int(array.max(initial=0)), _EXTENT if most is None else most)
        found.append((dim, source, max(value, 0 if least is None else least)))
    return sorted(found, key=lambda each: (each[0].least == each[0].most, -each[2]))


def _origin(made: Program, value: Expr) -> Var | None:
    """The integer parameter that a value is an element of, seen through operators that move elements."""
    left = [value]
    while left:
        found = made.resolved(left.pop())
        if isinstance(found, Var) and found in made.function.params and found.tensor.dtype.is_integer:
            return found
        if isinstance(found, Call) and isinstance(found.op, Op):
            left += found.args[1:] if found.op.name == "where" else ()
            left += found.args[:1] if found.op.name in (*_MOVERS, "gather") else ()
    return None


def _evaluated(size: Size | None, binding: Mapping[Dim, int]) -> int | None:
    """The size, if there is one and the dims in it are known."""
    return evaluate(size, binding) if size is not None and frozenset(binding).issuperset(dims_of(size)) else None


def _drawn(rng: np.random.Generator, of: TensorType, shape: tuple[int, ...], below: int) -> Array:
    stored = of.dtype.stored
    if of.dtype.is_float and stored.kind == "f":
        return np.asarray(rng.standard_normal(shape), stored)
    return np.asarray(rng.integers(0, max(below, 1), shape), stored)


def _limits(function: FunctionNode, binding: Mapping[Dim, int]) -> dict[Expr, int]:
    """The upper limits of elements that are used as indices somewhere."""
    made = program(function)
    found: dict[Expr, int] = {}

    def demand(value: Expr, below: int) -> None:
        value = made.resolved(value)
        found[value] = min(found.get(value, below), below)

    for step in reversed([*made.steps()]):
        for value, below in _uses(step, binding):
            demand(value, below)
        if (below := found.get(step, 0)) > 0:
            for value, less in _passed(step, below):
                demand(value, less)
    return found


def _uses(step: Expr, binding: Mapping[Dim, int]) -> Iterable[tuple[Expr, int]]:
    """The operands that a call uses as indices, and the extents they index."""
    if not isinstance(step, Call) or not isinstance(step.op, Op) or len(step.args) < 2:
        return
    shape = step.args[0].shape if isinstance(step.args[0].type, TensorType) else ()
    extents: list[Size] = []
    indices = step.args[1]
    if step.op.name in _INDEXED:
        axis: Any = getattr(step.attrs, "axis", 0)
        extents = [shape[axis]]
    elif step.op.name == "roi_align":
        extents, indices = [shape[0]], step.args[2]
    elif step.op.name in ("gather_nd", "scatter_nd"):
        depth = step.args[1].shape[-1]
        first = getattr(step.attrs, "batch_dims", 0)
        extents = list(shape[first : first + depth]) if isinstance(depth, int) else []
    if extents and all(frozenset(binding).issuperset(dims_of(each)) for each in extents):
        yield indices, min(evaluate(each, binding) for each in extents)


def _passed(step: Expr, below: int) -> Iterable[tuple[Expr, int]]:
    """The operands whose elements pass through a call, and their upper limits."""
    if isinstance(step, Tuple | Let | If | TupleGetItem):
        yield from ((each, below) for each in step.operands)
    if not isinstance(step, Call) or not isinstance(step.op, Op):
        return
    constants = [int(arg.value.max()) for arg in step.args if isinstance(arg, Constant) and arg.value.size]
    most = max(0, *constants) if constants else 0
    others = [arg for arg in step.args if not isinstance(arg, Constant)]
    if step.op.name in _MOVERS:
        yield from ((each, below) for each in others)
    elif step.op.name in _OF_FIRST:
        yield step.args[0], below
    elif step.op.name in ("where", "maximum", "minimum", "clip"):
        yield from ((each, below) for each in others if isinstance(each.type, TensorType) and each.dtype.is_integer)
    elif step.op.name == "add":
        share = max(1, (below - most - 1) // max(1, len(others)) + 1)
        yield from ((each, share) for each in others)
    elif step.op.name == "multiply" and most > 0:
        yield from ((each, max(1, (below - 1) // most + 1)) for each in others)
