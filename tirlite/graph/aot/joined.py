"""Finds concatenations whose parts can be computed in the storage of the result, without a copy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import accumulate

from tirlite.graph.expr import Call, Expr
from tirlite.graph.fuse.groups import Grouping
from tirlite.graph.op import Axis, Op
from tirlite.graph.program import Block, Part, Program
from tirlite.graph.types import tensors
from tirlite.record import record

# Parts begin at cache lines, as buffers of their own would.
_LINE = 64


@record(eq=False)
class Join:
    """A concatenation, its parts that are computed in place with their byte offsets, and the step that comes first."""

    call: Call
    places: Mapping[Part, int]
    first: Expr


class Joins:
    """The joins of a block, `found`, that do not raise its peak of live bytes.

    `source` finds the tensor whose bytes a part has; those of `taken` are computed elsewhere.
    """

    def __init__(
        self,
        made: Program,
        block: Block,
        grouping: Grouping,
        source: Callable[[Part], Part],
        taken: Collection[Part],
        folded: Collection[Expr],
    ) -> None:
        self._made, self._source, self._taken, self._groups = made, source, {*taken}, grouping.groups
        first_of = {call: group.first for group in grouping.groups.values() for call in group.calls}
        inner = {call for group in grouping.groups.values() for call in group.calls[:-1]}
        # A group is computed where its first call stands.
        self._steps = [step for step in block.steps if step not in folded]
        places = {step: place for place, step in enumerate(self._steps)}
        self._lives: dict[Part, list[int]] = {}
        for step in self._steps:
            place = places[first_of.get(step, step) if isinstance(step, Call) else step]
            if isinstance(step, Call) and not step.is_view and (step not in inner):
                self._lives |= {Part(step, number): [place, place] for number, _ in enumerate(tensors(step.type))}
            for operand in step.operands:
                for part in made.parts[operand]:
                    self._use(source(part), place)
        for part in made.parts[block.result]:
            self._use(source(part), len(self._steps))
        changes = [0] * (len(self._steps) + 2)
        for part, (begin, end) in self._lives.items():
            changes[begin] += _size(part)
            changes[end + 1] -= _size(part)
        self._loads = [*accumulate(changes)]
        self._most = max(self._loads)
        self.found = tuple(join for step in self._steps if (join := self._join(step)) is not None)

    def _use(self, part: Part, place: int) -> None:
        if part in self._lives:
            self._lives[part][1] = max(self._lives[part][1], place)

    def _join(self, step: Expr) -> Join | None:
        if not isinstance(step, Call) or not isinstance(step.op, Op) or step.op.name != "concat":
            return None
        attrs = step.attrs
        assert isinstance(attrs, Axis)
        outer = step.shape[: attrs.axis % step.tensor.rank]
        if step in self._groups or any(each != 1 for each in outer) or not isinstance(step.tensor.bytes, int):
            return None
        found: dict[Part, int] = {}
        offset = spared = 0
        for arg in step.args:
            (part,) = map(self._source, self._made.parts[arg])
            size = arg.tensor.bytes
            assert isinstance(size, int)
            if offset % _LINE == 0 and part in self._lives and part not in self._taken and part not in found:
                found[part] = offset
                spared += size
            offset += size
        # The others are copied one by one.
        return self._made_of(step, found) if found and 2 * spared >= offset else None

    def _made_of(self, step: Call, found: Mapping[Part, int]) -> Join | None:
        """The join of these parts, which is recorded; None if it would raise the peak."""
        own = Part(step, 0)
        first = min(self._lives[part][0] for part in found)
        last = max(self._lives[part][1] for part in (own, *found))
        # Live bytes change between these steps alone: a long graph may have many joins.
        loads = [load + _size(own) for load in self._loads[first : last + 1]]
        for part in (own, *found):
            begin, end = self._lives[part]
            for place in range(begin - first, end - first + 1):
                loads[place] -= _size(part)
        if max(loads) > self._most:
            return None
        self._loads[first : last + 1] = loads
        self._lives[own] = [first, last]
        self._taken |= found.keys()
        return Join(step, found, self._steps[first])


def _size(part: Part) -> int:
    """The bytes of a tensor; a symbolic size counts as 0."""
    size = tensors(part.step.type)[part.number].bytes
    return size if isinstance(size, int) else 0
