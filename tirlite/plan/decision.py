"""Why a request lies where it lies: a choice, and what it changed."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tirlite.sizes import Size


class Choice(Enum):
    """The kinds of reasons that strategies give."""

    ALONE = "alone"
    REGISTER = "register"
    OPENS = "opens"
    SAME = "same"
    ROOM = "room"
    GROWS = "grows"
    FIRST = "first"
    FIXED = "fixed"
    PACKED = "packed"
    IN_PLACE = "in-place"
    GIVEN = "given"


_TEXTS = {
    Choice.ALONE: "has storage of its own: this strategy shares nothing",
    Choice.REGISTER: "has storage of its own: it is taken for a register, or cannot be shared by this strategy",
    Choice.OPENS: "opens storage: of what was there, nothing free was to be taken",
    Choice.SAME: "takes free storage of its own size",
    Choice.ROOM: "takes free storage of {before} bytes, which has room",
    Choice.GROWS: "takes free storage of {before} bytes, which grows",
    Choice.FIRST: "takes the symbolic storage that has been free for longest",
    Choice.FIXED: "stands at the offset that it demands",
    Choice.PACKED: "stands above or below all that is live with it",
    Choice.IN_PLACE: "takes over the place of its source, which dies where it is born",
    Choice.GIVEN: "was placed there by whoever made the plan",
}


class Decision(NamedTuple):
    """A choice, and the size in bytes of the storage taken, before it was taken."""

    choice: Choice
    before: Size | None = None

    def __str__(self) -> str:
        return _TEXTS[self.choice].format(before=self.before)
