"""Says in sentences, from the facts, why one buffer may take over the bytes of another one, or why not."""

from __future__ import annotations

from typing import TypeAlias

from tirlite.analysis.access import AccessKind, Touch
from tirlite.ir import Buffer, For, ForKind, KernelCall, Load, Node, Stmt, Store, While, text
from tirlite.record import record

Interval = tuple[int, int]


@record
class Reason:
    """A sentence, with places for the names of what it is about: these are put in where someone reads it."""

    sentence: str
    about: tuple[object, ...] = ()

    def __str__(self) -> str:
        return self.sentence.format(*(each.name if isinstance(each, Buffer) else each for each in self.about))


@record
class WrittenTooEarly:
    """The destination may be written before the source is done with the same byte."""

    write: Touch
    access: Touch
    loop: For | While | None  # in another iteration of this one

    def __str__(self) -> str:
        early, late, loop = self.write, self.access, self.loop
        touched = "read" if isinstance(late.node, Load) else "written"
        sentence = f"`{_access(early)}` may be written before `{_access(late)}` is {touched} at the same place"
        if loop is None:
            return f"{sentence}, in one run of the same statements"
        if not isinstance(loop, For):
            return f"{sentence}, in an earlier run of the while loop"
        if loop.kind in (ForKind.PARALLEL, ForKind.THREAD, ForKind.VECTORIZED):
            return f"{sentence}, in another iteration of `{loop.var.name}`, and these have no order"
        return f"{sentence}, in an earlier iteration of `{loop.var.name}`"


Obstacle: TypeAlias = Reason | WrittenTooEarly


@record(guarded=False)
class InPlaceProof:
    """Whether `destination`, which is first touched by the statement `at`, may stand on the bytes of `source`.

    `source` is touched for the last time by `until`: the same statement, or one that follows it in its body. Both begin
    at one address while these run: over the positions `during` of the linear access sequence, the only ones at which
    both live. `obstacle` is the condition that failed, or None. Nothing else is proved, for instance of a third buffer,
    of alignment or of sizes: what of the larger one lies behind the end of the smaller one is a matter of its own
    lifetime. `touches` are all those of the destination and of the source that were looked at: the proof knows of no
    others.
    """

    destination: Buffer
    source: Buffer
    at: Stmt
    until: Stmt
    during: Interval
    obstacle: Obstacle | None = None
    touches: tuple[tuple[Touch, ...], tuple[Touch, ...]] = ((), ())

    @property
    def accesses(self) -> tuple[tuple[Buffer, Node, bool], ...]:
        """The touches in program order: the buffer of the two, what touches it, and whether that writes."""
        found = [
            (touch.position, isinstance(touch.node, KernelCall), touch.kind is AccessKind.WRITE, buffer, touch.node)
            for buffer, touches in zip((self.destination, self.source), self.touches, strict=True)
            for touch in touches
        ]
        found.sort(key=lambda each: each[:3])
        return tuple((buffer, node, writes) for _, _, writes, buffer, node in found)

    @property
    def allowed(self) -> bool:
        """Whether the destination may take over the bytes of the source."""
        return self.obstacle is None

    @property
    def reason(self) -> str:
        """Why it is allowed, or what stands against it."""
        if self.obstacle is not None:
            return str(self.obstacle)
        one, other = self.destination.name, self.source.name
        return f"each element of `{one}` is written after the last use of the element of `{other}` at the same place"

    def __str__(self) -> str:
        where = "" if self.at.span is None else f" at {self.at.span}"
        may = "may" if self.allowed else "may not"
        return f"`{self.destination.name}` {may} overwrite `{self.source.name}` in place{where}: {self.reason}"


def _access(touch: Touch) -> str:
    node = touch.node
    assert isinstance(node, Load | Store)
    return text(node if isinstance(node, Load) else Load(node.buffer, node.indices))
