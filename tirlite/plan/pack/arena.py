"""Places the requests of one memory in an arena, one stretch of storage, with pairs in place where that helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tirlite.plan.in_place import Group, Handover, grouped
from tirlite.plan.order import Binding
from tirlite.plan.pack.blocks import Block, Piece, top_of
from tirlite.plan.pack.portfolio import pack_blocks
from tirlite.plan.pack.symbolic.groups import Slots, pack_groups
from tirlite.plan.request import Request
from tirlite.plan.search.engine import Engine
from tirlite.plan.search.limits import Limits
from tirlite.record import record
from tirlite.sizes import Size


@record
class Arena:
    """The offset of each request, the bytes of all, and the pairs that are in place.

    `is_known` says that it is known to need no more than slots, at any binding.
    """

    offsets: Mapping[str, Size]
    size: Size
    in_place: tuple[tuple[str, str], ...] = ()
    is_known: bool = False


@record
class Shared:
    """Slots: the sizes that lie in each, the slot that each request is in, and whether pairs are in place there.

    `beside` are sizes, the sum of the greatest of each of which should not be exceeded either, and `heights` then tell
    an order to begin with.
    """

    sizes: Sequence[Sequence[Size]]
    numbers: Mapping[str, int]
    has_pairs: bool
    beside: Sequence[Sequence[Size]] = ()
    heights: Mapping[str, int] | None = None


@record
class Packer:
    """How to pack: the sample bindings for symbolic sizes, looks at requests that may be spent on each memory, what
    runs searches for very many requests, if anything does, and until when many requests are packed again.
    """

    bindings: Sequence[Binding]
    budget: int
    engine: Engine | None = None
    limits: Limits | None = None

    def arena(
        self,
        requests: Sequence[Request],
        align: int,
        taken: Sequence[Handover],
        slots: Callable[[], Shared],
        fits: Callable[[Size], bool],
    ) -> Arena | None:
        """The first arena found that `fits`, each offset a multiple of `align` and of what its request wants.

        It holds for all values of the dims, with the pairs `taken` in place. `slots`, asked for where sizes are
        symbolic, are storage shared whole; what is known to need no more than they do fits. None where nothing fits,
        where sizes are symbolic and offsets fixed, and where too many sizes are symbolic.
        """
        ways = self._ways(requests, align, taken, slots)
        return next((each for each in ways if each.is_known or fits(each.size)), None)

    def _ways(
        self, requests: Sequence[Request], align: int, taken: Sequence[Handover], slots: Callable[[], Shared]
    ) -> Iterator[Arena]:
        groups = grouped(requests, taken)
        aligns = [max(align, group.align) for group in groups]
        in_place = tuple(each.pair for each in taken)
        if all(isinstance(size, int) for group in groups for _, size in group.pieces):
            blocks = [_block(group, each) for group, each in zip(groups, aligns, strict=True)]
            offsets = pack_blocks(blocks, self.budget, self.engine, self.limits)
            yield Arena(_named(groups, offsets), top_of(blocks, offsets), in_place)
        elif all(request.fixed is None for request in requests):
            given = slots()
            ranks = [given.numbers[group.members[0].id] for group in groups]
            heights = [given.heights[group.members[0].id] for group in groups] if given.heights else []
            whole = Slots(ranks, given.sizes, given.has_pairs, given.beside, heights)
            for each, is_known in pack_groups(groups, aligns, whole, self.bindings, self.budget):
                yield Arena(_named(groups, each.offsets), each.total, in_place, is_known)


def _named(groups: Sequence[Group], offsets: Sequence[Size]) -> dict[str, Size]:
    return {r.id: offset for group, offset in zip(groups, offsets, strict=True) for r in group.members}


def _block(group: Group, align: int) -> Block:
    pieces = tuple(Piece(low, high, _number(size)) for (low, high), size in group.pieces)
    return Block(pieces, align, group.members[0].fixed)


def _number(size: Size) -> int:
    assert isinstance(size, int)
    return size
