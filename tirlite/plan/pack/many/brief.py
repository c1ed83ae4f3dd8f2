"""Packs an instance by a series of brief searches with restarts, and returns the lowest offsets found.

A search that does not succeed soon seldom succeeds at all; so each is brief, and the next one prefers the buffers that
those before it did not place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from random import Random

from tirlite.plan.search.cells import FOUND, NODES, RUNNING, STATUS, Cells, load, offsets, restart
from tirlite.plan.search.engine import Engine
from tirlite.plan.search.instance import Instance
from tirlite.record import record

# The most searches.
_SEARCHES = 200
# Searches from one start; the factor by which buffers left over gain in weight, at most; and the seed of that.
_CHAIN, _FORWARD, _SEED = 3, 1.5, 2_917
# By how much the weights at a start are disturbed, at most, once each key has been tried as it is.
_NOISE = 0.2
# If the best is closer to what failed than this part of its distance to the least, failures are forgotten.
_STEPS = 4


@record(frozen=False)
class Brief:
    """Searches of an instance, which order its buffers by each of the `weights` in turn.

    Each has `depth` nodes per buffer; after `patience` failures another capacity is tried. `work` is what is left for
    all searches, in nodes times buffers.
    """

    instance: Instance
    weights: Sequence[Sequence[float]]
    depth: float
    patience: int
    work: int

    def lowest(
        self, engine: Engine, least: int, first: int, goal: int, below: int | None = None
    ) -> tuple[list[int], int] | None:
        """Offsets of the buffers and their height, in units; or None.

        `least` is a lower bound of the height, `first` the capacity to begin with, and `goal` low enough; the height is
        less than `below`.
        """
        instance = self.instance
        if (sum(instance.sizes) + sum(instance.aligns) + max(instance.nets)) * instance.unit > engine.largest:
            return None
        best = None
        cells = load(instance, engine)
        nodes = int(self.depth * len(instance.sizes))
        ladder = _Ladder(self.patience, least, first, below)
        wheel = _Wheel(self.weights)
        for _ in range(_SEARCHES):
            restart(cells, instance, wheel.order(), ladder.capacity)
            while cells.state[STATUS] == RUNNING and cells.state[NODES] < nodes:
                engine.advance(cells, min(engine.slice, nodes - int(cells.state[NODES])))
            self.work -= int(cells.state[NODES]) * len(instance.sizes)
            if cells.state[STATUS] == FOUND:
                found = offsets(cells)
                top = max(offset + net for offset, net in zip(found, instance.nets, strict=True))
                best = found, top
                ladder.succeed(top)
            else:
                ladder.fail()
                wheel.turn(cells)
            if self.work < 0 or (ladder.best is not None and ladder.best <= max(least, goal)):
                break
        return best


@record(frozen=False)
class _Ladder:
    """The capacity to try: halfway between the best packing and `least`, or a capacity that failed often."""

    patience: int
    least: int
    capacity: int
    best: int | None = None
    failed: int = 0
    failures: int = 0

    def succeed(self, top: int) -> None:
        self.best = top
        self._go_on()

    def fail(self) -> None:
        self.failures += 1
        if self.failures >= self.patience:
            self.failed = self.capacity
            self._go_on()

    def _go_on(self) -> None:
        self.failures = 0
        if self.best is None:
            self.capacity += self.capacity - self.least + 1
            return
        # It may have failed by chance.
        if (self.best - self.failed) * _STEPS < self.best - self.least:
            self.failed = self.least
        self.capacity = (max(self.failed, self.least) + self.best) // 2


@record(frozen=False)
class _Wheel:
    """Orders of buffers by several keys in turn; those that a search does not place gain in weight.

    Source: Joslin and Clements, Squeaky Wheel Optimization (1999).
    """

    keys: Sequence[Sequence[float]]
    weights: list[float] = field(default_factory=list)
    turns: int = 0
    noise: Random = field(default_factory=lambda: Random(_SEED))

    def order(self) -> list[int]:
        """The buffers, those of the largest weight first."""
        if self.turns % _CHAIN == 0:
            key = self.keys[self.turns // _CHAIN % len(self.keys)]
            is_first = self.turns < _CHAIN * len(self.keys)
            self.weights = [weight if is_first else weight * self.noise.uniform(1 - _NOISE, 1) for weight in key]
        self.turns += 1
        return sorted(range(len(self.weights)), key=lambda c: (-self.weights[c], c))

    def turn(self, cells: Cells) -> None:
        """Raises the weight of each buffer that was not placed."""
        for c, weight in enumerate(self.weights):
            if cells.placed[c] < 0:
                self.weights[c] = weight * self.noise.uniform(1, _FORWARD)
