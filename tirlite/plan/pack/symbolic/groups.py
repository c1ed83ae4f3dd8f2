"""Packs groups of requests of symbolic sizes at offsets that hold for all values of the dims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from tirlite.plan.blocks import Block, Piece, Sections, block_of, sections_of, top_of
from tirlite.plan.in_place import Group, handover
from tirlite.plan.order import Binding, SizeOrder, drawn
from tirlite.plan.pack.portfolio import pack_blocks
from tirlite.plan.pack.symbolic.orders import ENOUGH, Trials, least_cost, robust_orders
from tirlite.plan.pack.symbolic.vectors import Cover, Fronts, Padding, Products, fronts_of
from tirlite.plan.scale import Scale
from tirlite.record import record, replace
from tirlite.sizes import Dim, Proof, Size, dims_of, maximum, prove_divides, round_up
from tirlite.sizes.extrema import maximum_of_all

if TYPE_CHECKING:
    from tirlite.plan.pack.symbolic.vectors import Values, Vectors

# The most sizes that an offset is the maximum of; an order that needs more is given up.
_WIDEST = 12

# The maximum of some sizes, none of which is proved to be at most another.
Height = tuple[Size, ...]


class Bytes(NamedTuple):
    """A stretch of sections [low, high) in which a block fills this many bytes."""

    low: int
    high: int
    size: Size


@record
class Tower:
    """A block of symbolic sizes, over sections."""

    spans: tuple[Bytes, ...]
    align: int


@record
class Stack:
    """The offset of each tower, and the total size."""

    offsets: tuple[Size, ...]
    total: Size


def stack(towers: Sequence[Tower], count: int, order: Iterable[int], compare: SizeOrder) -> Stack | None:
    """The towers over `count` sections, stacked in an order; None where an offset depends on too many sizes."""
    tops: list[tuple[int, Size] | None] = [None] * count
    ends: dict[tuple[int, Size], Height] = {}
    offsets: list[Height] = [(0,)] * len(towers)
    for number in order:
        tower = towers[number]
        below = dict.fromkeys(top for low, high, _ in tower.spans for top in tops[low:high] if top is not None)
        height = _highest((size for top in below for size in ends[top]), compare)
        if tower.align > 1:
            height = _highest((round_up(size, tower.align) for size in height), compare)
        if len(height) > _WIDEST:
            return None
        offsets[number] = height or (0,)
        for low, high, size in tower.spans:
            ends[number, size] = tuple(offset + size for offset in offsets[number])
            tops[low:high] = [(number, size)] * (high - low)
    total = _highest((size for top in dict.fromkeys(tops) if top is not None for size in ends[top]), compare)
    if len(total) > _WIDEST:
        return None
    return Stack(tuple(_size(height) for height in offsets), _size(total or (0,)))


def _size(height: Height) -> Size:
    return height[0] if len(height) == 1 else maximum(*height)


def _highest(sizes: Iterable[Size], compare: SizeOrder) -> Height:
    """The sizes that are not proved to be at most another one, the largest at the first binding first."""
    kept: list[Size] = []
    for size in sorted(dict.fromkeys(sizes), key=compare.values, reverse=True):
        if not any(compare.fits(size, other) for other in kept):
            kept = [other for other in kept if not compare.fits(other, size)]
            kept.append(size)
    return tuple(kept)


# The most groups, and sections of all groups, unless all sizes are multiples of one.
_MANY = 3000
_CROWD = 300_000
# The budget of a proof that one height is at most another. Of long sums most proofs fail and use up their budget, while
# those that succeed take a few steps.
_SEARCHED = 8
# The best orders, which are stacked for all values of the dims.
_TRIES = 3
# The most sizes that an offset is the maximum of, in each turn of the search for orders: there is another turn where
# those found may need more bytes than the slots.
_WIDE = (12, 20, 32, 32)
# The most pieces of groups, and sections of all groups, for which other orders than that of the slots are tried.
_SEVERAL, _LOOSE = 2000, 100_000
# The weight of bytes in columns of a later turn, when vectors are merged.
_DEAR = 8.0
# Looks at groups that are packed as numbers to estimate their cost.
_NEARBY = 2_000
# Bindings at which orders are tried, beside the samples; and the greatest value in half as many more.
_DRAWN, _SMALL = 32, 12


@record
class Slots:
    """A plan of whole slots: the number of the slot of each request by its id, the sizes in each slot, and whether any
    pairs are in place there.

    `beside` are the sizes in the slots of another plan, if any, whose total should not be exceeded either.
    """

    numbers: Mapping[str, int]
    sizes: Sequence[Sequence[Size]]
    has_pairs: bool
    beside: Sequence[Sequence[Size]] = ()

    def order(self, groups: Sequence[Group]) -> tuple[int, ...]:
        """The numbers of groups in the order of their slots."""
        return tuple(sorted(range(len(groups)), key=lambda i: (self.numbers[groups[i].members[0].id], i)))

    @property
    def ceilings(self) -> list[Sequence[Sequence[Size]]]:
        """Sums of maxima, none of which may be exceeded."""
        return [self.sizes, self.beside] if self.beside else [self.sizes]


def pack_groups(
    groups: Sequence[Group], aligns: Sequence[int], whole: Callable[[], Slots], bindings: Sequence[Binding], budget: int
) -> Iterator[tuple[Stack, bool]]:
    """Ways to pack groups of symbolic sizes, the most promising first; none where there are too many groups.

    With each comes whether it is proved to need no more bytes than the slots, at any binding. The groups are stacked in
    orders that are good at many bindings. The order of the slots comes last: in it, a group rests on nothing that
    reaches into its own slot, and needs no more bytes than the slots, unless alignment costs padding. `whole` is called
    unless all sizes are multiples of one.
    """
    scale = Scale.of((size for group in groups for _, size in group.pieces), max(aligns))
    if scale is not None:
        yield _multiples(groups, aligns, scale, budget), False
        return
    if len(groups) > _MANY:
        return
    compare = SizeOrder(bindings, _SEARCHED)
    sections = _sections(groups, compare)
    crowd = sum(high - low for rows in sections.spans for low, high, _ in rows)
    if crowd > _CROWD:
        return
    towers = [
        Tower(
            tuple(Bytes(low, high, size) for (low, high, _), (_, size) in zip(rows, group.pieces, strict=True)), align
        )
        for rows, group, align in zip(sections.spans, groups, aligns, strict=True)
    ]
    slots, dims = whole(), _dims(towers)
    order = slots.order(groups)
    bindings = (*bindings, *drawn(dims, _DRAWN), *drawn(dims, _DRAWN // 2, _SMALL))
    shape = _Shape(towers, sections, bindings, _larger(groups))
    if sum(len(group.pieces) for group in groups) <= _SEVERAL and crowd <= _LOOSE:
        yield from _robust(shape, slots, order, compare)
    stacked = stack(towers, len(sections.load), order, compare)
    if stacked is not None:
        is_apart = not slots.has_pairs and all(len(group.members) == 1 for group in groups)
        yield stacked, is_apart and max(aligns) == 1


def layout_cost(
    groups: Sequence[Group], align: int, bindings: Sequence[Binding], floor: Size, moves: int, enough: float
) -> float:
    """The cost of the best order that a few moves of each group find, at some bindings, relative to a `floor`.

    Where all sizes are multiples of one, the cost of packing them as numbers.
    """
    import numpy as np

    values = SizeOrder(bindings).values
    aligns = [max(align, group.align) for group in groups]
    scale = Scale.of((size for group in groups for _, size in group.pieces), max(aligns))
    if scale is not None:
        needed = values(_multiples(groups, aligns, scale, _NEARBY).total)
        ratios = [max(1.0, bytes_ / max(least, 1)) for bytes_, least in zip(needed, values(floor), strict=True)]
        return sum(ratios) / len(ratios)
    sizes = [np.array([values(size) for _, size in group.pieces], np.float64) for group in groups]
    limits = np.full(len(bindings), np.inf)
    trials = Trials.of(_sections(groups, SizeOrder(bindings)), aligns, sizes, limits, len(bindings))
    return least_cost(replace(trials, floors=np.maximum(values(floor), 1.0)), moves, enough)


@record
class _Shape:
    """The towers to stack, the bindings at which orders are tried, and the sizes that some sizes are the maximum of."""

    towers: Sequence[Tower]
    sections: Sections
    bindings: Sequence[Binding]
    larger: Mapping[Size, tuple[Size, ...]]

    def trials(self, values: Mapping[Size, Values], slots: Slots, *, is_padded: bool = False) -> Trials:
        """The trials, given the value of each size in each column, the bindings first."""
        import numpy as np

        limits = np.array(
            [sum(np.max([values[size] for size in inside], axis=0) for inside in ceiling) for ceiling in slots.ceilings]
        )
        if is_padded:
            # A product in no slot comes from rounding up: it has no limit.
            limits[1:, len(self.bindings) :] = np.inf
            limits[limits <= 0] = np.inf
        return Trials.of(
            self.sections,
            [tower.align for tower in self.towers],
            [np.array([values[span.size] for span in tower.spans]) for tower in self.towers],
            limits.min(axis=0),
            len(self.bindings),
        )

    def padding(self, rounded: Mapping[Size, Vectors], products: Products) -> Padding:
        """The padding that keeps the towers aligned; `rounded` are the vectors of each size rounded up."""
        moduli = {align: products.moduli(align) for align in {tower.align for tower in self.towers}}
        return Padding(
            [[rounded[span.size] for span in tower.spans] for tower in self.towers],
            [moduli[tower.align] for tower in self.towers],
        )


def _robust(shape: _Shape, slots: Slots, order: tuple[int, ...], compare: SizeOrder) -> Iterator[tuple[Stack, bool]]:
    """Stacks in the best orders found at many bindings."""
    import numpy as np

    known = dict.fromkeys(size for ceiling in slots.ceilings for sizes in ceiling for size in sizes)
    spans = dict.fromkeys(span.size for tower in shape.towers for span in tower.spans)
    options = {size: shape.larger.get(size, (size,)) for size in spans}
    known.update((size, None) for sizes in options.values() for size in sizes)
    align = max(tower.align for tower in shape.towers)
    padded = {size: tuple(even(each, align) for each in sizes) for size, sizes in options.items()}
    products = Products.of(chain(known, *padded.values()))
    starts = [order]
    if products is None or padded != options:
        values = SizeOrder(shape.bindings).values
        trials = shape.trials({size: np.array(values(size), np.float64) for size in (*known, *options)}, slots)
        orders = robust_orders(trials, starts, _TRIES)
        starts += orders
        if products is not None:
            # Offsets rounded one by one may be beyond a proof: only where they reach the bound.
            orders = [order for order in orders[:1] if trials.cost(trials.tops(order)) <= ENOUGH]
        for order in orders:
            stacked = stack(shape.towers, len(shape.sections.load), order, compare)
            if stacked is not None:
                yield stacked, False
    if products is None:
        return
    yield from _proved(shape, slots, starts, products, options, padded)


def _proved(
    shape: _Shape,
    slots: Slots,
    starts: Sequence[tuple[int, ...]],
    products: Products,
    options: Mapping[Size, Sequence[Size]],
    padded: Mapping[Size, Sequence[Size]],
) -> Iterator[tuple[Stack, bool]]:
    """The best stack of vectors that is proved to need no more bytes than the slots, else the one that comes nearest.

    Where the best ones may need more, there is another turn, with more columns: values of the products at which they
    may.
    """
    import numpy as np

    vectors = {size: np.array(vector) for size, vector in products.vectors.items()}
    fronts_of_size = {size: np.array([vectors[each] for each in some]) for size, some in options.items()}
    rounded = {size: np.array([vectors[each] for each in some]) for size, some in padded.items()}
    sizes = [[fronts_of_size[span.size] for span in tower.spans] for tower in shape.towers]
    padding = None if padded == options else shape.padding(rounded, products)
    facts = np.array(products.facts(), np.int64).reshape(-1, len(products.products))
    covers = [
        Cover.of([np.array([vectors[size] for size in inside]) for inside in ceiling], facts)
        for ceiling in slots.ceilings
    ]
    sure = [cover for cover in covers if cover is not None]
    worth = np.concatenate([products.values(shape.bindings), np.eye(len(products.products))], axis=1)
    first = worth.shape[1]
    best = list[tuple[float, tuple[int, ...], Fronts]]()
    for turn in range(len(_WIDE)):
        values = {size: vector @ worth for size, vector in vectors.items()}
        values |= {size: (front @ worth).max(axis=0) for size, front in fronts_of_size.items()}
        if padding is not None:
            beyond = len(shape.bindings)
            for size, front in rounded.items():
                values[size][beyond:] = (front @ worth[:, beyond:]).max(axis=0)
        trials = shape.trials(values, slots, is_padded=padding is not None)
        starts = robust_orders(trials, starts, _TRIES, is_first=turn == 0 and padding is None)
        stacking = _Stacking(shape.sections, sizes, trials, worth, first, padding)
        tried = [(order, stacking.fronts(order, _WIDE[turn])) for order in starts]
        made = sorted(((stacking.cost(*each), *each) for each in tried), key=lambda each: each[0])
        if len(sure) < len(covers):
            break
        directions: list[Values] = []
        for each in made:
            found = _excess(each[2], sure)
            if not found:
                best.append(each)
                break
            directions += found
        if not directions:
            break
        columns = _new([each / each.max() for each in directions if each.any()], worth)
        worth = np.concatenate([worth, *(each[:, None] for each in columns)], axis=1)
    _, order, fronts = min(best or made, key=lambda each: each[0])
    # Offsets that are rounded up one by one are never above those made of sizes that are rounded up.
    compare = SizeOrder(shape.bindings, _SEARCHED)
    exact = None if padding is None else stack(shape.towers, len(shape.sections.load), order, compare)
    yield exact or _stack_of(fronts, products), bool(best)


@record
class _Stacking:
    """Blocks whose sizes are vectors, and the values of products in the columns of trials; those before `first` are
    bindings, or have one product alone.
    """

    sections: Sections
    sizes: Sequence[Sequence[Vectors]]
    trials: Trials
    worth: Values
    first: int
    padding: Padding | None

    def fronts(self, order: tuple[int, ...], wide: int) -> Fronts:
        """The blocks stacked in an order; an offset is the maximum of at most `wide` vectors."""
        prices = self.worth / self.trials.floors
        prices[:, self.first :] *= _DEAR
        return fronts_of(self.sections, self.sizes, order, prices, wide, self.padding)

    def cost(self, order: tuple[int, ...], fronts: Fronts) -> float:
        """The cost of the total in the columns; with a padding, of offsets that are rounded up one by one."""
        return self.trials.cost(
            (fronts.total @ self.worth).max(axis=0) if self.padding is None else self.trials.tops(order)
        )


def _excess(fronts: Fronts, covers: Sequence[Cover]) -> list[Values]:
    """Values of the products at which the total may exceed a cover; none where it is proved not to."""
    beyond = [cover.excess(fronts.total) for cover in covers]
    return [direction for direction in beyond if direction is not None]


def _new(directions: Iterable[Values], worth: Values) -> list[Values]:
    """The directions that are not among the columns, each once."""
    import numpy as np

    found: list[Values] = []
    for each in directions:
        if not any(np.allclose(each, other) for other in (*found, *worth.T)):
            found.append(each)
    return found


def _stack_of(fronts: Fronts, products: Products) -> Stack:
    known: dict[bytes, Size] = {}

    def size(front: Vectors) -> Size:
        key = front.tobytes()
        if key not in known:
            known[key] = maximum_of_all([products.size(row) for row in front.tolist()])
        return known[key]

    return Stack(tuple(map(size, fronts.offsets)), size(fronts.total))


def _larger(groups: Iterable[Group]) -> dict[Size, tuple[Size, ...]]:
    """The two sizes that each size at a handover is the maximum of, unless it is one of them."""
    found: dict[Size, tuple[Size, ...]] = {}
    for group in groups:
        pieces = dict(group.pieces)
        for source, destination in pairwise(group.members):
            at = handover(destination.live, source.live)
            two = source.size, destination.size
            if at is not None and pieces[at] not in two:
                found[pieces[at]] = two
    return found


def even(size: Size, align: int) -> Size:
    """The size, rounded up to a multiple of `align` unless it is proved to be one."""
    return size if align == 1 or prove_divides(align, size) is Proof.YES else round_up(size, align)


def _dims(towers: Sequence[Tower]) -> tuple[Dim, ...]:
    sizes = dict.fromkeys(span.size for tower in towers for span in tower.spans)
    return tuple(dict.fromkeys(dim for size in sizes for dim in dims_of(size)))


def _sections(groups: Sequence[Group], compare: SizeOrder) -> Sections:
    """The sections of groups, with their sizes at the first sample binding."""
    return sections_of([block_of(group, 1, compare.value) for group in groups])


def _multiples(groups: Sequence[Group], aligns: Sequence[int], scale: Scale, budget: int) -> Stack:
    """The groups packed as numbers, as their sizes are multiples of one size."""
    blocks = [
        Block(tuple(Piece(low, high, scale.count(size) or 0) for (low, high), size in group.pieces), scale.align(align))
        for group, align in zip(groups, aligns, strict=True)
    ]
    offsets = pack_blocks(blocks, budget)
    return Stack(tuple(offset * scale.unit for offset in offsets), top_of(blocks, offsets) * scale.unit)
