"""What a check says: Ok, or a counterexample that names requests, time and bytes."""

from __future__ import annotations

from enum import Enum

from tirlite.record import record
from tirlite.sizes import Size


class Fault(Enum):
    """The ways in which a plan can be wrong."""

    MISSING = "missing"
    STRANGER = "stranger"
    NO_POOL = "no-pool"
    WRONG_MEMORY = "wrong-memory"
    MISALIGNED = "misaligned"
    NEGATIVE = "negative"
    NOT_FIXED = "not-fixed"
    OUTSIDE = "outside"
    OVERLAP = "overlap"
    TOTAL = "total"
    CAPACITY = "capacity"
    IN_PLACE = "in-place"


@record
class Ok:
    """The plan is safe for all values of its dims. True."""

    def __bool__(self) -> bool:
        return True


@record
class Counterexample:
    """What is wrong with a plan: the requests, the time, the bytes [low, high) and the memory concerned. False."""

    fault: Fault
    text: str
    requests: tuple[str, ...] = ()
    time: int | None = None
    bytes: tuple[Size, Size] | None = None
    memory: str = ""

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.text
