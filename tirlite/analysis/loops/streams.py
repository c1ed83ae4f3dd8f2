"""Recognizes results too large for the caches: nontemporal stores save reading their lines first.

What a kernel reads fills the caches, too. With such stores, a copy of floats took two thirds of the time where both
arrays together were as large as the last-level cache, seven eighths at two thirds of that, and a third more where half
of the cache was free: so what counts is the total of all arrays, from three quarters of the cache on. A result that is
a small part of them stays in the caches, for whatever reads it next.
"""

from __future__ import annotations

from collections.abc import Container

from tirlite.analysis.loops.patterns import moved_by, widest_computed
from tirlite.ir.checked import has_check
from tirlite.ir.expr import Buffer, Expr, FloorDiv, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import calls_in
from tirlite.ir.shapes import constant_bytes
from tirlite.ir.stmt import For, ForKind, Let, Store
from tirlite.ir.walk import accesses_in, mentions, statements_of, walk
from tirlite.target import Processor

# The part of all arrays that a result is at least.
PART = 4


def held(processor: Processor) -> int:
    """The bytes of all arrays up to which a processor's caches hold what a kernel writes."""
    return processor.caches[-1] * 3 // 4


def results(func: PrimFunc, processor: Processor) -> frozenset[Buffer]:
    """The parameters that nothing reads, and that may be larger than the caches with all others."""
    arrays = func.arrays
    sizes = {param: constant_bytes(param) for param in arrays}
    known = [size for size in sizes.values() if size is not None]
    if processor.family != "x86-64" or (len(known) == len(arrays) and sum(known) <= held(processor)):
        return frozenset()
    least = max(sum(known), held(processor))
    found = {param for param in arrays if not param.volatile and _is_part(sizes[param], least)}
    for node in walk(func.body):
        if not found:
            break
        if not isinstance(node, Store):
            found -= {getattr(node, name) for name in node.USES}
    return frozenset(found)


def large_from(func: PrimFunc, processor: Processor) -> int:
    """The bytes of all arrays from which a version of a function that stores past the caches serves a call; else 0.

    None serves where sizes are known, where loops go by vectors as it is, and where other functions are called: that is
    too much to compile twice.
    """
    past = results(func, processor)
    if not past or not any(stores_past(loop, past) for loop in statements_of(func.body, For)):
        return 0
    is_known = all(constant_bytes(param) is not None for param in func.arrays)
    has_vectors = any(store.value.dtype.lanes > 1 for store in statements_of(func.body, Store))
    return 0 if is_known or has_vectors or calls_in(func.body) else held(processor)


def _is_part(size: int | None, least: int) -> bool:
    """Whether a result may be as much as counts of all arrays, which take this many bytes or more."""
    return size is None or PART * size >= least


def stores_past(loop: For, past: Container[Buffer]) -> bool:
    """Whether a loop without others inside stores nothing but these results, each once, along its iterations.

    It is one as an author writes it, not what is left after whole vectors. Iterations are independent then, as nothing
    reads what they write. Where what is loaded, or computed on the way, is wider than a result, less is saved than LLVM
    knows to do better.
    """
    if not loop.body.kinds <= {Store, Let} or not _is_plain(loop):
        return False
    stores = [stmt for stmt in loop.body.stmts if isinstance(stmt, Store)]
    if not all(each.buffer in past and each.indices and mentions(each.indices[-1], loop.var) for each in stores):
        return False
    accesses = accesses_in(*loop.body.stmts)
    if len({each.buffer for each in stores}) < max(1, len(stores)):
        return False
    narrowest = min(each.buffer.dtype.bytes for each in stores)
    return widest_computed(loop.body.stmts) <= narrowest and all(_is_along(each.indices, loop.var) for each in accesses)


def _is_plain(loop: For) -> bool:
    is_left = any(isinstance(node, FloorDiv) for node in walk(loop.start))
    return loop.kind in (ForKind.SERIAL, ForKind.PARALLEL) and loop.step == 1 and not is_left and not has_check(loop)


def _is_along(indices: tuple[Expr, ...], var: Var) -> bool:
    """Whether neighbouring values of a variable are one element, or neighbours in memory, as far as indices tell."""
    if not indices or not mentions(indices, var):
        return True
    return moved_by(indices[-1], var) == 1 and not mentions(indices[:-1], var)
