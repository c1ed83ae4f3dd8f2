"""Makes the arrays of integers that the fill reads and writes: the terrain.

The rules of the fill are written in the part of Python that is also kernel language, as those of `plan.search` are:
they run as they are, and compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tirlite.record import record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tirlite.plan.blocks import Block

    Row = npt.NDArray[np.int64]

# What stands in `state`.
LEFT, WORK, LEAVES, SECTIONS, FOUND, MOST, COUNT, FIRST, LAST = range(9)
STATE_CELLS = 9

# Later than all ends of blocks, and higher than all stretches.
FAR = 1 << 62
# Nodes of a tree that wait at once: two at each of its levels.
_STACK = 256


@record
class Times:
    """Blocks in order of birth, over sections; `order` are their numbers. Blocks of 0 bytes are left out.

    A section is a maximal set of blocks that are live together. A block is live in the sections from `low` to before
    `high`, gaps included, and for `life` points of time; `load` are the bytes that are live in each section.
    """

    order: Row
    low: Row
    high: Row
    life: Row
    size: Row
    align: Row
    load: Row

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> Times:
        """As `blocks.sections_of`, with a fraction of its time and memory. No block has a fixed offset."""
        import numpy as np

        births = np.array([block.pieces[0].low for block in blocks], np.int64)
        deaths = np.array([block.pieces[-1].high for block in blocks], np.int64)
        sizes = np.array([block.size for block in blocks], np.int64)
        order = np.lexsort((deaths, births))
        order = order[sizes[order] > 0]
        births, deaths, sizes = births[order], deaths[order], sizes[order]
        ends = np.unique(deaths)
        born = np.searchsorted(births, ends)
        # A section ends where something dies, if something has been born since the one before.
        closings = ends[np.diff(born, prepend=0) > 0]
        low, high = np.searchsorted(closings, births, "right"), np.searchsorted(closings, deaths, "right")
        align = np.array([block.align for block in blocks], np.int64)[order]
        return cls(order, low, high, deaths - births, sizes, align, live_bytes(low, high, sizes, len(closings)))

    def some(self, inside: Row) -> Times:
        """The blocks at these places in the order, over the same sections."""
        low, high, size = self.low[inside], self.high[inside], self.size[inside]
        load = live_bytes(low, high, size, len(self.load))
        return Times(self.order[inside], low, high, self.life[inside], size, self.align[inside], load)


def live_bytes(low: Row, high: Row, size: Row, count: int) -> Row:
    """The bytes that are live in each of `count` sections."""
    import numpy as np

    change = np.zeros(count + 1, np.int64)
    np.add.at(change, low, size)
    np.subtract.at(change, high, size)
    return change.cumsum()[:-1]


@record(frozen=False)
class Terrain:
    """The arrays of one fill. The root of a tree is node 1, and the children of node i are the nodes 2i and 2i+1.

    The skyline consists of stretches of sections at one height. A block fits into a stretch if it is born and dies in
    it.
    """

    # By block, in order of birth: its sections, size and alignment, its rank, of which the highest goes first, and the
    # offset that it gets.
    low: Row
    high: Row
    size: Row
    align: Row
    rank: Row
    offset: Row
    # By section, and one more: the first block born in or after it.
    first: Row
    # By node of a tree over blocks that are not placed: the highest rank, the first end and the last end.
    best: Row
    nearest: Row
    farthest: Row
    # By node of a tree over sections: the bytes not placed yet, at most; what is to be added to all below it; and the
    # lowest stretch that begins there, as twice its height, and one more where no block fits into it.
    rest: Row
    more: Row
    lowest: Row
    # By the first section of a stretch the one after its last, and the other way round.
    end: Row
    begin: Row
    stack: Row
    state: Row

    @classmethod
    def of(cls, times: Times, rank: Row, rest: Row, work: int) -> Terrain:
        """Blocks of these ranks, all different, before any is placed.

        `rest` are the bytes that count as not placed in each section, no fewer than those of the blocks. `work` is the
        number of nodes of trees that may be looked at.
        """
        import numpy as np

        count, sections = len(times.low), len(rest)
        blocks, leaves = _leaves(count), _leaves(sections)
        state = np.zeros(STATE_CELLS, np.int64)
        state[LEFT], state[WORK], state[LEAVES], state[SECTIONS] = count, work, blocks, leaves
        lowest = np.full(2 * leaves, FAR, np.int64)
        # The ground is one stretch.
        lowest[leaves >> np.arange(leaves.bit_length())] = 0
        end, begin = np.zeros(sections + 1, np.int64), np.zeros(sections + 1, np.int64)
        end[0] = sections
        return cls(
            low=times.low,
            high=times.high,
            size=times.size,
            align=times.align,
            rank=rank,
            offset=np.zeros(count, np.int64),
            first=np.searchsorted(times.low, np.arange(sections + 1)),
            best=_tree(rank, blocks, -1, np.maximum),
            nearest=_tree(times.high, blocks, FAR, np.minimum),
            farthest=_tree(times.high, blocks, -1, np.maximum),
            rest=_tree(rest, leaves, -1, np.maximum),
            more=np.zeros(2 * leaves, np.int64),
            lowest=lowest,
            end=end,
            begin=begin,
            stack=np.zeros(_STACK, np.int64),
            state=state,
        )


def _leaves(count: int) -> int:
    """The least power of two that is no less than `count`."""
    return 1 << max(count - 1, 0).bit_length()


def _tree(values: Row, leaves: int, nothing: int, of: np.ufunc) -> Row:
    """A tree over values, in which each node holds `of` its children; missing leaves hold `nothing`."""
    import numpy as np

    tree = np.full(2 * leaves, nothing, np.int64)
    tree[leaves : leaves + len(values)] = values
    while leaves > 1:
        half = leaves // 2
        tree[half:leaves] = of(tree[leaves : 2 * leaves : 2], tree[leaves + 1 : 2 * leaves : 2])
        leaves = half
    return tree
