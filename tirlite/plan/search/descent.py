"""Finds ever lower packings of blocks, and ever higher lower bounds, within limits.

Several searches for one answer may run in parallel threads, in an order of preference. When one settles the question,
those after it in that order are abandoned, so that the answer does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import partial
from queue import SimpleQueue
from random import Random

from tirlite.plan.blocks import Block
from tirlite.plan.search.cells import FOUND, IMPOSSIBLE, NODES, RUNNING, STATUS, Cells, load, offsets, restart
from tirlite.plan.search.engine import Engine, Limits
from tirlite.plan.search.instance import Instance, instances
from tirlite.plan.search.sections import NONE_LOOSE, Loose
from tirlite.record import record

Start = Callable[[Cells], None]
# The statuses that settle the question of all searches.
ENDS = (FOUND, IMPOSSIBLE)


@record
class Outcome:
    """The status after a search, the nodes that it took, and the offsets if it has found a packing."""

    status: int
    nodes: int
    offsets: list[int] | None = None


@record(frozen=False)
class ParallelSearch:
    """Runs searches for one answer, as many at once as there are `cells`; all stop when `is_over()` holds."""

    engine: Engine
    cells: Sequence[Cells]
    is_over: Callable[[], bool]
    _last: int = field(default=0, init=False)
    _is_stopped: bool = field(default=False, init=False)

    def run(self, starts: Sequence[Start], nodes: int) -> list[Outcome]:
        """The outcomes of at most this many nodes from each start, up to the first that settles the question."""
        free: SimpleQueue[Cells] = SimpleQueue()
        for cells in self.cells:
            free.put(cells)
        self._last = len(starts)

        def search(number: int) -> Outcome:
            cells = free.get()
            try:
                starts[number](cells)
                return self._searched(number, cells, nodes)
            finally:
                free.put(cells)

        outcomes = []
        with ThreadPoolExecutor(len(self.cells)) as pool:
            try:
                for future in [pool.submit(search, number) for number in range(len(starts))]:
                    outcomes.append(future.result())
                    if outcomes[-1].status in ENDS:
                        break
            finally:
                # Also after an interrupt, as the pool waits for its threads.
                self._is_stopped = True
        return outcomes

    def _searched(self, number: int, cells: Cells, nodes: int) -> Outcome:
        used = 0
        while cells.state[STATUS] == RUNNING and used < nodes and not self._is_idle(number):
            before = int(cells.state[NODES])
            self.engine.advance(cells, min(nodes - used, self.engine.slice))
            used += int(cells.state[NODES]) - before
        status = int(cells.state[STATUS])
        if status in ENDS:
            self._last = min(self._last, number)
        return Outcome(status, used, offsets(cells) if status == FOUND else None)

    def _is_idle(self, number: int) -> bool:
        """Whether the outcome of the search of this number is no longer needed."""
        return self._is_stopped or number > self._last or self.is_over()


# Nodes for each order and capacity in the first round; each round has twice as many as the one before.
_FIRST = 250
# A round tries capacities between bound and best packing until they are within this part of that distance.
_PARTS = 8
# The fewest nodes for which searches run in threads.
_THREADED = 2_000


class Descent:
    """The search for one instance. `best` are the offsets of its best packing so far, in units.

    `report` is called now and then. With `below`, it looks only for packings of fewer bytes, and there may be none.
    """

    def __init__(
        self, instance: Instance, engine: Engine, limits: Limits, report: Callable[[], None], below: int | None = None
    ) -> None:
        self.instance = instance
        self.engine = engine
        self.limits = limits
        self._report = report
        self.best: list[int] | None = None
        self._lowest = instance.floor
        self._highest = sum(instance.sizes) + sum(instance.aligns) + sum(offset or 0 for offset in instance.fixed)
        self._loose = self._highest
        self._below = below
        if below is not None:
            self._highest = min(self._loose + 1, -(-below // instance.unit))
        self._stop = self._lowest
        self._rounds = 0
        self._orders = orders(instance)
        self._cells = [load(instance, engine)]

    @property
    def bound(self) -> int:
        """A proved lower bound of the bytes of every packing."""
        if self._below is not None and self.is_lost:
            return self._below
        return self._lowest * self.instance.unit

    @property
    def total(self) -> int:
        """The bytes of the best packing, or those below which one is looked for."""
        return self._highest * self.instance.unit

    @property
    def is_lost(self) -> bool:
        """Whether there is no packing, and none will be found."""
        return self.best is None and (self._below is None or self._highest <= self._lowest)

    def begin(self, start: Sequence[int] | None) -> None:
        """Begins with a packing of all blocks, in bytes; without one, finds any packing for each order.

        The first packing is searched for beyond the limits. Only fixed offsets can make it impossible.
        """
        instance = self.instance
        if start is not None and all(start[number] % instance.unit == 0 for number in instance.numbers):
            self._keep([start[number] // instance.unit for number in instance.numbers])
            return
        nodes = 2 * len(instance.sizes) + _FIRST
        if self._below is not None and not self._is_done and self._try(self._highest - 1, nodes):
            return
        for order in self._orders:
            if self._must_find or not self._is_done:
                self._attempt(order, self._loose, nodes)

    def round(self, goal: int, stop: int, wanted: int | None) -> None:
        """Searches a while for a packing of `goal` bytes, of `wanted` bytes, or of some between that and the best one.

        Returns early with a packing of `stop` bytes. Each round takes twice as long as the one before.
        """
        unit, nodes = self.instance.unit, _FIRST << self._rounds
        self._stop = stop // unit
        failed = self._lowest - 1
        for size in (goal, goal if wanted is None else wanted):
            capacity = max(size // unit, self._lowest)
            if not self._is_done and failed < capacity < self._highest and not self._try(capacity, nodes):
                failed = capacity
        least = max((self._highest - self._lowest) // _PARTS, 1)
        while not self._is_done and self._highest - failed > least:
            middle = (failed + self._highest) // 2
            if not self._try(middle, nodes):
                failed = middle
        if not self._is_done:
            self._rounds += 1
            self._orders[-1] = varied(self.instance, self._rounds)

    @property
    def _is_done(self) -> bool:
        return self._highest <= max(self._stop, self._lowest) or self.limits.is_over

    @property
    def _must_find(self) -> bool:
        return self._below is None and self.best is None

    def _try(self, capacity: int, nodes: int) -> bool:
        """Whether some order finds a packing of this height; that order is tried first from then on."""
        for position, status in enumerate(self._statuses(capacity, nodes)):
            if status == FOUND:
                self._orders.insert(0, self._orders.pop(position))
                return True
            if status == IMPOSSIBLE:
                self._lowest = max(self._lowest, capacity + 1)
                return False
        return False

    def _statuses(self, capacity: int, nodes: int) -> Iterator[int]:
        """The status after a search in each order, until the question is settled or the limits are over."""
        limits, orders = self.limits, self._orders
        if limits.threads > 1 and self.engine.is_parallel and _THREADED <= nodes <= limits.nodes // len(orders):
            yield from self._raced(capacity, nodes)
            return
        for order in orders:
            if limits.is_over:
                return
            yield self._attempt(order, capacity, nodes)

    def _raced(self, capacity: int, nodes: int) -> Iterator[int]:
        """The same from several threads."""
        while len(self._cells) < min(self.limits.threads, len(self._orders)):
            self._cells.append(load(self.instance, self.engine))
        starts = [partial(self._restart, order=order, capacity=capacity) for order in self._orders]
        for outcome in ParallelSearch(self.engine, self._cells, self.limits.is_late).run(starts, nodes):
            self.limits.spend(outcome.nodes)
            if outcome.offsets is not None:
                self._keep(outcome.offsets)
            self._report()
            yield outcome.status

    def _restart(self, cells: Cells, order: Sequence[int], capacity: int) -> None:
        restart(cells, self.instance, order, capacity)

    def _attempt(self, order: Sequence[int], capacity: int, nodes: int) -> int:
        """The status after one search of this many nodes; a packing that it finds is kept."""
        # An engine may replace the arrays of the cells.
        cells = self._cells[0]
        restart(cells, self.instance, order, capacity)
        while cells.state[STATUS] == RUNNING and nodes > 0 and (self._must_find or not self.limits.is_over):
            before = int(cells.state[NODES])
            most = nodes if self._must_find else self.limits.nodes
            self.engine.advance(cells, min(nodes, self.engine.slice, most))
            used = int(cells.state[NODES]) - before
            nodes -= used
            self.limits.spend(used)
        if cells.state[STATUS] == FOUND:
            self._keep(offsets(cells))
        self._report()
        return int(cells.state[STATUS])

    def _keep(self, found: list[int]) -> None:
        height = max(offset + net for offset, net in zip(found, self.instance.nets, strict=True))
        if self._must_find or height < self._highest:
            self.best, self._highest = found, height


_SPREAD = 0.4


def orders(instance: Instance) -> list[list[int]]:
    """Orders that begin with buffers that are hard to place: large, long-lived, or in a crowded section."""
    return [_sorted(instance, key) for key in _keys(instance)]


def varied(instance: Instance, seed: int) -> list[int]:
    """One of those orders, randomly disturbed; the same for the same seed."""
    random = Random(seed)
    keys = _keys(instance)
    key = keys[seed % len(keys)]
    weights = [random.uniform(1 - _SPREAD, 1) for _ in instance.sizes]
    return _sorted(instance, lambda c: tuple(part * weights[c] for part in key(c)))


def _keys(instance: Instance) -> Sequence[Callable[[int], tuple[float, ...]]]:
    sizes, widths = instance.sizes, instance.widths
    spans = [last - first for first, last in instance.spans]
    crowds = [0] * len(sizes)
    for section in instance.sections:
        total = sum(sizes[c] for c in section)
        for c in section:
            crowds[c] = max(crowds[c], total)
    return (
        lambda c: (sizes[c] * widths[c],),
        lambda c: (widths[c],),
        lambda c: (sizes[c] * spans[c],),
        lambda c: (crowds[c], spans[c]),
        lambda c: (sizes[c],),
        lambda c: (spans[c],),
        lambda c: (crowds[c], sizes[c]),
    )


def _sorted(instance: Instance, key: Callable[[int], tuple[float, ...]]) -> list[int]:
    return sorted(range(len(instance.sizes)), key=lambda c: (*(-part for part in key(c)), c))


@record
class Packing:
    """The offset of each block in bytes, the total, and a lower bound of the bytes of every packing.

    There are no offsets if packings of fewer bytes were asked for, and none was found. `is_flat` says that alignments
    never cost padding, so that the bound holds for packings in several arenas as well.
    """

    offsets: tuple[int, ...]
    total: int
    bound: int
    is_flat: bool


def minimise(
    blocks: Sequence[Block],
    engine: Engine,
    limits: Limits,
    start: Sequence[int] | None = None,
    wanted: int | None = None,
    enough: int = 0,
    below: int | None = None,
    loose: Loose = NONE_LOOSE,
) -> Packing | None:
    """The lowest packing found within the limits; None where none is found at all.

    `start` is a packing to begin with. Instances that do not overlap in time are searched in turns, always the one
    whose packing is highest. A packing of at most `wanted` bytes is looked for early; one of `enough` bytes ends the
    search, and only those of fewer than `below` bytes count. Blocks that are `loose` of each other may overlap.
    """
    needed = max([block.fixed + block.size for block in blocks if block.fixed is not None], default=0)

    def total() -> int:
        return max([needed, *(descent.total for descent in descents)])

    def bound() -> int:
        return max([needed, *(descent.bound for descent in descents)])

    def report() -> None:
        limits.report(total(), bound())

    descents = [Descent(instance, engine, limits, report, below) for instance in instances(blocks, loose)]
    try:
        for descent in descents:
            descent.begin(start)
        _descend(descents, limits, max(needed, enough), wanted)
    except KeyboardInterrupt:
        limits.interrupt()
    is_flat = all(descent.instance.is_flat for descent in descents)
    if below is not None and (needed >= below or any(descent.best is None for descent in descents)):
        return Packing((), below, bound(), is_flat)
    if any(descent.best is None for descent in descents):
        return None
    return Packing(_offsets(blocks, descents), total(), bound(), is_flat)


def _descend(descents: Sequence[Descent], limits: Limits, bound: int, wanted: int | None) -> None:
    """Searches until the highest instance is as low as the bound of all."""
    while descents and not limits.is_over and not any(descent.is_lost for descent in descents):
        bound = max([bound, *(descent.bound for descent in descents)])
        worst = max(descents, key=lambda descent: descent.total)
        enough = max(bound, wanted) if limits.stop_at_fit and wanted is not None else bound
        if worst.total <= enough:
            return
        lower = [descent.total for descent in descents if descent.total < worst.total]
        worst.round(bound, max([enough, *lower]), wanted)


def _offsets(blocks: Sequence[Block], descents: Sequence[Descent]) -> tuple[int, ...]:
    placed = [0 if block.fixed is None else block.fixed for block in blocks]
    for descent in descents:
        for number, offset in zip(descent.instance.numbers, descent.best or (), strict=True):
            placed[number] = offset * descent.instance.unit
    return tuple(placed)
