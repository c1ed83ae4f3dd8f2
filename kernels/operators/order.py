"""Operators that depend on the order of elements along an axis: argmax, topk, cumsum, nonzero, sorted rows."""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.reduce import added, multiplied
from tirlite.kernels.operators.shapes import Extent, around, elements, extents, is_one, product


@factory
def argmax(X: TensorType, Y: TensorType, *, axis: int = -1, keepdims: bool = False, last: bool = False) -> PrimFunc:
    """The index of the greatest element along an axis: the first of equals, or the `last`; nan counts as greatest."""
    return _extreme("argmax", X, Y, axis, last, above)


@factory
def argmin(X: TensorType, Y: TensorType, *, axis: int = -1, keepdims: bool = False, last: bool = False) -> PrimFunc:
    """The index of the least element along an axis: the first of equals, or the `last`; nan counts as least."""
    return _extreme("argmin", X, Y, axis, last, below)


@tl.inline
def above(a, b):
    return a > b


@tl.inline
def below(a, b):
    return a < b


def comes_before(kind: DType, compare: Inline) -> Inline:
    """Whether a comes strictly before b by a comparison, nan first of all."""

    @tl.inline
    def before(a, b):
        return compare(a, b) or (tl.isnan(a) and not tl.isnan(b))

    return before if kind.is_float else compare


def _extreme(name: str, X: TensorType, Y: TensorType, axis: int, last: bool, compare: Inline) -> PrimFunc:
    outer, length, inner = around(X, axis)
    kind = tl.u8 if X.dtype.is_bool else computed_in(X.dtype)
    before, best, is_row = comes_before(kind, compare), tl.argmax if name == "argmax" else tl.argmin, is_one(inner)
    # The fewer bits an index has, the more a vector holds.
    index = tl.i64 if is_row or not isinstance(length, int) or length >= 1 << 31 else tl.i32
    seen_as = X.dtype[(outer, length) if is_row else (outer, length, inner)]

    @tl.inline
    def element(x, i, j, q):
        return kind(x[i, j]) if tl.static(is_row) else kind(x[i, j, q])

    @tl.inline
    def first_of(x, i, q):
        most = element(x, i, 0, q)
        place = index(0)
        for j in tl.reduce(1, length):
            most, place = best((most, place), (element(x, i, j, q), index(j)))
        return place

    @tl.inline
    def last_of(x, i, q):
        most = element(x, i, 0, q)
        place = index(0)
        for j in range(1, length):
            value = element(x, i, j, q)
            better = not before(most, value)
            most = tl.select(better, value, most)
            place = tl.select(better, index(j), place)
        return place

    place_of = last_of if last else first_of

    @tl.kernel
    def extreme(x: X, y: tl.out[Y]):
        seen = tl.view(x, seen_as)
        places = tl.view(y, y.dtype[outer, inner])
        for i in tl.parallel(outer):
            for q in range(inner):
                places[i, q] = y.dtype(place_of(seen, i, q))

    return extreme.ir.named(name)


@factory
def topk(X: TensorType, V: TensorType, I: TensorType, *, axis: int = -1, largest: bool = True) -> PrimFunc:
    """The greatest or least elements along an axis, sorted, and their indices; equal ones by index.

    A heap holds the best elements so far, the worst at its root, which better ones replace. At the end they are popped
    from the heap, the worst first.
    """
    outer, length, inner = around(X, axis)
    count = around(V, axis)[1]
    before = comes_before(computed_in(X.dtype), above if largest else below)

    @tl.inline
    def comes_later(columns, i, q, a, b):
        x = columns[i, min(max(a, 0), length - 1), q]
        y = columns[i, min(max(b, 0), length - 1), q]
        return before(y, x) or (a > b and not before(x, y))

    sink = sinking(comes_later)

    @tl.kernel
    def topk(x: X, values: tl.out[V], indices: tl.out[I]):
        columns = tl.view(x, x.dtype[outer, length, inner])
        best = tl.view(values, values.dtype[outer, count, inner])
        places = tl.view(indices, indices.dtype[outer, count, inner])
        assert count <= length, f"{count} elements are asked for along an axis of {length}"
        # Without elements there is no last one.
        for piece in tl.parallel(outer * inner if count > 0 else 0):
            i = piece // inner
            q = piece % inner
            for j in range(count):
                places[i, j, q] = indices.dtype(j)
            for step in range(count // 2):
                sink(places, i, q, count // 2 - 1 - step, count, columns, i)
            last = columns[i, min(max(places[i, 0, q], 0), length - 1), q]
            for j in range(count, length):
                if before(columns[i, j, q], last):
                    places[i, 0, q] = indices.dtype(j)
                    sink(places, i, q, 0, count, columns, i)
                    last = columns[i, min(max(places[i, 0, q], 0), length - 1), q]
            for step in range(count - 1):
                end = count - 1 - step
                latest = places[i, 0, q]
                places[i, 0, q] = places[i, end, q]
                places[i, end, q] = latest
                sink(places, i, q, 0, end, columns, i)
            for j in range(count):
                best[i, j, q] = columns[i, min(max(places[i, j, q], 0), length - 1), q]

    return topk.ir


@factory
def cumsum(X: TensorType, Y: TensorType, *, axis: int = -1, exclusive: bool = False, reverse: bool = False) -> PrimFunc:
    """Sums of all beginnings along an axis; without the element itself if `exclusive`, from the end if `reverse`."""
    return _running("cumsum", X, Y, axis, exclusive, reverse, added, 0)


@factory
def cumprod(
    X: TensorType, Y: TensorType, *, axis: int = -1, exclusive: bool = False, reverse: bool = False
) -> PrimFunc:
    """As `cumsum`, the products."""
    return _running("cumprod", X, Y, axis, exclusive, reverse, multiplied, 1)


def _running(
    name: str, X: TensorType, Y: TensorType, axis: int, exclusive: bool, reverse: bool, join: Inline, start: int
) -> PrimFunc:
    outer, length, inner = around(X, axis)
    kind = computed_in(X.dtype)

    @tl.kernel
    def running(x: X, y: tl.out[Y]):
        columns = tl.view(x, x.dtype[outer, length, inner])
        results = tl.view(y, y.dtype[outer, length, inner])
        for i in tl.parallel(outer):
            for q in tl.parallel(inner):
                total = kind(start)
                for step in range(length):
                    j = length - 1 - step if tl.static(reverse) else step
                    before = total
                    total = join(before, kind(columns[i, j, q]))
                    results[i, j, q] = y.dtype(before if tl.static(exclusive) else total)

    return running.ir.named(name)


@factory
def nonzero(X: TensorType, Y: TensorType) -> PrimFunc:
    """y[axis, k] = the index along each axis of element k that is not zero, in order; y has room for all of them."""
    shape, found = extents(X), extents(Y)[1]
    count = elements(X)
    inner = tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))
    # Of no elements none is found, and their indices would be divided by 0.
    depth = 0 if any(isinstance(each, int) and each == 0 for each in shape) else len(shape)

    @tl.inline
    def put(y, at, t, axis=0):
        if tl.static(axis < depth):
            y[axis, at] = t // tl.static(inner[axis]) % tl.static(shape[axis])
            put(y, at, t, tl.static(axis + 1))

    @tl.kernel
    def nonzero(x: X, y: tl.out[Y]):
        flat = tl.view(x, x.dtype[count])
        at = 0
        for t in range(count):
            if flat[t] != 0:
                assert at < found, f"more than {found} elements are not zero"
                put(y, at, t)
                at += 1
        assert at == found, f"{at} elements are not zero, and {found} were said to be"

    return nonzero.ir


