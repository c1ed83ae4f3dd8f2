"""What a random program may read and write at the point where it is being written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fuzz.extents import Counter, Extent

from tirlite.ir import Buffer, Expr, Var


@dataclass(frozen=True, eq=False)
class Slot:
    """A buffer with its extents; `root` is the one whose bytes it has, maybe itself."""

    buffer: Buffer
    extents: tuple[Extent, ...]
    root: Slot | None = None

    @property
    def storage(self) -> Slot:
        return self.root or self


@dataclass
class Scope:
    """The state of one block. A nested block starts with a copy, and what it adds ends with it.

    `full` are storages of which every element was written; `points` single elements that were. `frozen` storages may
    not be written; `owned` ones only be touched at the given first index, by the slot itself. `cost` estimates how
    often the block runs. `in_threads` says that each thread runs it.
    """

    slots: list[Slot] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    scalars: list[Var] = field(default_factory=list)
    full: dict[Slot, None] = field(default_factory=dict)
    points: list[tuple[Slot, tuple[Expr, ...]]] = field(default_factory=list)
    frozen: dict[Slot, None] = field(default_factory=dict)
    owned: dict[Slot, Expr] = field(default_factory=dict)
    cost: int = 1
    depth: int = 0
    is_vectorized: bool = False
    in_threads: bool = False

    def child(self, *counters: Counter, cost: int = 1) -> Scope:
        """The scope of a block inside, in loops with these counters."""
        return replace(
            self,
            slots=list(self.slots),
            counters=[*self.counters, *counters],
            scalars=list(self.scalars),
            full=dict(self.full),
            points=list(self.points),
            frozen=dict(self.frozen),
            owned=dict(self.owned),
            cost=self.cost * cost,
            depth=self.depth + 1,
        )

    def can_touch(self, slot: Slot) -> bool:
        """Whether a slot may be mentioned: an owned storage by its own slot alone."""
        return slot.root is None or slot.storage not in self.owned

    def readable(self) -> list[Slot]:
        return [slot for slot in self.slots if slot.storage in self.full and self.can_touch(slot)]

    def writable(self) -> list[Slot]:
        return [slot for slot in self.slots if slot.storage not in self.frozen and self.can_touch(slot)]
