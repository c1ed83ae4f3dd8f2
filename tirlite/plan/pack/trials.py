"""Orders in which to stack blocks of symbolic sizes in, what they cost at many bindings out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tirlite.plan.pack.blocks import Piece, Sections
from tirlite.record import record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

# What the worst binding counts for beside the mean, above the ratio that is as good as any there.
_WORST, _GOOD = 0.3, 1.1
# What bytes beyond the limits count for: an order that needs less than they do is always better.
_BEYOND = 10.0
_STEEP = 4.0


@record
class Trials:
    """Blocks over sections with their sizes in several columns: `values` of a block are those of its spans.

    The first `count` columns are bindings; in others sizes count by one of the products in them alone, which tells what
    they come to where that outgrows the rest. No plan should need more than the `limits`.
    """

    spans: Sequence[tuple[Piece, ...]]
    aligns: Sequence[int]
    values: Sequence[Values]
    limits: Values
    count: int
    sections: int
    floors: Values

    @classmethod
    def of(
        cls, sections: Sections, aligns: Sequence[int], values: Sequence[Values], limits: Values, count: int
    ) -> Trials:
        """Those of blocks over these sections; `floors` are what is live at one time at most, and never 0."""
        import numpy as np

        load = np.zeros((len(sections.load), len(limits)))
        for rows, sizes in zip(sections.spans, values, strict=True):
            for (low, high, _), size in zip(rows, sizes, strict=True):
                load[low:high] += size
        floors = np.maximum(load.max(axis=0), 1.0)
        return cls(sections.spans, aligns, values, limits, count, len(load), floors)

    def tops(self, order: Iterable[int]) -> Values:
        """What is needed in each column where blocks are stacked in that order."""
        import numpy as np

        heights = np.zeros((self.sections, len(self.limits)))
        highest = np.maximum.reduce
        for number in order:
            rows, sizes, align = self.spans[number], self.values[number], self.aligns[number]
            low, high, _ = rows[0]
            offset = highest(heights[low:high])
            for low, high, _ in rows[1:]:
                offset = np.maximum(offset, highest(heights[low:high]))
            if align > 1:
                offset[: self.count] = np.ceil(offset[: self.count] / align) * align
            for (low, high, _), size in zip(rows, sizes, strict=True):
                heights[low:high] = offset + size
        tops: Values = highest(heights)
        return tops

    def pressure(self, tops: Values) -> Values:
        """How bad each column is: at bindings what is needed over what must be, elsewhere what exceeds the limit."""
        import numpy as np

        beyond = 1 + _STEEP * (tops / np.maximum(self.limits, 1e-12) - 1)
        found: Values = tops / self.floors
        found[self.count :] = beyond[self.count :].clip(0)
        return np.maximum(found, np.where(beyond > 1, beyond, 0.0))

    def cost(self, tops: Values) -> float:
        """Less is better: the mean over the bindings of what is needed over what must be, and of the worst of it."""
        ratios = (tops / self.floors)[: self.count]
        beyond = (tops / self.floors - self.limits / self.floors - 1e-9).clip(0)
        worst = max(float(ratios.max()) - _GOOD, 0.0)
        return round(float(ratios.mean()) + _WORST * worst + _BEYOND * float(beyond.max() + beyond.sum()), 9)