def sinking(is_above: Inline) -> Inline:
    """Makes a function that sifts the index at a place down a heap, until it is above both of its children.

    The heap is the first `count` elements of heap[i, :, q]; `is_above(keys, row, q, a, b)` compares two of them, which
    are indices, by what stands at these in keys[row, :, q].
    """

    @tl.inline
    def sink(heap, i, q, place, count, keys, row):
        at = place
        child = 2 * at + 1
        while child < count:
            other = min(child + 1, count - 1)
            if is_above(keys, row, q, heap[i, other, q], heap[i, child, q]):
                child = other
            upper = heap[i, at, q]
            lower = heap[i, child, q]
            if is_above(keys, row, q, lower, upper):
                heap[i, at, q] = lower
                heap[i, child, q] = upper
                at = child
                child = 2 * at + 1
            else:
                child = count

    return sink


@factory
def sort_rows(X: TensorType, O: TensorType, F: TensorType) -> PrimFunc:
    """order = the indices of the rows of x in order, equal ones as they stand; fresh where one differs from the last.

    Elements count from left to right; nan stands after all numbers, and equals itself.
    """
    count, width = extents(X)
    kind = tl.u8 if X.dtype.is_bool else computed_in(X.dtype)

    differ_at = _differing(kind, width)
    is_before = _before(kind)

    @tl.kernel
    def sort_rows(x: X, order: tl.out[O], fresh: tl.out[F]):
        merged = tl.alloc(tl.i64[count])
        for i in range(count):
            order[i] = i
        run = tl.i64(1)
        while run < count:
            for pair in range((count + 2 * run - 1) // (2 * run)):
                low = pair * 2 * run
                middle = min(low + run, count)
                high = min(low + 2 * run, count)
                left = low
                right = middle
                for k in range(low, high):
                    take_right = left >= middle
                    if left < middle and right < high:
                        a = order[left]
                        b = order[right]
                        q = differ_at(x, b, a)
                        if q < width:
                            take_right = is_before(kind(x[b, q]), kind(x[a, q]))
                    if take_right:
                        merged[k] = order[right]
                        right += 1
                    else:
                        merged[k] = order[left]
                        left += 1
            for i in range(count):
                order[i] = merged[i]
            run *= 2
        for i in range(count):
            if i == 0:
                fresh[i] = True
            else:
                fresh[i] = differ_at(x, order[i], order[i - 1]) < width

    return sort_rows.ir


def _differing(kind: DType, width: Extent) -> Inline:
    """The first column in which two rows are not the same, `width` if there is none."""

    @tl.inline
    def is_same(a, b):
        if tl.static(kind.is_float):
            return a == b or (tl.isnan(a) and tl.isnan(b))
        else:
            return a == b

    @tl.inline
    def differ_at(x, a, b):
        q = 0
        while q < width and is_same(kind(x[a, min(q, width - 1)]), kind(x[b, min(q, width - 1)])):
            q += 1
        return q

    return differ_at


def _before(kind: DType) -> Inline:
    """Whether an element is less than another one, with nan greater than all numbers."""

    @tl.inline
    def is_before(a, b):
        if tl.static(kind.is_float):
            return a < b or (tl.isnan(b) and not tl.isnan(a))
        else:
            return a < b

    return is_before
