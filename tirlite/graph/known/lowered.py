"""Caches what calls need of a lowered graph function, so that a later process need not lower it again."""

from __future__ import annotations

from _blake2 import blake2b
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.diag import TirliteError
from tirlite.driver.content import content_key
from tirlite.driver.front import KnownFront
from tirlite.driver.manifest import Known
from tirlite.graph.aot.laid_out import LAYOUTS
from tirlite.graph.expr import Constant, FunctionNode, callees_first, operands_first
from tirlite.graph.known.array_locations import ArrayLocation, Unkept, arrays_at, demand_little, kept_place
from tirlite.graph.known.models import ReadFunction
from tirlite.graph.known.pickled import written
from tirlite.graph.run_dims import run_dims
from tirlite.graph.types import tensors
from tirlite.record import record
from tirlite.runtime.cache import compiler_stamp, find, folder, keep
from tirlite.runtime.head import Head

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.graph.aot.lower import Lowered
    from tirlite.ir import PrimFunc
    from tirlite.rewrite.options import Options
    from tirlite.sizes import Size

    Array: TypeAlias = npt.NDArray[Any]


@record(eq=False)
class KnownLowered:
    """The cached parts of a lowered function: its head, its constants, and the run-time extents."""

    head: Head
    content: bytes
    constants: Mapping[str, Array]
    extents: tuple[Size, ...]


class LoweredFront(KnownFront):
    """The `main` function of a cached graph, which is lowered again if more than its head is needed."""

    def __init__(self, known: KnownLowered, lower: Callable[[], PrimFunc]) -> None:
        super().__init__(Known(known.head, known.content, "", ()), lambda: (lower(), {}))

    def _made(self) -> PrimFunc:
        from tirlite.ir.equal import content_digest

        func, _ = self._translate()
        # Lowering depends only on the function and on tirlite's code, and the key covers both.
        assert content_digest(func) == self.content
        return func


def lowered_key(function: FunctionNode, options: Options, order: str) -> bytes | None:
    """The key of a function's cache entry; None without a cache, or if the function has no stable digest."""
    if folder() is None:
        return None
    try:
        content = function.content if isinstance(function, ReadFunction) else b""
        of_graph = content or _content(function)
    except Unkept:
        return None
    digest = blake2b(compiler_stamp(graphs=True), digest_size=20)
    digest.update(of_graph + order.encode())
    return content_key(digest.digest(), options, "graph")


def known_lowered(key: bytes, function: FunctionNode) -> KnownLowered | None:
    """The cached entry of the key, or None if there is none that fits."""
    plain: Any = find(key)
    if plain is None:
        return None
    try:
        head, content, count, names = plain
        own = [each.value for each in _constants(function)]
        constants = {
            name: _laid(own[at] if at >= 0 else arrays_at([ArrayLocation(*place)], ())[0], layout)
            for name, at, place, layout in names
        }
        made, extents = Head.of_plain(head), _extents(function)
        fits = len(extents) == count and isinstance(content, bytes) and _fit(made, constants)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError, TirliteError):
        return None
    return KnownLowered(made, content, constants, extents) if fits else None


def keep_lowered(key: bytes, function: FunctionNode, lowered: Lowered, front: Any) -> None:
    """Caches a lowered function, unless its calls need more than an entry can hold."""
    plain = Head(front.signature, tuple(front.unfit), ()).plain()
    if plain is None or lowered.kept or lowered.extents != _extents(function):
        return
    places = {id(each): number for number, each in enumerate(_constants(function))}
    made = []
    for constant, buffer in lowered.constants.items():
        layout, source = lowered.layouts.get(constant, ("", constant))
        at = places.get(id(source), -1)
        made.append((buffer.name, at, kept_place(source.value) if at < 0 else None, layout))
    try:
        demand_little([place for _, _, place, _ in made if place is not None])
    except Unkept:
        return
    names = tuple((name, at, () if place is None else place.plain(), layout) for name, at, place, layout in made)
    keep(key, (plain, front.content, len(lowered.extents), names))


def _laid(array: Array, layout: str) -> Array:
    """The array in the named layout, or as it is if the name is empty."""
    return LAYOUTS[layout].function(LAYOUTS[layout].given(array)) if layout else array


def _content(function: FunctionNode) -> bytes:
    """A digest of a function with its constants. Raises Unkept if it has none that is stable."""
    data, arrays = written(function, spans=False)
    digest = blake2b(data, digest_size=20)
    for each in arrays:
        digest.update(repr((each.dtype.str, each.shape)).encode())
        digest.update(each.tobytes() if not each.flags.c_contiguous else each.data)
    return digest.digest()


def _extents(function: FunctionNode) -> tuple[Size, ...]:
    """The extents in its result that are only known during a run."""
    extents = (extent for each in tensors(function.result) for extent in each.shape)
    return tuple(dict.fromkeys(extent for extent in extents if run_dims([extent])))


def _constants(function: FunctionNode) -> list[Constant]:
    """All constants, each once: those of its callees before its own."""
    bodies = (operands_first(each.body) for each in callees_first(function))
    return list(dict.fromkeys(each for body in bodies for each in body if isinstance(each, Constant)))


def _fit(head: Head, constants: Mapping[str, Array]) -> bool:
    """Whether each array has the type and shape of the parameter with its name."""
    params = {each.name: each for each in head.signature.arrays}
    return all(
        name in params
        and not params[name].is_written
        and not params[name].bare
        and not params[name].computed
        and params[name].dtype == array.dtype
        and tuple(extent for _, extent in params[name].fixed) == array.shape
        for name, array in constants.items()
    )
