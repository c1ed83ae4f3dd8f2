"""An order of sizes: bindings in, values and proofs about sizes out, each worked out once."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.plan.samples import Binding
from tirlite.sizes import Proof, Size, evaluate, prove_le


class Order:
    """Compares sizes by their values at sample bindings, which is a guess where they are symbolic, and by proof."""

    def __init__(self, bindings: Sequence[Binding]) -> None:
        self._bindings = bindings
        self._values: dict[Size, tuple[int, ...]] = {}
        self._proofs: dict[tuple[Size, Size], bool] = {}

    def value(self, size: Size) -> int:
        """Bytes at the first binding, where the dims have middling values."""
        return size if isinstance(size, int) else self.values(size)[0]

    def values(self, size: Size) -> tuple[int, ...]:
        """Bytes at each binding."""
        if isinstance(size, int):
            return (size,) * len(self._bindings)
        if size not in self._values:
            self._values[size] = tuple(evaluate(size, binding) for binding in self._bindings)
        return self._values[size]

    def fits(self, small: Size, large: Size) -> bool:
        """Whether `small` is at most `large`, proved for all values of the dims."""
        if isinstance(small, int) and isinstance(large, int):
            return small <= large
        pair = (small, large)
        if pair not in self._proofs:
            # A proof for all values cannot exist where a sample speaks against it.
            possible = all(a <= b for a, b in zip(self.values(small), self.values(large), strict=True))
            self._proofs[pair] = possible and prove_le(small, large) is Proof.YES
        return self._proofs[pair]
